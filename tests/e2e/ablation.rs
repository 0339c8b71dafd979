//! Ablation mode: each switch switches that control and no other, everything that comes of it says so, and an ordinary
//! instance has nothing to do with it.

use serde_json::{Value, json};
use toolcell_tests::{
    Instance, Need, Process, Request, Running, Setup, eventually, kernel_version, needs, run, toolcell,
};
use toolcell_types::{Answer, CallState, ControlId, Effect, ErrorCode, Verdict};

use crate::posture::{limits, outside};

/// Of these no file of the kernel's tells, from outside.
const UNSEEN: [&str; 4] = ["landlock.fs", "landlock.net", "landlock.scope", "output.cap"];

fn ablation() -> Instance {
    Setup::default().flags(&["--ablation", "--experiment", "e-1"]).env("PROBE_CANARY", "was here").start()
}

fn state(answer: &Answer, id: ControlId) -> &str {
    let item = answer.controls.iter().find(|item| item["id"] == id.as_str()).expect("all 29 are reported");
    item["state"].as_str().unwrap()
}

/// Landlock knows TCP since Linux 6.7 and scopes since 6.12.
fn is_lacking(id: ControlId) -> bool {
    (id == ControlId::LandlockNet && kernel_version() < (6, 7))
        || (id == ControlId::LandlockScope && kernel_version() < (6, 12))
}

/// Whether the same thing outside is about both.
fn belong_together(one: ControlId, other: ControlId) -> bool {
    let pair = |a, b| (one, other) == (a, b) || (one, other) == (b, a);
    one.falls_with().contains(&other)
        || pair(ControlId::WallClock, ControlId::CpuClock)
        // From outside /proc is a mount like others.
        || (one, other) == (ControlId::ProcMasked, ControlId::RootReadonly)
        // Of the root only what a cell without mounts of ours has.
        || (other == ControlId::NamespaceMount && [ControlId::WallClock, ControlId::CpuClock].contains(&one))
        // The map of ids names the tool's.
        || (one, other) == (ControlId::IdentityUnprivileged, ControlId::NamespaceUser)
        || (one, other) == (ControlId::NamespaceUser, ControlId::IdentityUnprivileged)
}

