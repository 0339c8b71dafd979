//! Two cells at a time, one of them hostile: it cannot see, signal, read or starve the other.

use std::collections::BTreeMap;

use nix::sys::signal::kill;
use nix::unistd::Pid;
use serde_json::{Value, json};
use toolcell_tests::{Instance, Need, Request, Running, needs};
use toolcell_types::{Answer, Verdict};

const MIB: u64 = 1 << 20;

/// Looks for what a neighbour has: files of its scratch, an abstract socket, a process with its mark. One line per act, `ok`
/// or why not.
const LOOK: &str = "
import os, socket, sys
def attempt(name, act):
    try:
        act()
        print(name, 'ok', flush=True)
    except (OSError, LookupError) as error:
        print(name, type(error).__name__, flush=True)
def connect(name):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(name)
def marked():
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open(f'/proc/{pid}/cmdline') as file:
                if 'neighbour' + '-mark' in file.read():
                    return int(pid)
        except OSError:
            pass
    raise LookupError
attempt('scratch', lambda: open('/tmp/secret').read())
attempt('shm', lambda: open('/dev/shm/secret').read())
attempt('abstract', lambda: connect('\\0toolcell-neighbour'))
attempt('see', marked)
attempt('signal', lambda: os.kill(marked(), 0))
attempt('root', lambda: open(f'/proc/{marked()}/root/tmp/secret').read())
for pid in map(int, sys.argv[1:]):
    attempt('number', lambda: os.kill(pid, 0))
";

/// Has all that, looks for it itself, which is the control, and waits.
const HAVE: &str = "
import os, socket, subprocess, sys, time
for path in ('/tmp/secret', '/dev/shm/secret'):
    with open(path, 'w') as file:
        file.write('secret')
listener = socket.socket(socket.AF_UNIX)
listener.bind('\\0toolcell-neighbour')
listener.listen()
subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)
print('up', flush=True)
time.sleep(600)
";

fn python(code: &str, words: &[&str]) -> Request {
    let argv: Vec<&str> = ["/usr/bin/python3", "-c", code].into_iter().chain(words.iter().copied()).collect();
    Request::exec(&argv)
}

fn said(answer: &Answer) -> BTreeMap<String, String> {
    let text = serde_json::to_value(&answer.stdout).unwrap();
    let lines = text.as_str().unwrap().lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, word)| (name.to_owned(), word.to_owned())).collect()
}

#[test]
fn a_cell_cannot_see_signal_or_read_its_neighbour_which_can_itself() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = Instance::start();
    let neighbour = Running::until_up(&instance, &python(HAVE, &[LOOK, "neighbour-mark"]));
    let tool = neighbour.processes().into_iter().find(|process| process.line.ends_with("neighbour-mark")).unwrap();
    let looked = instance.call(&python(LOOK, &[&tool.pid.to_string()]));
    assert_eq!(looked.verdict, Verdict::Exited { exit_code: 0 }, "{looked:?}");
    kill(Pid::from_raw(i32::try_from(tool.pid).unwrap()), None).expect("the control: from outside it can be signalled");
    assert!(tool.is_alive());
    assert_eq!(neighbour.cancel().status() / 100, 2);
    let (inside, itself) = (said(&looked), said(&neighbour.answer()));
    let acts = ["scratch", "shm", "abstract", "see", "signal", "root"];
    for act in acts {
        assert_eq!(itself.get(act).map(String::as_str), Some("ok"), "the control, {act}: {itself:?}");
        assert_ne!(inside.get(act).map(String::as_str), Some("ok"), "{act}: {inside:?}");
    }
    assert_eq!(inside["number"], "ProcessLookupError", "{inside:?}");
    assert_eq!(inside.len(), acts.len() + 1, "{inside:?}");
}

/// What a neighbour does: it forks, fills memory and scratch, and says so. All within its limits, and not far from them.
const WORK: &str = "
import os
block = bytearray(40 << 20)
with open('/tmp/work', 'wb') as file:
    file.write(block[:4 << 20])
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        os._exit(sum(range(100000)) % 7)
    os.waitpid(pid, 0)
print('worked')
";

/// Who tries to take what it needs.
fn hostile() -> [(&'static str, Request); 6] {
    let limits = || json!({ "wall_ms": 20_000, "cpu_millis": 300, "pids": 32, "memory_bytes": 64 * MIB, "output_limit_bytes": 512 * MIB });
    let of = |name: &'static str, words: &[&str]| (name, Request::program(name, words).limits(limits()));
    let bare: Value = limits();
    [
        of("fork_bomb", &["stay"]),
        of("memory_hog", &["child-stay"]),
        of("leaves_children", &["chain", "stay"]),
        of("floods", &["0"]),
        of("spins", &[]),
        ("files", Request::shell("while :; do cp /bin/sh /tmp/$$ || rm -f /tmp/*; done 2> /dev/null").limits(bare)),
    ]
}

#[test]
fn a_hostile_cell_stays_within_its_share_and_takes_nothing_from_its_neighbour() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = Instance::start();
    let work = || python(WORK, &[]).limits(json!({ "memory_bytes": 64 * MIB, "pids": 8, "tmp_bytes": 8 * MIB }));
    for (name, request) in hostile() {
        let running = Running::submit(&instance, &request);
        for _ in 0..3 {
            let answer = instance.call(&work());
            assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "beside {name}: {answer:?}");
            assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "worked\n", "beside {name}");
            let usage = &answer.usage;
            assert_eq!((usage.oom_kills, usage.forks_refused), (Some(0), Some(0)), "beside {name}");
        }
        assert!(running.cancel().status() < 500, "{name}");
        let ended = running.answer();
        let is_over = [Verdict::Cancelled, Verdict::OutputLimit].contains(&ended.verdict);
        assert!(is_over, "{name} was there all the time: {ended:?}");
        let used = ended.usage.cpu_user_us.unwrap() + ended.usage.cpu_system_us.unwrap();
        // Its share of the wall clock, and what a tree of several processes may overdraw: a slice on each processor, and what
        // its death costs.
        let share = ended.usage.wall_us.unwrap() * 300 / 1000 + 500_000;
        assert!(used <= share, "{name} used {used} us of {share}");
    }
}
