//! A user whom root has given cgroups: nothing that needs one is missing then.

use std::os::unix::fs::chown;

use serde_json::json;
use toolcell_tests::{Groups, Instance, Need, OrdinaryUser, Request, Setup, cgroup_roots, groups_named, needs};
use toolcell_types::Verdict;

/// Starts an instance of this user's to whom a group per hierarchy was given: bound over what is mounted where controllers
/// have trees of their own, the one that it is started in where there is one tree.
fn start_with_groups(user: &OrdinaryUser, groups: &Groups) -> Instance {
    let mut script = "set -e; ".to_owned();
    for dir in groups.make() {
        let top = dir.parent().unwrap().to_owned();
        let is_unified = cgroup_roots().iter().any(|root| root.path == top && root.is_unified());
        if is_unified {
            std::fs::write(top.join("cgroup.subtree_control"), "+memory +cpu +pids").unwrap();
        }
        for given in [dir.clone(), dir.join("cgroup.procs"), dir.join("cgroup.subtree_control")] {
            if given.exists() {
                chown(given, Some(user.uid()), Some(user.gid())).unwrap();
            }
        }
        let enter = match is_unified {
            true => format!("echo $$ > {}/cgroup.procs; ", dir.display()),
            false => format!("mount --bind {} {}; ", dir.display(), top.display()),
        };
        script.push_str(&enter);
    }
    let (uid, gid) = user.ids();
    script.push_str(&format!("exec setpriv --reuid {uid} --regid {gid} --clear-groups \"$0\" \"$@\""));
    let words = ["unshare", "--mount", "--propagation", "private", "--", "/bin/sh", "-c", &script];
    Setup::default().user(user).wrapped(&words).start()
}

#[test]
fn a_user_with_ids_and_groups_has_every_control() {
    needs!(Need::SubordinateIds, Need::Root, Need::Tool("unshare"), Need::Tool("setpriv"));
    let (user, groups) = (OrdinaryUser::with_ids(), Groups::name());
    let instance = start_with_groups(&user, &groups);
    let answer = instance.call(&Request::exec(&["true"]));
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    let missing: Vec<_> = answer.controls.iter().filter(|item| item["state"] != "enforced").collect();
    assert!(missing.is_empty(), "{missing:#?}");
    let usage = answer.usage;
    assert!(usage.memory_peak_bytes.is_some() && usage.cpu_user_us.is_some(), "and is counted: {usage:?}");

    // The whole tree's memory, which no limit per process knows: the scratch is full of it.
    let words = ["/bin/sh", "-c", "head -c 60000000 /dev/zero > /tmp/full"];
    let limits = json!({ "memory_bytes": 16_777_216, "tmp_bytes": 100_000_000 });
    let answer = instance.call(&Request::exec(&words).limits(limits));
    assert_eq!(answer.verdict, Verdict::MemoryLimit, "{answer:?}");
    let spins = Request::program("spins", &[]).limits(json!({ "cpu_ms": 200, "wall_ms": 20_000 }));
    assert_eq!(instance.call(&spins).verdict, Verdict::CpuLimit);

    let name = instance.name().to_owned();
    drop(instance.stop());
    assert_eq!(groups_named(&name), Vec::<std::path::PathBuf>::new());
}