#[test]
fn every_switch_switches_its_control_and_no_other_seen_from_outside() {
    needs!(Need::Root, Need::Tool("nsenter"));
    let instance = ablation();
    let mut wrong = Vec::new();
    // The clocks first, before the one of mounts is ever started.
    for off in ControlId::ALL.into_iter().rev() {
        // A mount of ours cannot be shown in the machine's own tree; and opening one has a clock of its own.
        let has_mount = ![ControlId::NamespaceMount, ControlId::WallClock, ControlId::CpuClock].contains(&off);
        let request = match has_mount {
            true => Request::program("waits", &[]),
            false => Request::shell("echo up; exec env -u PWD -u SHLVL sleep 100"),
        };
        let running = Running::until_up(&instance, &request.limits(limits()).with("ablate", json!([off.as_str()])));
        let name = if has_mount { "waits" } else { "sleep" };
        let named = || running.processes().into_iter().find(|process| process.name == name);
        let tool = eventually("the tool to be what it ends up as", named);
        let init = Process::read(tool.parent).expect("the tool's parent is the cell's init");
        for id in ControlId::ALL.into_iter().filter(|id| !UNSEEN.contains(&id.as_str())) {
            let seen = outside(id, &instance, &tool, &init);
            if id == off && seen.is_ok() {
                wrong.push(format!("{off} is off and holds: {seen:?}"));
            }
            if id != off && !belong_together(off, id) && seen.is_err() {
                wrong.push(format!("{off} is off and {id} does not hold: {seen:?}"));
            }
        }
        assert_eq!(running.cancel().status() / 100, 2);
        let answer = running.answer();
        assert_eq!(answer.verdict, Verdict::Cancelled, "{off}");
        for id in ControlId::ALL {
            let may_be_off = id == off || off.falls_with().contains(&id);
            let expected = state(&answer, id) == "enforced" || (may_be_off && state(&answer, id) == "ablated");
            let is_lacking = is_lacking(id) && state(&answer, id) == "unavailable";
            if !is_lacking && (!expected || (id == off && state(&answer, id) != "ablated")) {
                wrong.push(format!("{off} is off, and {id} is reported {}", state(&answer, id)));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Nothing of all that stays.
    drop(instance.stop());
}

#[test]
fn with_everything_off_a_call_runs_ends_and_leaves_nothing() {
    needs!(Need::Root);
    let instance = ablation();
    let all: Vec<&str> = ControlId::ALL.iter().map(|id| id.as_str()).collect();
    let script = "sleep 1000 & setsid sleep 1000 & echo $PROBE_CANARY; readlink /proc/self/ns/user";
    let answer = instance.call(&Request::shell(script).with("ablate", json!(all)));
    let said = serde_json::to_value(&answer.stdout).unwrap();
    assert!(said.as_str().unwrap().starts_with("was here\nuser:["), "{answer:?}");
    // In a container nobody may look at the launcher's.
    if let Ok(own) = std::fs::read_link(format!("/proc/{}/ns/user", instance.launcher().pid)) {
        assert!(said.as_str().unwrap().contains(own.to_str().unwrap()), "{said} {own:?}");
    }
    let is_off = |id: ControlId| state(&answer, id) == if is_lacking(id) { "unavailable" } else { "ablated" };
    assert!(ControlId::ALL.into_iter().all(is_off), "{answer:?}");
    assert_eq!(answer.usage.left_running_killed, Some(2));
    assert_eq!(answer.effect, Effect::Unknown, "nobody saw where it could have gone");
    assert!(instance.cell_processes().is_empty());
    drop(instance.stop());
}

#[test]
fn an_effect_is_only_said_to_be_none_where_no_way_out_was_open() {
    needs!(Need::Root);
    let instance = ablation();
    let effect = |off: &str, line: &str| {
        let answer = instance.call(&Request::shell(line).with("ablate", json!([off])));
        (answer.effect, answer.state)
    };
    assert_eq!(effect("namespace.ipc", "true"), (Effect::Applied, CallState::Complete));
    assert_eq!(effect("namespace.ipc", "exit 1"), (Effect::Unknown, CallState::Unknown));
    assert_eq!(effect("cgroup.cpu", "exit 1"), (Effect::None, CallState::Failed), "a limit alone opens nothing");
}

#[test]
fn descriptors_that_stay_open_reach_neither_the_launcher_nor_the_dev_of_other_cells() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = ablation();
    let script = "import os\nfor n in os.listdir('/proc/self/fd'):\n  try: print(os.readlink('/proc/self/fd/' + n))\n  except OSError: pass\n";
    let request = Request::exec(&["python3", "-c", script]).with("ablate", json!(["fds.closed"]));
    let said = serde_json::to_value(instance.call(&request).stdout).unwrap();
    let links: Vec<&str> = said.as_str().unwrap().lines().filter(|link| !link.starts_with("/proc/")).collect();
    assert!(links.contains(&"/usr"), "a folder of the machine: {links:?}");
    assert!(links.iter().all(|link| !link.contains("anon_inode") && !link.contains("tasks")), "{links:?}");
    // The launcher's user, with a root that can be written: what every cell shares stays as it is.
    let off = json!(["root.readonly", "identity.unprivileged"]);
    let spoil = "chmod 700 /dev; chmod 600 /dev/full; stat -c %a /dev /dev/full";
    let answer = instance.call(&Request::shell(spoil).with("ablate", off));
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "755\n666\n", "{answer:?}");
    assert_eq!(instance.call(&Request::exec(&["true"])).state, CallState::Complete);
}

#[test]
fn a_mark_that_the_daemon_made_says_nothing_about_the_mode() {
    needs!(Need::Root);
    let home = Instance::start().stop();
    let mark = home.state().join("ablation");
    std::fs::write(&mark, "").unwrap();
    std::os::unix::fs::chown(&mark, Some(home.uid_base()), Some(home.uid_base())).unwrap();
    let (home, refused) = home.fails_to_start();
    assert!(refused.stderr.contains("look who made it"), "{}", refused.stderr);
    let (_home, refused) = home.with_flags(&["--ablation"]).fails_to_start();
    assert!(refused.stderr.contains("look who made it"), "{}", refused.stderr);
}

#[test]
fn its_receipts_say_so_and_pass_for_no_other() {
    needs!(Need::Root);
    let instance = ablation();
    assert!(instance.health().ablation);
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (receipt, request, key) = (at("receipt.json"), at("request.json"), at("key.pem"));
    let line = ["run", "--ablate", "namespace.mount", "--receipt", &receipt, "--request-out", &request, "--", "true"];
    let said = run(&mut instance.cli(&line)).expect_code(0).stderr;
    assert!(
        said.contains("ABLATION MODE (experiment e-1), off: namespace.mount root.readonly"),
        "a person who looks at the terminal is told: {said}"
    );
    std::fs::write(&key, run(&mut instance.cli(&["keys", "show"])).expect_code(0).stdout).unwrap();
    let check = ["verify", &receipt, "--key", &key, "--request", &request];
    let refused = run(&mut toolcell(&check)).expect_code(1);
    assert!(refused.text().contains("e-1") && refused.text().contains("--ablation"), "{}", refused.text());
    let held = run(&mut toolcell(&[&check[..], &["--ablation"]].concat())).expect_code(0);
    assert!(held.text().contains("SWITCHED OFF: namespace.mount, root.readonly"), "{}", held.text());

    // A call of such an instance with everything on is no real one either.
    let plain = run(&mut instance.cli(&["run", "--receipt", &receipt, "--request-out", &request, "--", "true"]));
    assert!(plain.expect_code(0).stderr.contains("ABLATION MODE (experiment e-1), off: nothing"));
    let _refused = run(&mut toolcell(&check)).expect_code(1);

    // And one of an ordinary instance is not taken for one of these.
    let other = Instance::start();
    let line = ["run", "--receipt", &receipt, "--request-out", &request, "--", "true"];
    let _ran = run(&mut other.cli(&line)).expect_code(0);
    std::fs::write(&key, run(&mut other.cli(&["keys", "show"])).expect_code(0).stdout).unwrap();
    let _held = run(&mut toolcell(&check)).expect_code(0);
    let _refused = run(&mut toolcell(&[&check[..], &["--ablation"]].concat())).expect_code(1);
}

#[test]
fn an_ordinary_instance_switches_nothing_off_whoever_asks() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::exec(&["true"]).with("ablate", json!(["seccomp"]));
    let problem = instance.post(&request).problem(ErrorCode::AblationRefused);
    assert_eq!(problem.status, 403);
    let said = run(&mut instance.cli(&["run", "--ablate", "seccomp", "--", "true"])).expect_code(126).stderr;
    assert!(said.contains("started for it"), "{said}");
    assert_eq!(instance.receipts().len(), 1, "only the log's beginning");
    assert!(!instance.health().ablation);
    let unknown = run(&mut instance.cli(&["run", "--ablate", "seccom", "--", "true"])).expect_code(125);
    assert!(unknown.stderr.contains("names of controls"), "{}", unknown.stderr);
}

