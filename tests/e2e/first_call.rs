//! A newcomer's first minutes: the README's command, and the daemon that it starts by itself.

use toolcell_tests::{FreshMachine, Live, Need, Setup, needs, run, workspace_root};
use toolcell_types::Health;

const MACHINE: [Need; 3] = [Need::Root, Need::Tool("nsenter"), Need::Tool("unshare")];

fn health(machine: &FreshMachine) -> Health {
    machine.connect().expect("a daemon listens").ask("GET", "/healthz", &[], b"").expect("it answers").json()
}

#[test]
fn the_readme_s_command_builds_starts_what_it_needs_and_prints_42() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2], Need::Tool("cargo"));
    let readme = std::fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let line = readme.lines().map(str::trim).find(|line| line.starts_with("cargo run --release -- run "));
    let line = line.expect("the README has the command");
    assert_eq!(line, "cargo run --release -- run -- python3 -c 'print(6*7)'");
    // The build of the tests is taken instead of a second one: `tests/run` runs the line as it stands.
    let line = line.replace("cargo run --release", "exec cargo run --quiet");
    let machine = FreshMachine::new();
    let script = format!("cd '{}' && {line}", workspace_root().display());
    let first = run(machine.command("/bin/sh").args(["-c", &script])).expect_code(0);
    assert_eq!(first.text(), "42\n");
    let said: Vec<&str> = first.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = said.last().expect("one line about the call");
    assert!(last.contains("exited") && last.contains("29"), "verdict and controls: {:?}", first.stderr);
    assert!(last.contains("receipt"), "where the receipt is: {last}");
    assert!(health(&machine).ends_when_idle);
    machine.stop_daemon();
}

/// The README's shell examples, line by line, without those that build or test. Those with containers are in a block of
/// another kind: nothing can be had from a registry here, and the module `container` does what they stand for.
fn readme_examples() -> Vec<String> {
    let readme = std::fs::read_to_string(workspace_root().join("README.md")).unwrap();
    let blocks = readme.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    let text = blocks.collect::<String>().replace("\\\n", " ");
    let skip = ["cargo ", "tests/", "toolcell="];
    text.lines()
        .filter(|line| !line.is_empty() && !skip.iter().any(|word| line.starts_with(word)))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_readme_s_examples_do_what_they_say() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2], Need::Tool("curl"), Need::Tool("bash"));
    let machine = FreshMachine::new();
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let binary = toolcell_tests::toolcell_path().to_string_lossy().into_owned();
    let examples = readme_examples();
    assert!(examples.len() >= 8, "{examples:?}");
    for line in examples {
        let line = line.replace("target/release/toolcell", &binary);
        let script = format!("toolcell={binary}; cd {}; {line}", dir.path().display());
        let ran = run(machine.command("bash").args(["-c", &script]));
        // What the line itself says, by its program or its comment; else it must go well.
        let expected = match &line {
            line if line.contains("exit 3") => 3,
            line if line.contains("exit code 124") => 124,
            _ => 0,
        };
        assert_eq!(ran.code, expected, "{line}\n{}\n{}", ran.text(), ran.stderr);
        assert!(!ran.text().contains("urn:toolcell:problem"), "{line}\n{}", ran.text());
    }
    machine.stop_daemon();
}

#[test]
fn the_second_call_finds_the_first_one_s_daemon_and_says_one_line_only() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2]);
    let machine = FreshMachine::new();
    assert_eq!(run(&mut machine.toolcell(&["run", "--", "echo", "1"])).expect_code(0).text(), "1\n");
    let first = machine.launchers();
    let second = run(&mut machine.toolcell(&["run", "--", "echo", "2"])).expect_code(0);
    assert_eq!((second.text().as_str(), machine.launchers()), ("2\n", first));
    assert_eq!(second.stderr.trim_end().lines().count(), 1, "{}", second.stderr);
    let state = machine.outside("/var/lib/toolcell");
    for name in ["ledger.db", "signer", "blobs"] {
        assert!(state.join(name).exists(), "{name}");
    }
    machine.stop_daemon();
    assert!(!machine.socket().exists(), "the socket goes with it");
}

