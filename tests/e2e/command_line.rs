//! What a user types and what comes back: data on standard output, talk on standard error, exit codes by the table.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use toolcell_tests::{
    Finished, Instance, Live, Need, PROGRAMS_INSIDE, Request, eventually, needs, program_inside, programs_dir, run,
    run_with_input, toolcell,
};
use toolcell_types::{Answer, CallsPage, Verdict};

/// `toolcell run` with these words.
fn cell(instance: &Instance, words: &[&str]) -> Finished {
    run(&mut instance.cli(&[&["run"], words].concat()))
}

/// `--ro` for the suite's own programs.
fn programs() -> String {
    format!("{}:{PROGRAMS_INSIDE}", programs_dir().display())
}

#[test]
fn exit_codes_are_those_of_the_table() {
    needs!(Need::Root);
    let instance = Instance::start();
    let ro = programs();
    let own = |name: &str| program_inside(name);
    let (waits, floods, hog, bomb, dies) =
        (own("waits"), own("floods"), own("memory_hog"), own("fork_bomb"), own("dies"));
    for (words, code) in [
        (vec!["--", "sh", "-c", "exit 0"], 0),
        (vec!["--", "sh", "-c", "exit 3"], 3),
        (vec!["--", "sh", "-c", "exit 137"], 137),
        (vec!["--timeout", "200ms", "--", &waits], 124),
        (vec!["--cpu-time", "200ms", "--", "sh", "-c", "while :; do :; done"], 124),
        (vec!["--output-limit", "1m", "--", &floods, "0"], 124),
        (vec!["--memory", "16m", "--", &hog, "main"], 137),
        (vec!["--pids", "8", "--", &bomb, "exit"], 137),
        (vec!["--", &dies, "15"], 143),
        (vec!["--", "no-such-program"], 127),
        (vec!["--", "/etc/passwd"], 126),
        (vec!["-w", "/nowhere", "--", "true"], 125),
        (vec!["--ro", "/nowhere/at/all:/data", "--", "true"], 126),
        (vec!["--ro", "/usr/share:/etc", "--", "true"], 126),
        (vec!["--timeout", "2h", "--", "true"], 126),
        (vec!["--image", "nothing", "--", "true"], 126),
    ] {
        let words: Vec<&str> = ["--ro", &ro].into_iter().chain(words).collect();
        let plain = cell(&instance, &words);
        assert_eq!(plain.code, code, "{words:?}: {}", plain.stderr);
        let with: Vec<&str> = ["--json"].into_iter().chain(words.clone()).collect();
        assert_eq!(cell(&instance, &with).code, code, "--json changes none: {words:?}");
    }
}

#[test]
fn wrong_command_lines_are_said_so_and_start_nothing() {
    needs!(Need::Root);
    let instance = Instance::start();
    for (words, names) in [
        (vec!["--timeout", "0", "--", "true"], "timeout"),
        (vec!["--timeout", "5parsecs", "--", "true"], "timeout"),
        (vec!["--memory", "-1", "--", "true"], "memory"),
        (vec!["--nonsense", "--", "true"], "nonsense"),
        (vec!["--"], "ARGV"),
        (vec!["-v", "/usr:/data:rw", "--", "true"], "ro"),
        (vec!["--network", "host", "--", "true"], "none"),
        (vec!["-e", "1A=b", "--", "true"], "NAME"),
        (vec!["-w", "relative", "--", "true"], "absolute"),
    ] {
        let finished = cell(&instance, &words);
        assert_eq!(finished.code, 125, "{words:?}: {}", finished.stderr);
        assert!(finished.stderr.contains(names) && finished.stdout.is_empty(), "{words:?}: {}", finished.stderr);
    }
    for words in [vec!["calls", "--nonsense"], vec!["call"], vec!["verify"], vec!["nonsense"], vec!["cancel", "a b"]] {
        let finished = run(&mut toolcell(&words));
        assert_eq!((finished.code, finished.stdout.len()), (2, 0), "{words:?}: {}", finished.stderr);
    }
    assert_eq!(instance.receipts().len(), 1, "only the genesis");
}

