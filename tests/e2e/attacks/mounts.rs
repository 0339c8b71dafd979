//! Mounts that are more than they seem: file systems that do not answer or lie below, folders that are links.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use toolcell_tests::{
    Instance, Live, Need, OPENER, Process, Request, Running, Setup, command, eventually, needs, program_on_host, within,
};
use toolcell_types::{ErrorCode, Verdict};

use super::stdout;

/// A place that everybody may read, on a disk.
fn place() -> TempDir {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o755)).unwrap();
    dir
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// A directory with one file that says where it is.
fn folder(path: &Path) {
    std::fs::create_dir_all(path).unwrap();
    std::fs::write(path.join("file"), text(path)).unwrap();
}

/// Mounts a file system that hangs, in a mount namespace of its own, so that nobody else stumbles over it. Ends with it.
fn hang(dir: &Path, how: &str) -> Live {
    let mut unshare = command("unshare");
    unshare.args(["--mount", "--propagation", "private", "--"]).arg(program_on_host("hangs")).arg(dir).arg(how);
    let mut live = Live::start(&mut unshare);
    live.read_until("up\n");
    live
}

/// How many processes open mounts for the launcher. One waits for the next plan.
fn openers(instance: &Instance) -> usize {
    let launcher = instance.launcher().pid;
    Process::all().iter().filter(|process| process.parent == launcher && process.name == OPENER).count()
}

fn a_file_system_that_hangs_holds_up_nobody(how: &str) {
    let dir = place();
    let (hanging, plain) = (dir.path().join("hanging"), dir.path().join("plain"));
    std::fs::create_dir(&hanging).unwrap();
    folder(&plain);
    let server = hang(&hanging, how);
    let namespace = format!("--mount=/proc/{}/ns/mnt", server.pid());
    let instance = Setup::default().wrapped(&["nsenter", &namespace, "--"]).start();
    let show = |path: &Path| Request::exec(&["cat", "/data/file"]).mount(&text(path), "/data");

    let sleeper = Request::shell("echo up; exec sleep 60").limits(json!({ "wall_ms": 2000 }));
    let sleeper = Running::until_up(&instance, &sleeper);
    std::thread::scope(|scope| {
        let started = Instant::now();
        let refused = scope.spawn(|| instance.post(&show(&hanging)));
        let neighbour = stdout(&instance.call(&show(&plain)));
        assert_eq!(neighbour, text(&plain), "the control: a mount that answers is opened meanwhile");
        eventually("a second process that opens mounts", || {
            assert_eq!(instance.call(&show(&plain)).verdict, Verdict::Exited { exit_code: 0 });
            (openers(&instance) == 2).then_some(())
        });
        assert!(!refused.is_finished(), "while the other one still hangs");
        let response = refused.join().unwrap();
        let took = started.elapsed();
        let problem = response.problem(ErrorCode::InvalidRequest);
        assert!(problem.detail.contains("did not answer"), "{}", problem.detail);
        assert!(problem.detail.contains(&text(&hanging)), "it says which: {}", problem.detail);
        assert!(took < Duration::from_secs(15), "the refusal took {took:?}");
    });
    let answer = sleeper.answer();
    assert_eq!(answer.verdict, Verdict::WallLimit);
    let wall_us = answer.usage.wall_us.unwrap();
    assert!(wall_us < 4_500_000, "the clock of another call went on: {wall_us} µs");
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!(stdout(&instance.call(&show(&plain))), text(&plain));

    // Its end frees whoever waits for it; then nothing may be left.
    drop(server);
    within(Duration::from_secs(10), "the one that hung to be reaped", || {
        // It is reaped when the launcher next has something to do.
        assert_eq!(instance.call(&show(&plain)).verdict, Verdict::Exited { exit_code: 0 });
        (openers(&instance) == 1).then_some(())
    });
}

#[test]
fn a_file_system_that_never_answers_holds_up_nobody() {
    needs!(Need::Root, Need::File("/dev/fuse"));
    a_file_system_that_hangs_holds_up_nobody("mute");
}

#[test]
fn a_file_system_whose_callers_cannot_be_killed_holds_up_nobody() {
    needs!(Need::Root, Need::File("/dev/fuse"));
    a_file_system_that_hangs_holds_up_nobody("reads");
}

#[test]
fn a_file_system_below_a_mount_is_refused_by_its_name_and_works_by_itself() {
    needs!(Need::Root);
    let dir = place();
    let (outer, sibling) = (dir.path().join("outer"), dir.path().join("sibling"));
    let below = outer.join("deep/be low");
    folder(&outer);
    folder(&sibling);
    std::fs::create_dir_all(&below).unwrap();
    // In a mount namespace of the instance's own, so that nothing is left of it.
    let script =
        format!("mount -t tmpfs private '{0}' && echo below > '{0}/file' && exec \"$0\" \"$@\"", below.display());
    let unshare = ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script];
    let instance = Setup::default().wrapped(&unshare).start();
    let show = |path: &Path| Request::exec(&["cat", "/data/file"]).mount(&text(path), "/data");
    for above in [&outer, &outer.join("deep")] {
        let problem = instance.post(&show(above)).problem(ErrorCode::PermissionDenied);
        assert!(problem.detail.contains(&text(&below)), "it names the mount point: {}", problem.detail);
    }
    assert_eq!(stdout(&instance.call(&show(&below))), "below\n", "by itself it works");
    assert_eq!(stdout(&instance.call(&show(&sibling))), text(&sibling), "and so does what has none below");
    // A name that begins alike lies beside it, not above.
    let alike = dir.path().join("out");
    folder(&alike);
    assert_eq!(stdout(&instance.call(&show(&alike))), text(&alike));
}

