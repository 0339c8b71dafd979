//! The product's own probes against the product: nothing gets out of a cell, each control carries weight, and what gets
//! out with one control off is what the checked-in table says.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;
use toolcell_tests::{
    Instance, Need, Opens, OrdinaryUser, Process, Request, Running, needs, run, toolcell, workspace_root,
};
use toolcell_types::ControlId;

/// What an ordinary user without groups lacks.
const MISSING: &str = "cgroup.memory,cgroup.cpu,cgroup.pids,cpu-clock";

fn probes_dir() -> PathBuf {
    workspace_root().join("tests/probes")
}

fn probe_names() -> BTreeSet<String> {
    let entries = std::fs::read_dir(probes_dir()).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn opens() -> Opens {
    Opens::read(&std::fs::read_to_string(probes_dir().join("opens.toml")).unwrap(), &probe_names()).unwrap()
}

/// So many probes apply at least, on any machine that has Python.
const APPLY: u64 = 90;

/// Every probe was run, so many at least apply, and none got out of a cell with all controls.
fn assert_tight(report: &Value, apply: u64) {
    let summary = &report["summary"];
    let none = ["reached", "broken", "not_run"].map(|name| summary[name].as_u64().unwrap());
    assert_eq!(none, [0, 0, 0], "{summary}: {:#?}", unlike(report, &["stopped", "not_applicable"]));
    assert!(summary["stopped"].as_u64().unwrap() >= apply, "so many apply here: {summary}");
}

/// Probes whose baseline is none of these.
fn unlike(report: &Value, expected: &[&str]) -> Vec<Value> {
    let rows = report["probes"].as_array().unwrap().iter();
    let others = rows.filter(|row| !expected.contains(&row["baseline"]["outcome"].as_str().unwrap()));
    others.map(|row| serde_json::json!([row["id"], row["baseline"]])).collect()
}

/// A whole run is long, and made once by `tests/run` with the release binary: `TOOLCELL_ABLATE_REPORT` names what
/// `toolcell ablate --declared --json` has printed. Without it this is a part that takes a minute, and no control's weight.
#[test]
fn nothing_gets_out_and_every_control_carries_weight() {
    needs!(Need::Root, Need::Tool("gcc"), Need::Tool("python3"));
    let given = std::env::var_os("TOOLCELL_ABLATE_REPORT");
    let report: Value = match &given {
        Some(path) => serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap(),
        None => {
            let classes = "^(network|abstract-sockets|path-sockets|ipc|secrets)$";
            let controls = "namespace.net,namespace.ipc,environment.allowlist";
            let state = tempfile::tempdir_in("/var/tmp").unwrap();
            let mut line = toolcell(&["ablate", "--declared", "--json", "--controls", controls, "--probes", classes]);
            run(line.arg("--state").arg(state.path().join("state"))).json()
        }
    };
    assert_tight(&report, if given.is_some() { APPLY } else { 20 });
    let rows = report["probes"].as_array().unwrap().iter();
    let wrong: Vec<&Value> = rows.filter(|row| row["declared"]["state"] == "fails").collect();
    assert!(wrong.is_empty(), "not as declared: {wrong:#?}");
    let rows = report["controls"].as_array().unwrap();
    for id in ControlId::ALL.into_iter().filter(|_| given.is_some()) {
        let row = rows.iter().find(|row| row["id"] == id.as_str()).expect("every control was switched off");
        assert!(row["stops_alone"].as_u64().unwrap() > 0, "{id} carries no weight: {row}");
    }
    let difference = opens().compare(&report).unwrap();
    assert_eq!(difference.unexpected, Vec::<String>::new(), "more gets out than the table says");
    // How full the machine's own file systems are is not ours to say.
    let closed = difference.closed.iter().filter(|row| !row.starts_with("namespace.mount: "));
    assert_eq!(closed.collect::<Vec<_>>(), Vec::<&String>::new(), "the table says of more that it gets out");
}

#[test]
fn nothing_gets_out_of_an_ordinary_user_s_cells() {
    needs!(Need::Root, Need::OrdinaryUsers, Need::Tool("gcc"), Need::Tool("python3"));
    let user = OrdinaryUser::with_ids();
    let finished =
        run(&mut user.toolcell(&["ablate", "--controls", "none", "--json", "--accept-unavailable", MISSING]));
    let report = finished.json();
    assert_tight(&report, APPLY);
    let missing: BTreeSet<&str> = report["unavailable"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(missing, MISSING.split(',').collect(), "what is missing is said, and no more");
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn probes_that_need_no_python_get_out_of_no_cell_here() {
    needs!(Need::Root);
    let state = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut line = toolcell(&["ablate", "--controls", "none", "--json", "--probes", r"\.c$"]);
    if let Some(compiled) = std::env::var_os("TOOLCELL_TESTS_PROBES") {
        line.arg("--programs").arg(compiled);
    }
    let finished = run(line.arg("--state").arg(state.path().join("state")));
    assert_tight(&finished.json(), APPLY);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn doctor_runs_the_probes_too() {
    needs!(Need::Root, Need::Tool("gcc"), Need::Tool("python3"));
    let state = tempfile::tempdir_in("/var/tmp").unwrap();
    let mut line = toolcell(&["doctor", "--probe", "--json", "--state"]);
    let finished = run(line.arg(state.path().join("state")).args(["--socket", "/run/toolcell/no-such.sock"]));
    let report = finished.json();
    assert_eq!((&report["ready"], &report["probes"]["summary"]["good"]), (&true.into(), &true.into()), "{report}");
    assert_tight(&report["probes"], APPLY);
    assert_eq!(finished.code, 0, "{}", finished.stderr);
}

#[test]
fn what_a_call_brings_is_on_no_command_line_of_ours() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::program("waits", &["secret-argument"]).with("env", serde_json::json!({"A": "secret-value"}));
    let running = Running::until_up(&instance, &request);
    let tool = running.process("waits");
    let environ = |process: &Process| {
        let bytes = std::fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    };
    let seen = |process: &Process| process.line.contains("secret") || environ(process).contains("secret-value");
    let holders: Vec<u32> = Process::all().iter().filter(|process| seen(process)).map(|process| process.pid).collect();
    assert_eq!(holders, [tool.pid], "the tool itself and nobody else");
    assert_eq!(running.cancel().status() / 100, 2);
    let _answer = running.answer();
}

#[test]
fn the_table_in_the_security_page_is_the_probes_table() {
    let page = std::fs::read_to_string(workspace_root().join("SECURITY.md")).unwrap();
    let table = opens().to_markdown();
    assert!(page.contains(&table), "SECURITY.md has another table; what opens.toml comes to:\n{table}");
}
