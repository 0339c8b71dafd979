//! A live cell and the parts of an ordinary user's instance, looked at from outside by root: the kernel says the same as
//! the report.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use toolcell_tests::{Instance, Live, Need, OrdinaryUser, Process, Request, Running, descriptors_of, needs};
use toolcell_types::{ControlId, Verdict};

use super::{both_users, missing, start};
use crate::posture;

/// What is different without root; all else is looked at as in an instance of root's.
fn outside(
    id: ControlId,
    user: &OrdinaryUser,
    instance: &Instance,
    (tool, init): (&Process, &Process),
) -> Result<Value, String> {
    match id.as_str() {
        "namespace.user" => id_maps(user, tool),
        "identity.unprivileged" => identity(user, tool, init),
        "mounts.nosuid-nodev" => devices(tool),
        // One clock, the other is missing.
        "wall-clock" | "cpu-clock" | "cgroup.memory" | "cgroup.cpu" | "cgroup.pids" => Ok(json!({})),
        _ => posture::outside(id, instance, tool, init),
    }
}

fn sure(holds: bool, what: impl std::fmt::Debug) -> Result<(), String> {
    if holds { Ok(()) } else { Err(format!("{what:?}")) }
}

fn id_maps(user: &OrdinaryUser, tool: &Process) -> Result<Value, String> {
    let mut ids = Vec::new();
    for map in ["uid_map", "gid_map"] {
        let text = tool.file(map);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        let wanted = match user.range() {
            Some(_) => {
                let init: u32 = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
                vec![format!("65533 {init} 1"), format!("65534 {} 1", init + 1)]
            }
            None => vec![format!("65534 {} 1", if map == "uid_map" { user.uid() } else { user.gid() })],
        };
        sure(lines == wanted, (&lines, &wanted))?;
        ids.extend(lines);
    }
    Ok(json!({ "ids": ids }))
}

fn identity(user: &OrdinaryUser, tool: &Process, init: &Process) -> Result<Value, String> {
    let ids = |field: &str| -> Vec<u32> {
        tool.status(field).split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let (uids, gids) = (ids("Uid"), ids("Gid"));
    let same = [&uids, &gids].iter().all(|ids| ids.len() == 4 && ids.iter().all(|id| *id == ids[0]));
    match user.range() {
        Some((first, count)) => {
            let in_range = (first..first + count).contains(&uids[0]);
            sure(same && in_range && init.uid != uids[0] && tool.status("Groups").is_empty(), (&uids, &gids, init))?;
            Ok(json!({ "uids": uids, "gids": gids, "groups": [] }))
        }
        None => {
            sure(same && uids[0] == user.uid() && gids[0] == user.gid(), (&uids, &gids))?;
            Ok(json!({ "uids": uids, "gids": gids }))
        }
    }
}

fn devices(tool: &Process) -> Result<Value, String> {
    let without = |option: &str| posture::without(tool, option);
    let (suid, devices) = (without("nosuid"), without("nodev"));
    let nodes = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
    let as_set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<_>>();
    sure(suid.is_empty() && as_set(&devices) == as_set(&nodes.map(str::to_owned)), (&suid, &devices))?;
    Ok(json!({ "suid_on": suid, "devices_on": devices }))
}

#[test]
fn a_live_cell_seen_from_outside_equals_the_report() {
    needs!(Need::OrdinaryUsers, Need::Tool("nsenter"));
    for user in both_users() {
        let instance = start(&user);
        let request = Request::program("waits", &[]).limits(posture::limits());
        let running = Running::until_up(&instance, &request);
        let cell = instance.cell_processes();
        let tool = cell.iter().find(|process| process.name == "waits").expect("the tool is there").clone();
        let init = Process::read(tool.parent).expect("the tool's parent is the cell's init");
        let seen: Vec<_> =
            ControlId::ALL.into_iter().map(|id| (id, outside(id, &user, &instance, (&tool, &init)))).collect();
        assert_eq!(running.cancel().status() / 100, 2);
        let answer = running.answer();
        let mut wrong = Vec::new();
        for (id, seen) in &seen {
            let item = answer.controls.iter().find(|item| item["id"] == id.as_str()).expect("all 29 are reported");
            let same = |(name, value): (&String, &Value)| item["observed"][name] == *value;
            let state = if missing(&user).contains(id.as_str()) { "unavailable" } else { "enforced" };
            match seen {
                Ok(facts) if item["state"] == state && facts.as_object().unwrap().iter().all(same) => {}
                Ok(facts) => wrong.push(format!("{id}: seen from outside: {facts}, reported: {item}")),
                Err(what) => wrong.push(format!("{id}: does not hold: {what}, reported: {item}")),
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}\ntool {tool:?}\ninit {init:?}");
    }
}

#[test]
fn every_denied_act_fails_inside_and_gets_through_outside() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        crate::escapes::every_denied_act_fails_in(&instance);
        crate::escapes::every_denied_act_fails_in_a_cell_with_mounts_of(&instance);
    }
}

