//! `toolcell ablate`: that it believes no probe, sees what gets through with a control off, and leaves nothing. What the
//! probes of the product come to is another module's (`battery`).

use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;
use toolcell_tests::{Finished, Live, Need, Process, eventually, needs, run, toolcell, within};

/// Probes of our own, each with its name.
fn folder(probes: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::create_dir(folder.path().join("probes")).unwrap();
    for (name, text) in probes {
        std::fs::write(folder.path().join("probes").join(name), text).unwrap();
    }
    folder
}

fn ablate(folder: &Path, options: &[&str]) -> std::process::Command {
    let mut line = toolcell(&["ablate"]);
    line.arg("--probes-dir").arg(folder.join("probes")).arg("--state").arg(folder.join("state")).args(options);
    line
}

fn outcome<'a>(report: &'a Value, probe: &str) -> (&'a str, &'a str) {
    let rows = report["probes"].as_array().unwrap();
    let row = rows.iter().find(|row| row["id"] == probe).unwrap_or_else(|| panic!("no {probe} in {report}"));
    let words = ["how", "what", "why"].iter().find_map(|name| row["baseline"][*name].as_str());
    (row["baseline"]["outcome"].as_str().unwrap(), words.unwrap())
}

/// What is left of it beside the probes: files in its folder and processes that name it.
fn left(folder: &Path) -> Vec<String> {
    let text = folder.display().to_string();
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let processes = Process::all().into_iter().map(|process| process.line).filter(|line| line.contains(&text));
    files.filter(|name| name != "probes" && name != "matrix.html").chain(processes).collect()
}

/// Connects to the port that it is given, as far as it is let.
const CONNECT: &str = "\
# class: network
# tries: connect to a TCP port on the loopback of the machine
# stopped-by: namespace.net seccomp landlock.net
# needs: tcp
# witness: tcp secret
import errno, socket, sys
host, port = dict(word.split('=', 1) for word in sys.argv[1:])['tcp'].split(':')
try:
    peer = socket.create_connection((host, int(port)), 2)
except OSError as error:
    print('STOPPED connect:', errno.errorcode.get(error.errno, error))
    sys.exit(1)
peer.sendall(b'x')
print('REACHED the port, which says', peer.recv(100).decode())
";

const HEAD: &str = "# class: files\n# tries: nothing\n# stopped-by: namespace.mount\n";

#[test]
fn no_probe_is_believed_that_nobody_saw_get_through_and_a_crash_is_no_stop() {
    needs!(Need::Root);
    let lies = CONNECT.split_once("import").unwrap().0.to_owned() + "print('REACHED it')\n";
    let folder = folder(&[
        ("connect.py", CONNECT),
        ("lies.py", &lies),
        ("crashes.sh", &format!("{HEAD}echo STOPPED by itself; exit 2\n")),
        ("silent.sh", &format!("{HEAD}exit 1\n")),
        ("killed.sh", &format!("{HEAD}kill -KILL $$\n")),
        ("open.sh", &format!("{HEAD}echo REACHED /usr; ls /usr > /dev/null\n")),
        ("absent.sh", &format!("{HEAD}echo NOT-APPLICABLE no such thing; exit 3\n")),
    ]);
    let finished = run(&mut ablate(folder.path(), &["--controls", "none", "--json"])).expect_code(1);
    let report = finished.json();
    let summary = |name: &str| report["summary"][name].as_u64().unwrap();
    assert_eq!(["stopped", "reached", "broken", "not_applicable"].map(summary), [2, 1, 3, 1], "{report}");
    assert_eq!(outcome(&report, "lies.py"), ("broken", "it says REACHED it, and the witness tcp saw nothing of it"));
    assert_eq!(outcome(&report, "killed.sh"), ("stopped", "killed by SIGKILL"));
    assert_eq!((outcome(&report, "crashes.sh").0, outcome(&report, "silent.sh").0), ("broken", "broken"));
    assert_eq!(outcome(&report, "open.sh"), ("reached", "/usr"));
    assert_eq!(left(folder.path()), Vec::<String>::new());
}