#[test]
fn output_comes_as_it_is_written_and_ctrl_c_cancels() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut live =
        Live::start(&mut instance.cli(&["run", "--ro", &programs(), "--", &program_inside("waits"), "deaf"]));
    live.read_until("up\n");
    let running: CallsPage = instance.get("/v1/calls").json();
    assert_eq!(instance.health().live_calls, 1, "it is still running: {running:?}");
    live.signal(Signal::SIGINT);
    let finished = live.finish();
    assert_eq!(finished.code, 130, "{}", finished.stderr);
    let call = &running.calls[0];
    let answer = instance.get(&format!("/v1/calls/{}", call.call_id)).answer();
    assert_eq!(answer.verdict, Verdict::Cancelled);
    assert!(finished.stderr.contains("cancelled"), "{}", finished.stderr);
}

#[test]
fn a_closed_standard_output_cancels_the_program() {
    needs!(Need::Root, Need::Tool("bash"));
    let instance = Instance::start();
    let line = instance.cli(&["run", "--ro", &programs(), "--timeout", "50s", "--"]);
    let mut words: Vec<String> = vec![line.get_program().to_string_lossy().into_owned()];
    words.extend(line.get_args().map(|word| word.to_string_lossy().into_owned()));
    let script = "\"$@\" 2>/dev/null | head -c 10 >/dev/null; echo ${PIPESTATUS[0]}";
    let mut bash = toolcell_tests::command("bash");
    bash.args(["-c", script, "bash"]).args(words).args([&program_inside("floods"), "0"]);
    assert_eq!(run(&mut bash).expect_code(0).text(), "141\n");
    eventually("the call to be over", || (instance.health().live_calls == 0).then_some(()));
    let page: CallsPage = instance.get("/v1/calls").json();
    let answer = instance.get(&format!("/v1/calls/{}", page.calls[0].call_id)).answer();
    assert!(matches!(answer.verdict, Verdict::Cancelled | Verdict::OutputLimit), "{:?}", answer.verdict);
}

#[test]
fn both_streams_come_to_where_they_belong() {
    needs!(Need::Root);
    let instance = Instance::start();
    let finished = cell(&instance, &["--", "sh", "-c", "seq 50000; echo talk >&2; exit 4"]);
    let expected: String = (1..=50_000).map(|n| format!("{n}\n")).collect();
    assert!(finished.text() == expected, "{} bytes", finished.stdout.len());
    let mut lines = finished.stderr.lines();
    assert_eq!(lines.next(), Some("talk"));
    let last: Vec<&str> = lines.collect();
    assert_eq!(last.len(), 1, "one line of ours: {last:?}");
    assert!(last[0].contains("exited") && last[0].contains("29"), "{last:?}");
}

#[test]
fn json_is_exactly_one_object_the_stored_answer() {
    needs!(Need::Root);
    let instance = Instance::start();
    let finished = cell(&instance, &["--json", "--", "sh", "-c", "echo out; echo err >&2; exit 3"]).expect_code(3);
    let answer: Answer = serde_json::from_value(finished.json()).unwrap();
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 3 });
    assert_eq!((json!(answer.stdout), json!(answer.stderr)), (json!("out\n"), json!("err\n")));
    assert_eq!(instance.get(&format!("/v1/calls/{}", answer.call_id)).answer(), answer);

    let refused = cell(&instance, &["--json", "--ro", "/usr/share:/etc", "--", "true"]).expect_code(126);
    let problem = refused.json();
    assert!(problem["type"].as_str().unwrap().starts_with("urn:toolcell:problem:"), "{problem}");
}

#[test]
fn standard_input_is_a_file_ours_or_nothing() {
    needs!(Need::Root);
    let instance = Instance::start();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "b\na\n").unwrap();
    let path = file.path().to_string_lossy().into_owned();
    assert_eq!(cell(&instance, &["--stdin", &path, "--", "sort"]).expect_code(0).text(), "a\nb\n");
    let piped = run_with_input(&mut instance.cli(&["run", "--stdin", "-", "--", "wc", "-c"]), b"\xff\x00xyz");
    assert_eq!(piped.expect_code(0).text(), "5\n");
    let none = run_with_input(&mut instance.cli(&["run", "--", "wc", "-c"]), b"ignored");
    assert_eq!(none.expect_code(0).text(), "0\n");
    let missing = cell(&instance, &["--stdin", "/nowhere/at/all", "--", "true"]);
    assert!(missing.code != 0 && missing.stderr.contains("/nowhere/at/all"), "{}", missing.stderr);
}