#[test]
fn a_cell_cannot_reach_its_user_s_other_processes_or_files() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        let mut sleeper = Live::start(user.command("sleep").arg("60"));
        let (launcher, pid) = (instance.launcher().pid, sleeper.pid());
        let script = format!(
            "for p in {launcher} {pid} {}; do kill -0 $p 2>&1; cat /proc/$p/environ 2>&1; done; ls {} 2>&1; echo done",
            instance.daemon().pid,
            user.home().display()
        );
        let answer = instance.call(&Request::shell(&script));
        let text = serde_json::to_value(&answer.stdout).unwrap().as_str().unwrap().to_owned();
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let failures = lines.iter().filter(|line| line.contains("No such")).count();
        assert_eq!((failures, lines.len()), (7, 8), "{text}");
        assert!(!sleeper.has_ended(), "the control: it is there to be reached");
    }
}

#[test]
fn the_parts_run_as_the_user_with_no_privilege_and_see_nothing_of_the_user_s() {
    needs!(Need::OrdinaryUsers);
    for user in both_users() {
        let instance = start(&user);
        assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
        let launcher = instance.launcher();
        for (process, place) in [(instance.daemon(), "state"), (instance.signer(), "signer")] {
            let what = &process.line;
            for (field, id) in [("Uid", user.uid()), ("Gid", user.gid())] {
                let ids: Vec<String> = process.status(field).split_whitespace().map(str::to_owned).collect();
                assert_eq!(ids, vec![id.to_string(); 4], "{field} of {what}");
            }
            for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
                assert_eq!(process.status(set), "0000000000000000", "{set} of {what}");
            }
            posture::is_shut_in(&instance, &process, if place == "state" { "daemon" } else { "signer" });
            assert!(!posture::is_dumpable(&process), "{what}");
            for kind in ["user", "mnt", "net", "ipc"] {
                assert_ne!(process.namespace(kind), launcher.namespace(kind), "{kind} of {what}");
            }
            let seen: Vec<String> = posture::names(&process.root("/")).into_iter().collect();
            assert_eq!(seen, [place], "nothing else of the host is in reach of {what}");
            for (number, link) in descriptors_of(process.pid) {
                let path = process.root("/").join(link.trim_start_matches('/'));
                let leads_out = link.starts_with('/') && !path.exists() && std::path::Path::new(&link).is_dir();
                assert!(!leads_out, "descriptor {number} of {what} is a folder of the host's: {link}");
            }
        }
        assert_ne!(launcher.namespace("user"), Process::read(std::process::id()).unwrap().namespace("user"));
        let hidden = instance.daemon().root("/state/signer");
        assert_eq!(posture::names(&hidden), BTreeSet::new(), "the key is covered");
        let shown = posture::names(&instance.home().state().join("signer"));
        assert!(shown.contains("public.pem"), "the control: {shown:?}");
    }
}