#[test]
fn a_folder_of_the_policy_that_is_a_link_is_refused_and_the_true_one_works() {
    needs!(Need::Root);
    let dir = place();
    let at = |name: &str| dir.path().join(name);
    for name in ["true", "true/inner", "true/deeper", "secret", "real/inner", "swapped", "home/swapped"] {
        folder(&at(name));
    }
    symlink(at("true"), at("link")).unwrap();
    symlink(at("real"), at("way")).unwrap();
    symlink(at("secret"), at("true/out")).unwrap();
    symlink(at("true/deeper"), at("true/in")).unwrap();
    let folders = ["true", "link", "way/inner", "swapped", "home/swapped"].map(|name| format!("{:?}", text(&at(name))));
    let policy = format!(
        "[tools.show]\ndescription = \"Shows a file\"\nimage = \"host\"\nargv = [\"cat\", \"/data/file\"]\n\
         input_schema = {{ type = \"object\", additionalProperties = false }}\npermission = \"allow\"\n\
         roles = [\"operator\"]\neffect_class = \"read\"\n[tools.show.allow]\nmounts = [{}]\n",
        folders.join(", ")
    );
    let instance = Setup::default().policy("tools.toml", &policy).start();
    let show = |name: &str| Request::tool("show", json!({})).mount(&text(&at(name)), "/data");
    let works = |name: &str, shows: &str| assert_eq!(stdout(&instance.call(&show(name))), text(&at(shows)), "{name}");
    let refused = |name: &str| {
        let problem = instance.post(&show(name)).problem(ErrorCode::PermissionDenied);
        assert!(problem.detail.contains(&text(&at(name))), "{}", problem.detail);
    };
    for (name, shows) in [("true", "true"), ("true/inner", "true/inner"), ("true/in", "true/deeper")] {
        works(name, shows);
    }
    for name in ["link", "link/inner", "way/inner", "true/out", "secret"] {
        refused(name);
    }

    // Whoever owns the place above a folder puts a link there after the start.
    works("swapped", "swapped");
    works("home/swapped", "home/swapped");
    std::fs::rename(at("swapped"), at("gone")).unwrap();
    symlink(at("secret"), at("swapped")).unwrap();
    refused("swapped");
    std::fs::rename(at("home"), at("old")).unwrap();
    folder(&at("other/swapped"));
    symlink(at("other"), at("home")).unwrap();
    refused("home/swapped");
    std::fs::remove_file(at("swapped")).unwrap();
    std::fs::rename(at("gone"), at("swapped")).unwrap();
    assert_eq!(stdout(&instance.call(&show("swapped"))), text(&at("swapped")), "the control: back, it works again");
}

/// Whether a process has these bytes in memory that it can write to; and how much of it was looked at.
fn has_in_memory(pid: u32, wanted: &[u8]) -> (bool, usize) {
    use std::os::unix::fs::FileExt as _;
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let (mut found, mut seen) = (false, 0);
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|rights| rights.starts_with("rw"))) {
        let (from, to) = line.split(' ').next().unwrap().split_once('-').unwrap();
        let (from, to) = (u64::from_str_radix(from, 16).unwrap(), u64::from_str_radix(to, 16).unwrap());
        let mut bytes = vec![0; usize::try_from(to - from).unwrap()];
        // Special regions cannot be read.
        let Ok(length) = memory.read_at(&mut bytes, from) else { continue };
        seen += length;
        found = found || bytes[..length].windows(wanted.len()).any(|window| window == wanted);
    }
    (found, seen)
}

#[test]
fn a_cell_s_memory_holds_nothing_of_an_earlier_caller_s_mounts() {
    needs!(Need::Root);
    let dir = place();
    let instance = Instance::start();
    // The place is said in two parts, so that this test's own words are not what is found.
    let marker = ["unheard", "of"].concat();
    let mut request = Request::exec(&["true"]);
    for number in 0..40 {
        let path = dir.path().join(format!("{marker}-{number}-{}", "x".repeat(100)));
        folder(&path);
        request = request.mount(&text(&path), &format!("/data/{number}"));
    }
    assert_eq!(instance.call(&request).verdict, Verdict::Exited { exit_code: 0 });
    let absent = dir.path().join(format!("{marker}-absent"));
    drop(instance.post(&Request::exec(&["true"]).mount(&text(&absent), "/data")).problem(ErrorCode::InvalidRequest));
    let next = Running::until_up(&instance, &Request::shell("echo up; exec sleep 60"));
    let init = next.processes().into_iter().find(|process| process.name.starts_with("toolcell")).unwrap();
    let (found, seen) = has_in_memory(init.pid, marker.as_bytes());
    assert!(!found, "in {seen} bytes of process {}", init.pid);
    let (control, _) = has_in_memory(init.pid, b"--deny-path");
    assert!(seen > 100_000 && control, "the launcher's own words are there: the control");
}