#[test]
fn what_a_probe_declares_is_tried_and_what_opens_is_seen_from_outside() {
    needs!(Need::Root);
    let folder = folder(&[("connect.py", CONNECT)]);
    let page = folder.path().join("matrix.html");
    let options = ["--controls", "namespace.net,seccomp", "--declared", "--json", "--html"];
    let finished = run(ablate(folder.path(), &options).arg(&page)).expect_code(0);
    let report = finished.json();
    assert_eq!(report["summary"]["good"], true, "{report}");
    for control in report["controls"].as_array().unwrap() {
        assert_eq!(control["opens"], serde_json::json!([]), "each of three stops it alone");
        assert_eq!((&control["stops_alone"], &control["tried_alone"]), (&1.into(), &1.into()), "{control}");
    }
    let declared = &report["probes"][0]["declared"];
    assert_eq!(
        (&declared["state"], &declared["all_off"]["outcome"]),
        (&"holds".into(), &"reached".into()),
        "{declared}"
    );
    assert!(declared["all_off"]["what"].as_str().unwrap().contains("secret-"), "{declared}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("connect.py") && !page.contains("<script"));
    assert_eq!(left(folder.path()), Vec::<String>::new());
}

#[test]
fn a_declaration_that_is_not_so_is_told() {
    needs!(Need::Root);
    let folder = folder(&[("connect.py", &CONNECT.replace("namespace.net seccomp landlock.net", "namespace.net"))]);
    let finished = run(&mut ablate(folder.path(), &["--controls", "none", "--declared"])).expect_code(1);
    let text = finished.text();
    assert!(text.contains("NOT AS DECLARED: without all it declares: stopped"), "{text}");
    assert!(text.ends_with("not good: 1 not as declared (2 calls)\n"), "{text}");
}

#[test]
fn an_interrupted_run_takes_everything_with_it() {
    needs!(Need::Root);
    let folder = folder(&[("sleeps.sh", &format!("{HEAD}# needs: victim shm\nsleep 8\n"))]);
    let live = Live::start(&mut ablate(folder.path(), &["--controls", "none"]));
    let bystanders = || {
        let ours = |process: &Process| process.line.contains("bystander") && process.parent == live.pid();
        Process::all().into_iter().filter(ours).collect::<Vec<_>>()
    };
    let two = eventually("its bystanders to run", || Some(bystanders()).filter(|all| all.len() == 2));
    live.signal(Signal::SIGTERM);
    let finished: Finished = live.finish().expect_code(130);
    assert!(finished.stderr.contains("interrupted"), "{}", finished.stderr);
    assert_eq!(left(folder.path()), Vec::<String>::new());
    within(std::time::Duration::from_secs(5), "its bystanders to be gone", || {
        two.iter().all(|process| !process.is_alive()).then_some(())
    });
}

#[test]
fn without_a_compiler_what_needs_one_is_named_with_the_one_thing_to_do() {
    needs!(Need::Root);
    let c = HEAD.replace('#', "//") + "int main(void) { return 1; }\n";
    let folder = folder(&[("compiled.c", &c), ("plain.sh", &format!("{HEAD}echo STOPPED x; exit 1\n"))]);
    let without = |options: &[&str]| run(ablate(folder.path(), options).env("PATH", "/nonexistent"));
    let finished = without(&["--controls", "none"]).expect_code(1);
    let text = finished.text();
    assert!(
        text.contains("     1 not run") && text.contains("compiled.c: there is no C compiler here: install gcc"),
        "{text}"
    );
    let _finished = without(&["--controls", "none", "--probes", "plain"]).expect_code(0);
    // One that was compiled elsewhere is taken; this one says nothing.
    std::fs::copy(toolcell_tests::program_on_host("does_nothing"), folder.path().join("compiled")).unwrap();
    let programs = folder.path().display().to_string();
    let report = without(&["--controls", "none", "--json", "--programs", &programs]).expect_code(1).json();
    assert_eq!(outcome(&report, "compiled.c").0, "broken", "{report}");
}

#[test]
fn a_header_that_is_wrong_is_named_with_its_line_before_anything_is_started() {
    let folder = folder(&[("typo.sh", &HEAD.replace("namespace.mount", "namespace.mnt"))]);
    let finished = run(&mut ablate(folder.path(), &[])).expect_code(2);
    assert!(finished.stderr.contains("typo.sh:3: stopped-by does not take \"namespace.mnt\""), "{}", finished.stderr);
    assert!(finished.stderr.contains("hint: correct line 3"), "{}", finished.stderr);
    let page = run(&mut toolcell(&["ablate", "--html", "/nonexistent/x.html"])).expect_code(2);
    assert!(page.stderr.contains("--html FILE"), "{}", page.stderr);
    let none = run(&mut toolcell(&["ablate", "--probes", "^no such probe$"])).expect_code(2);
    assert!(none.stderr.contains("--list"), "{}", none.stderr);
    let list = run(&mut toolcell(&["ablate", "--list"])).expect_code(0).text();
    assert!(list.starts_with("PROBE") && list.contains(".py"), "{list}");
}

#[test]
fn an_instance_that_switches_nothing_off_is_told_apart() {
    needs!(Need::Root);
    let instance = toolcell_tests::Instance::start();
    let socket = instance.socket().display().to_string();
    let refused = run(&mut toolcell(&["ablate", "--socket", &socket, "--controls", "seccomp"])).expect_code(1);
    assert!(refused.stderr.contains("does not switch controls off"), "{}", refused.stderr);
    let folder = folder(&[("connect.py", CONNECT)]);
    let mut line = toolcell(&["ablate", "--socket", &socket, "--controls", "none", "--probes-dir"]);
    let finished = run(line.arg(folder.path().join("probes"))).expect_code(0);
    assert!(finished.text().contains("good: nothing gets out"), "{}", finished.text());
}
