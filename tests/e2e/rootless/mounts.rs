//! What of a user's files can be shown in a cell, and what is refused with a word.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use toolcell_tests::{Instance, Need, OrdinaryUser, Request, command, needs, run};
use toolcell_types::{ErrorCode, Verdict};

use super::{both_users, start};

/// Tools that everybody who may connect can call.
const POLICY: &str = r#"
[tools.read_private]
description = "Reads a file of /data"
image = "host"
argv = ["cat", "/data/private"]
input_schema = { type = "object", additionalProperties = false }
permission = "allow"
roles = ["caller", "operator"]
effect_class = "read"
[tools.read_private.allow]
mounts = ["/"]
[tools.read_roots]
description = "Reads another file of /data"
image = "host"
argv = ["cat", "/data/root"]
input_schema = { type = "object", additionalProperties = false }
permission = "allow"
roles = ["caller", "operator"]
effect_class = "read"
[tools.read_roots.allow]
mounts = ["/"]
"#;

fn make(user: &OrdinaryUser, path: &Path, mode: u32) -> String {
    std::fs::write(path, "mine").unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    user.own(path);
    path.to_string_lossy().into_owned()
}

fn show(instance: &Instance, host: &str) -> (Verdict, String) {
    let answer = instance.call(&Request::exec(&["cat", "/data"]).mount(host, "/data"));
    (answer.verdict, serde_json::to_value(&answer.stdout).unwrap().as_str().unwrap().to_owned())
}

fn refused(instance: &Instance, host: &str, why: &str) {
    let problem =
        instance.post(&Request::exec(&["ls", "/data"]).mount(host, "/data")).problem(ErrorCode::PermissionDenied);
    assert!(problem.detail.contains(why) && problem.detail.contains(host), "{}", problem.detail);
}

#[test]
fn a_file_that_everybody_may_read_is_shown_and_a_private_one_only_where_the_tool_is_the_user() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        let open = make(&user, &user.home().join("open"), 0o644);
        let private = make(&user, &user.home().join("private"), 0o600);
        let shown = (Verdict::Exited { exit_code: 0 }, "mine".to_owned());
        assert_eq!(show(&instance, &open), shown);
        match user.range() {
            Some(_) => refused(&instance, &private, "only its owner or group may read it"),
            None => assert_eq!(show(&instance, &private), shown),
        }
    }
}

#[test]
fn what_the_user_may_not_read_is_refused_although_the_launcher_has_capabilities() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        // Root's; the user's own with a mode that keeps its owner out; and one of a subordinate id.
        let roots = make(&user, &user.home().join("root"), 0o600);
        nix::unistd::chown(Path::new(&roots), Some(nix::unistd::Uid::from_raw(0)), None).unwrap();
        refused(&instance, &roots, "may not read it");
        let closed = make(&user, &user.home().join("closed"), 0o000);
        refused(&instance, &closed, "may not read it");
        if let Some((first, count)) = user.range() {
            let sub = make(&user, &user.home().join("sub"), 0o600);
            let id = nix::unistd::Uid::from_raw(first + count - 1);
            nix::unistd::chown(Path::new(&sub), Some(id), None).unwrap();
            refused(&instance, &sub, "may not read it");
        }
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(show(&instance, &closed).1, "mine", "the control: the same file once it is open");
    }
}

#[test]
fn a_folder_with_file_systems_below_is_refused_and_one_without_is_shown() {
    needs!(Need::SubordinateIds);
    let user = OrdinaryUser::with_ids();
    let (folder, below) = (user.home().join("folder"), user.home().join("folder/below"));
    std::fs::create_dir_all(&below).unwrap();
    for path in [&folder, &below] {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    assert_eq!(run(command("mount").args(["-t", "tmpfs", "tmpfs"]).arg(&below)).expect_code(0).code, 0);
    let instance = start(&user);
    assert_eq!(run(command("umount").arg(&below)).expect_code(0).code, 0);
    refused(&instance, &folder.to_string_lossy(), "another file system is mounted at");
    drop(instance);
    let instance = start(&user);
    let list = Request::exec(&["ls", "/data"]).mount(&folder.to_string_lossy(), "/data");
    assert_eq!(serde_json::to_value(instance.call(&list).stdout).unwrap(), "below\n", "the control");
}

#[test]
fn the_instance_s_own_places_and_the_kernel_s_are_refused() {
    needs!(Need::SubordinateIds);
    let user = OrdinaryUser::with_ids();
    let instance = start(&user);
    let state = instance.home().state().to_string_lossy().into_owned();
    for (host, why) in
        [(state.as_str(), "toolcell's own"), ("/proc", "kernel file system"), ("/dev", "kernel file system")]
    {
        refused(&instance, host, why);
    }
    let other = Request::exec(&["ls", "/data"]).mount("/usr/share", "/data");
    assert_eq!(instance.call(&other).verdict, Verdict::Exited { exit_code: 0 }, "the control");
}

#[test]
fn a_user_s_own_private_files_are_the_tool_s_where_root_serves() {
    needs!(Need::OrdinaryUsers, Need::Root);
    let user = OrdinaryUser::without_ids();
    let instance =
        toolcell_tests::Setup::default().policy("tools.toml", POLICY).flags(&["--socket-mode", "0666"]).start();
    std::fs::set_permissions(instance.home().dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let folder = user.home().join("folder");
    std::fs::create_dir(&folder).unwrap();
    user.own(&folder);
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    make(&user, &folder.join("private"), 0o600);
    let roots = make(&user, &folder.join("root"), 0o600);
    nix::unistd::chown(Path::new(&roots), Some(nix::unistd::Uid::from_raw(0)), Some(nix::unistd::Gid::from_raw(0)))
        .unwrap();
    let socket = instance.socket().to_string_lossy().into_owned();
    let mount = format!("{}:/data", folder.display());
    let call = |tool: &str| run(&mut user.toolcell(&["call", tool, "{}", "--socket", &socket, "--ro", &mount]));
    assert_eq!(call("read_private").expect_code(0).text(), "mine");
    let of_root = call("read_roots");
    assert_ne!(of_root.code, 0, "what is not the caller's stays closed: {}", of_root.text());
    // As root, the same folder: root's private files are shown to nobody, and neither are another's.
    let problem = instance
        .post(&Request::tool("read_private", serde_json::json!({})).mount(&folder.to_string_lossy(), "/data"))
        .problem(ErrorCode::PermissionDenied);
    assert!(problem.detail.contains("only its owner or group may read it"), "{}", problem.detail);
}