#[test]
fn variables_directory_and_mounts_are_as_asked() {
    needs!(Need::Root);
    let instance = Instance::start();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "content\n").unwrap();
    let host = dir.path().to_string_lossy().into_owned();
    let ro = format!("{host}:/data");
    let words = ["--ro", &ro, "-w", "/data", "-e", "A=b c", "--", "sh", "-c", "cat file; echo $A; pwd"];
    assert_eq!(cell(&instance, &words).expect_code(0).text(), "content\nb c\n/data\n");
    let volume = format!("{host}:/data:ro");
    let words = ["-v", &volume, "--read-only", "--network", "none", "--", "sh", "-c", "echo x > /data/new"];
    let refused = cell(&instance, &words);
    assert!(refused.code != 0 && refused.stderr.contains("ead-only"), "{}", refused.stderr);
    assert!(!dir.path().join("new").exists());
    let mut with = instance.cli(&["run", "-e", "FROM_HERE", "--", "sh", "-c", "echo $FROM_HERE"]);
    assert_eq!(run(with.env("FROM_HERE", "yes")).expect_code(0).text(), "yes\n");
    let mut relative = instance.cli(&["run", "--ro", "file:/data", "--", "cat", "/data"]);
    assert_eq!(run(relative.current_dir(dir.path())).expect_code(0).text(), "content\n");
}

#[test]
fn limits_are_what_was_typed() {
    needs!(Need::Root);
    let instance = Instance::start();
    let words = [
        "--json",
        "--timeout",
        "3s",
        "--cpu-time",
        "2500ms",
        "--memory",
        "64m",
        "--pids",
        "17",
        "--cpus",
        "0.5",
        "--output-keep",
        "4k",
        "--output-limit",
        "2m",
        "--tmp-size",
        "8m",
        "--",
        "true",
    ];
    let answer: Answer = serde_json::from_value(cell(&instance, &words).expect_code(0).json()).unwrap();
    let asked = |id: &str| {
        let item = answer.controls.iter().find(|item| item["id"] == id).unwrap();
        item["requested"].to_string()
    };
    for (id, number) in [
        ("wall-clock", "3000"),
        ("cpu-clock", "2500"),
        ("cgroup.memory", "67108864"),
        ("cgroup.pids", "17"),
        ("cgroup.cpu", "50"),
        ("output.cap", "4096"),
        ("output.cap", "2097152"),
        ("tmp.quota", "8388608"),
    ] {
        assert!(asked(id).contains(number), "{id}: {number} in {}", asked(id));
    }
}

#[test]
fn a_named_call_is_run_once() {
    needs!(Need::Root);
    let instance = Instance::start();
    let words = ["--call-id", "mine", "--", "cat", "/proc/sys/kernel/random/uuid"];
    let first = cell(&instance, &words).expect_code(0);
    let second = cell(&instance, &words).expect_code(0);
    assert_eq!(first.text(), second.text());
    assert_eq!(cell(&instance, &["--call-id", "mine", "--", "true"]).code, 126, "another request under that name");
    assert_eq!(instance.receipts().len(), 3);
}