#[test]
fn two_starts_at_once_share_one_daemon() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2]);
    let machine = FreshMachine::new();
    let starts: Vec<Live> = (0..4).map(|_| Live::start(&mut machine.toolcell(&["run", "--", "echo", "hi"]))).collect();
    for start in starts {
        assert_eq!(start.finish().expect_code(0).text(), "hi\n");
    }
    let launchers = machine.launchers();
    assert_eq!(launchers.len(), 1, "{launchers:?}");
    let calls = run(&mut machine.toolcell(&["calls", "--json"])).expect_code(0).json();
    assert_eq!(calls["calls"].as_array().map(Vec::len), Some(4));
    machine.stop_daemon();
}

#[test]
fn receipts_of_the_default_state_verify_without_a_key() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2]);
    let machine = FreshMachine::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_string_lossy().into_owned();
    let ran = run(&mut machine.toolcell(&["run", "--receipt", &path, "--", "true"])).expect_code(0);
    assert!(ran.stderr.contains(&path), "where the receipt is: {}", ran.stderr);
    let verified = run(&mut machine.toolcell(&["verify", &path])).expect_code(0);
    let said = format!("{}{}", verified.text(), verified.stderr);
    assert!(said.contains("/var/lib/toolcell"), "it says whose key it took: {said}");
    machine.stop_daemon();
}

#[test]
fn a_daemon_that_ends_when_idle_ends_and_leaves_nothing() {
    needs!(Need::Root);
    let instance = Setup::default().flags(&["--idle-exit", "1"]).start();
    assert!(instance.health().ends_when_idle);
    instance.wait_for_its_own_end();
}

/// A copy of the binary with another build id (the note that the linker makes, see ld(1) --build-id).
fn another_build(dir: &std::path::Path) -> String {
    let mut bytes = std::fs::read(toolcell_tests::toolcell_path()).unwrap();
    let note = [4_u32.to_le_bytes(), 20_u32.to_le_bytes(), 3_u32.to_le_bytes(), *b"GNU\0"].concat();
    let at = bytes.windows(note.len()).position(|window| window == note).expect("the binary has a build id");
    bytes[at + note.len()] ^= 1;
    let path = dir.join("toolcell");
    std::fs::write(&path, bytes).unwrap();
    std::os::unix::fs::chown(&path, Some(0), Some(0)).unwrap();
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(&path, mode).unwrap();
    path.to_string_lossy().into_owned()
}

#[test]
fn an_idle_daemon_of_another_build_is_replaced_and_a_busy_one_refused_with_a_word() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2]);
    let machine = FreshMachine::new();
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let other = another_build(dir.path());
    assert_eq!(run(&mut machine.toolcell(&["run", "--", "true"])).code, 0);
    let first = health(&machine);
    let replaced = run(machine.command(&other).args(["run", "--", "echo", "new"])).expect_code(0);
    assert_eq!(replaced.text(), "new\n");
    let second = health(&machine);
    assert!(first.build != second.build && first.instance == second.instance, "{first:?} {second:?}");

    let mut busy = Live::start(machine.command(&other).args(["run", "--", "sh", "-c", "echo up; sleep 50"]));
    busy.read_until("up\n");
    let refused = run(&mut machine.toolcell(&["run", "--", "true"]));
    assert!(refused.code != 0 && refused.stderr.contains("another build"), "{}: {}", refused.code, refused.stderr);
    assert_eq!(health(&machine).build, second.build, "it serves on");
    busy.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(busy.finish().code, 130);
    machine.stop_daemon();
}

#[test]
fn the_key_can_be_shown_before_any_call() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2]);
    let machine = FreshMachine::new();
    let shown = run(&mut machine.toolcell(&["keys", "show"])).expect_code(0);
    assert!(shown.text().starts_with("-----BEGIN PUBLIC KEY-----"), "{}", shown.text());
    let calls = run(&mut machine.toolcell(&["calls", "--json"])).expect_code(0).json();
    assert_eq!(calls["calls"].as_array().map(Vec::len), Some(0));
    machine.stop_daemon();
}

#[test]
fn a_socket_that_was_named_is_asked_and_nothing_is_started_for_it() {
    needs!(MACHINE[0], MACHINE[1], MACHINE[2]);
    let machine = FreshMachine::new();
    for words in [&["calls"][..], &["receipts"], &["keys", "show"], &["tools"]] {
        let words = [words, &["--socket", "/run/toolcell/other.sock"]].concat();
        let asked = run(&mut machine.toolcell(&words));
        assert_ne!(asked.code, 0, "{words:?}");
        assert!(asked.stderr.contains("/run/toolcell/other.sock"), "{words:?}: {}", asked.stderr);
        assert_eq!(machine.launchers(), Vec::<u32>::new(), "{words:?}");
    }
}