#[test]
fn what_an_instance_of_ablation_mode_does_not_know_is_told() {
    needs!(Need::Root);
    let instance = ablation();
    for (ablate, word) in [
        (json!(["seccom"]), "namespace.user"),
        (json!(["seccomp", "seccomp"]), "twice"),
        (json!(["gate.permission"]), "not in this version"),
        (json!(["audit"]), "not in this version"),
        (json!("seccomp"), "array"),
    ] {
        let refused = instance.post(&Request::exec(&["true"]).with("ablate", ablate.clone()));
        let problem = refused.problem(ErrorCode::InvalidRequest);
        assert!(serde_json::to_string(&problem).unwrap().contains(word), "{ablate}: {problem:?}");
    }
    // The same call under the same name with something else off is another request.
    let request = |off: &str| Request::exec(&["true"]).id("one").with("ablate", json!([off]));
    let first: Value = instance.post(&request("seccomp")).json();
    assert_eq!(first["state"], "complete");
    let _other = instance.post(&request("rlimits")).problem(ErrorCode::KeyPayloadMismatch);
}

#[test]
fn a_key_is_of_one_mode_for_good() {
    needs!(Need::Root);
    let home = Instance::start().stop();
    let flags = ["--ablation"];
    let (_home, refused) = home.with_flags(&flags).fails_to_start();
    assert!(refused.stderr.contains("cannot be switched off"), "{}", refused.stderr);
    let home = ablation().stop();
    let (_home, refused) = home.with_flags(&[]).fails_to_start();
    assert!(refused.stderr.contains("ablation mode") && refused.stderr.contains("--state"), "{}", refused.stderr);
    let refused = run(&mut toolcell(&["serve", "--ablation"])).expect_code(2);
    assert!(refused.stderr.contains("--socket") && refused.stderr.contains("--state"), "{}", refused.stderr);
    let line = ["serve", "--ablation", "--socket", "/run/toolcell/toolcell.sock", "--state", "/var/lib/toolcell-x"];
    let refused = run(&mut toolcell(&line)).expect_code(1);
    assert!(refused.stderr.contains("default socket"), "{}", refused.stderr);
    let refused = run(&mut toolcell(&["serve", "--experiment", "x"])).expect_code(2);
    assert!(refused.stderr.contains("--ablation"), "{}", refused.stderr);
}