#[test]
fn tools_calls_receipts_keys_and_cancel_show_the_instance() {
    needs!(Need::Root);
    let instance = Instance::start();
    let ask = |words: &[&str]| run(&mut instance.cli(words));
    let called = ask(&["call", "python", "{\"code\":\"print(6*7)\"}"]).expect_code(0);
    assert!(called.text().contains("42"), "{}", called.text());
    assert_eq!(ask(&["call", "python", "{\"code\":\"exit(3)\"}"]).code, 1);
    assert_eq!(ask(&["call", "python", "{}"]).code, 1, "refused");
    assert_eq!(ask(&["call", "python", "nonsense"]).code, 2, "no JSON");

    let tools = ask(&["tools"]).expect_code(0).text();
    assert!(tools.contains("python") && tools.contains("exec"), "{tools}");
    assert_eq!(ask(&["tools", "--json"]).expect_code(0).json()["tools"].as_array().map(Vec::len), Some(2));
    let calls = ask(&["calls", "--json"]).expect_code(0).json();
    assert_eq!(calls["calls"].as_array().map(Vec::len), Some(2));
    let id = calls["calls"][1]["call_id"].as_str().unwrap().to_owned();
    assert!(ask(&["calls"]).expect_code(0).text().contains(&id));
    let one: Answer = serde_json::from_value(ask(&["calls", &id, "--json"]).expect_code(0).json()).unwrap();
    assert_eq!(one.verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!(ask(&["calls", &id, "--output", "stdout"]).expect_code(0).text(), "42\n");

    let list = ask(&["receipts", "--json"]).expect_code(0).json();
    assert_eq!(list["receipts"].as_array().map(Vec::len), Some(5));
    let envelope = ask(&["receipts", "2"]).expect_code(0).json();
    assert_eq!(envelope, list["receipts"][2]["envelope"]);
    let key = ask(&["keys", "show"]).expect_code(0);
    assert!(key.text().starts_with("-----BEGIN PUBLIC KEY-----\n"), "{}", key.text());
    let keyid = ask(&["keys", "show", "--json"]).expect_code(0).json();
    assert!(format!("{keyid}").contains(&one.receipt.signatures[0].keyid), "{keyid}");
    assert!(key.stderr.contains(&one.receipt.signatures[0].keyid), "the id is talk: {}", key.stderr);

    assert_eq!(ask(&["cancel", "none"]).code, 1, "no such call");
    let running = toolcell_tests::Running::until_up(&instance, &Request::program("waits", &["deaf"]));
    assert_eq!(ask(&["cancel", &running.call_id]).code, 0);
    assert_eq!(running.answer().verdict, Verdict::Cancelled);
}

#[test]
fn every_command_has_a_help_that_a_newcomer_can_work_from() {
    needs!(Need::Root);
    let top = run(&mut toolcell(&["--help"])).expect_code(0).text();
    for name in ["run", "serve", "call", "tools", "calls", "cancel", "receipts", "keys", "verify"] {
        assert!(top.contains(&format!("  {name} ")), "{name} in {top}");
        let help = run(&mut toolcell(&[name, "--help"])).expect_code(0).text();
        assert!(help.contains("Usage: toolcell"), "{name}: {help}");
    }
    for hidden in ["launcher", "signer", "daemon"] {
        assert!(!top.contains(&format!("  {hidden} ")), "{hidden} in {top}");
    }
    let help = run(&mut toolcell(&["run", "--help"])).expect_code(0).text();
    for words in ["124", "125", "126", "127", "128+n", "130", "137", "--json", "receipt", "toolcell run --"] {
        assert!(help.contains(words), "{words} in {help}");
    }
}

#[test]
fn the_request_file_is_exactly_what_the_receipt_is_about() {
    needs!(Need::Root);
    let instance = Instance::start();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("request.json").to_string_lossy().into_owned();
    let finished = cell(&instance, &["--json", "--request-out", &file, "-e", "Ä=ö", "--", "true"]);
    assert_eq!(finished.code, 125, "a variable's name is ASCII");
    let finished = cell(&instance, &["--json", "--request-out", &file, "-e", "A=ö", "--", "true"]).expect_code(0);
    use base64::Engine as _;
    use sha2::Digest as _;
    let answer: Answer = serde_json::from_value(finished.json()).unwrap();
    let payload = base64::engine::general_purpose::STANDARD.decode(answer.receipt.payload).unwrap();
    let statement: Value = serde_json::from_slice(&payload).unwrap();
    let digest = toolcell_types::Sha256(sha2::Sha256::digest(std::fs::read(&file).unwrap()).into());
    assert_eq!(statement["subject"][0]["digest"]["sha256"], digest.hex().as_str());
}
