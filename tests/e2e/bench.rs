//! `toolcell bench`: that it measures what it says, and leaves nothing. What it measured is of no interest here.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use toolcell_tests::{Live, Need, Process, command, eventually, needs, run, toolcell, toolcell_path, within};

/// What is left of it in a folder of its own: files, and processes that name it.
fn left(dir: &Path) -> Vec<String> {
    let text = dir.display().to_string();
    let files = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path().display().to_string());
    let processes = Process::all().into_iter().map(|process| process.line).filter(|line| line.contains(&text));
    files.chain(processes).collect()
}

#[test]
fn every_way_is_measured_in_one_run_and_nothing_stays() {
    needs!(Need::Root, Need::Tool("bwrap"));
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = dir.path().display().to_string();
    let mut line = toolcell(&["bench", "--rounds", "3", "--memory-calls", "8", "--dir", &place, "--json"]);
    let report = run(&mut line).expect_code(0).json();
    let ways = report["ways"].as_array().unwrap();
    let median = |name: &str| {
        let way = ways.iter().find(|way| way["way"] == name).unwrap_or_else(|| panic!("no {name} in {report}"));
        way["took"]["median_ms"].as_f64().unwrap()
    };
    assert!(median("native") > 0.0 && median("bwrap") > median("native") && median("call") > median("native"));
    let call = ways.iter().find(|way| way["way"] == "call").unwrap();
    let ratio = call["ratio_to_bwrap"].as_f64().unwrap();
    assert!((ratio - median("call") / median("bwrap")).abs() < 0.001, "{call}");
    let stages: Vec<&str> =
        report["stages"].as_array().unwrap().iter().map(|one| one["stage"].as_str().unwrap()).collect();
    assert_eq!(stages, ["decode", "gate", "plan", "arm", "intent", "ready", "run", "outcome"]);
    let flights: Vec<u64> =
        report["flights"].as_array().unwrap().iter().map(|one| one["in_flight"].as_u64().unwrap()).collect();
    assert_eq!(flights, [2, 8, 16]);
    let processes = |at: &str| {
        let all = report["memory"][at].as_array().unwrap().iter();
        let mut names: Vec<String> = all.map(|one| one["process"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(processes("idle"), ["daemon", "launcher", "opener", "signer"]);
    assert_eq!(processes("after"), processes("idle"));
    assert!(report["memory"]["idle_bytes"].as_u64().unwrap() > 1 << 20);
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

#[test]
fn an_interrupted_run_takes_everything_with_it() {
    needs!(Need::Root);
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let place = dir.path().display().to_string();
    let live = Live::start(&mut toolcell(&["bench", "--rounds", "100000", "--dir", &place]));
    eventually("its instance to run", || (left(dir.path()).len() > 2).then_some(()));
    let pid = nix::unistd::Pid::from_raw(i32::try_from(live.pid()).unwrap());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    let finished = live.finish();
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    assert!(finished.stderr.contains("interrupted"), "{}", finished.stderr);
    assert_eq!(left(dir.path()), Vec::<String>::new());
}

#[test]
fn what_it_cannot_measure_it_says_with_the_reason() {
    needs!(Need::Root, Need::Tool("unshare"));
    let finished = run(&mut toolcell(&["bench", "--dir", "/nonexistent"]));
    assert_eq!(finished.code, 1);
    assert!(finished.stderr.contains("/nonexistent") && finished.stderr.contains("--dir"), "{}", finished.stderr);
    // An instance that ends before it answers tells why.
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let script = "set -e; umount -l /sys/fs/cgroup; exec \"$0\" bench --rounds 1 --dir \"$1\"";
    let mut line = command("unshare");
    line.args(["--mount", "--propagation", "private", "--", "/bin/sh", "-c", script])
        .arg(toolcell_path())
        .arg(dir.path());
    let finished = run(&mut line);
    assert_eq!(finished.code, 1, "{}", finished.stderr);
    assert!(finished.stderr.contains("version 1 lacks"), "{}", finished.stderr);
    within(Duration::from_secs(10), "nothing to be left", || left(dir.path()).is_empty().then_some(()));
}

#[test]
fn the_answer_of_a_call_that_ran_tells_its_stages() {
    needs!(Need::Root);
    let instance = toolcell_tests::Instance::start();
    let request = toolcell_tests::Request::exec(&["true"]);
    let timing = |response: &toolcell_tests::Response| response.head.header("server-timing").map(str::to_owned);
    let first = instance.post(&request);
    let stages = timing(&first).unwrap();
    let names: Vec<&str> = stages.split(", ").map(|stage| stage.split(";dur=").next().unwrap()).collect();
    assert_eq!(names, ["decode", "gate", "plan", "arm", "intent", "ready", "run", "outcome"]);
    assert!(stages.split(", ").all(|stage| stage.split(";dur=").nth(1).unwrap().parse::<f64>().is_ok()), "{stages}");
    assert_eq!(timing(&instance.post(&request)), None, "a replay measures nothing");
    let _answer: Value = serde_json::from_slice(&first.body).unwrap();
}
