use std::collections::BTreeMap;

use serde_json::Value;

use super::*;

/// The lists that there are.
const DATA: [(&str, &str); 2] = [
    ("daemon", include_str!("../../../daemon/filters/daemon.json")),
    ("signer", include_str!("../../../signer/filters/signer.json")),
];

const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const NOSYS: u32 = 0x0005_0000 | 38;
/// AUDIT_ARCH_X86_64 and AUDIT_ARCH_I386 of linux/audit.h.
const NATIVE: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;
const X32: u32 = 0x4000_0000;

/// What the kernel does with a call: the stricter one of both answers, of which killing is the strictest.
fn answer(calls: &Calls, (arch, number): (u32, u32), arguments: [u64; 6]) -> u32 {
    let [fatal, allowed] = [&calls.fatal, &calls.allowed].map(|program| run(program, (arch, number), arguments));
    if fatal == KILL || allowed == KILL { KILL } else { fatal.min(allowed) }
}

fn run(program: &BpfProgram, (arch, number): (u32, u32), arguments: [u64; 6]) -> u32 {
    let half = |at: u32| {
        let argument = arguments[usize::try_from((at - 16) / 8).unwrap()];
        u32::try_from(if at.is_multiple_of(8) { argument & 0xffff_ffff } else { argument >> 32 }).unwrap()
    };
    let (mut at, mut word) = (0_usize, 0_u32);
    loop {
        let instruction = &program[at];
        let mut ahead = 0_usize;
        let mut jump = |is: bool| ahead = usize::from(if is { instruction.jt } else { instruction.jf });
        match instruction.code {
            0x20 => {
                word = match instruction.k {
                    0 => number,
                    4 => arch,
                    at => half(at),
                };
            }
            0x05 => ahead = usize::try_from(instruction.k).unwrap(),
            0x15 => jump(word == instruction.k),
            0x25 => jump(word > instruction.k),
            0x35 => jump(word >= instruction.k),
            0x54 => word &= instruction.k,
            0x06 => return instruction.k,
            code => panic!("instruction {code:#x}"),
        }
        at += ahead + 1;
    }
}

/// Numbers of <asm/unistd_64.h> that are looked at below.
fn number(name: &str) -> u32 {
    match name {
        "read" => 0,
        "mmap" => 9,
        "mprotect" => 10,
        "socket" => 41,
        "socketpair" => 53,
        "clone" => 56,
        "fork" => 57,
        "execve" => 59,
        "kill" => 62,
        "fcntl" => 72,
        "ptrace" => 101,
        "setuid" => 105,
        "prctl" => 157,
        "mount" => 165,
        "tgkill" => 234,
        "unshare" => 272,
        "seccomp" => 317,
        "bpf" => 321,
        "io_uring_setup" => 425,
        "clone3" => 435,
        "landlock_restrict_self" => 446,
        name => panic!("{name} has no number here"),
    }
}

fn each(look: impl Fn(&str, &Calls)) {
    for (name, data) in DATA {
        look(name, &Calls::compile(data).unwrap());
    }
}

fn native(calls: &Calls, name: &str, arguments: [u64; 6]) -> u32 {
    answer(calls, (NATIVE, number(name)), arguments)
}

const NOTHING: [u64; 6] = [0; 6];

#[test]
fn every_rule_has_a_reason_and_nothing_is_both_allowed_and_fatal() {
    for (part, data) in DATA {
        let lists: BTreeMap<String, Value> = serde_json::from_str(data).unwrap();
        let rules = |list: &str| lists[list]["filter"].as_array().unwrap().clone();
        for rule in rules("fatal").into_iter().chain(rules("allowed")) {
            assert!(rule["comment"].as_str().is_some_and(|why| !why.is_empty()), "{part}: {rule}");
        }
        let whole = |list: &str| -> Vec<Value> {
            rules(list)
                .into_iter()
                .filter(|rule| rule.get("args").is_none())
                .map(|rule| rule["syscall"].clone())
                .collect()
        };
        let (fatal, allowed) = (whole("fatal"), whole("allowed"));
        assert!(fatal.iter().all(|name| !allowed.contains(name)), "{part}");
    }
}

#[test]
fn what_makes_processes_mounts_or_privilege_ends_the_part() {
    each(|part, calls| {
        for name in ["execve", "fork", "ptrace", "mount", "unshare", "bpf", "io_uring_setup", "setuid"] {
            assert_eq!(native(calls, name, NOTHING), KILL, "{name} in the {part}");
        }
        assert_eq!(native(calls, "read", NOTHING), ALLOW, "the control, in the {part}");
    });
}

#[test]
fn signals_sockets_and_further_filters_are_unknown() {
    each(|part, calls| {
        for name in ["kill", "tgkill", "socket", "seccomp", "landlock_restrict_self", "clone3"] {
            assert_eq!(native(calls, name, NOTHING), NOSYS, "{name} in the {part}");
        }
    });
}

#[test]
fn another_abi_ends_the_part_and_x32_is_unknown() {
    each(|part, calls| {
        assert_eq!(answer(calls, (I386, 3), NOTHING), KILL, "{part}");
        for name in ["read", "mmap", "execve", "ptrace"] {
            assert_eq!(answer(calls, (NATIVE, X32 | number(name)), NOTHING), NOSYS, "{name} in the {part}");
        }
    });
}

#[test]
fn memory_is_never_executable() {
    each(|part, calls| {
        for name in ["mmap", "mprotect"] {
            assert_eq!(native(calls, name, [0, 0, 3, 0, 0, 0]), ALLOW, "{name} in the {part}");
            // An int argument: what stands above its 32 bits is not looked at by the kernel either.
            for protection in [4, 5, 7, (1 << 32) | 4] {
                assert_eq!(native(calls, name, [0, 0, protection, 0, 0, 0]), NOSYS, "{name} in the {part}");
            }
        }
    });
}

#[test]
fn the_daemon_starts_threads_and_the_signer_none() {
    const THREAD: u64 = 0x0001_0000 | 0x0800 | 0x0100;
    // CLONE_NEWUSER and CLONE_NEWNS.
    let news = [0x1000_0000, 0x0002_0000];
    each(|part, calls| {
        let expected = if part == "daemon" { ALLOW } else { KILL };
        assert_eq!(native(calls, "clone", [THREAD, 0, 0, 0, 0, 0]), expected, "{part}");
        // SIGCHLD, and CLONE_VM with CLONE_VFORK: how programs are started.
        for flags in [17, 0x4100 | 17] {
            assert_eq!(native(calls, "clone", [flags, 0, 0, 0, 0, 0]), KILL, "{part}");
        }
        for new in news {
            assert_ne!(native(calls, "clone", [THREAD | new, 0, 0, 0, 0, 0]), ALLOW, "{part}");
        }
    });
}

#[test]
fn of_fcntl_and_prctl_only_what_is_named_is_left() {
    // F_SETOWN, F_SETSIG, F_SETLEASE, F_NOTIFY: signals to others by way of a descriptor.
    each(|part, calls| {
        for command in [8, 10, 1024, 1026] {
            assert_eq!(native(calls, "fcntl", [0, command, 0, 0, 0, 0]), NOSYS, "{command} in the {part}");
        }
        assert_eq!(native(calls, "fcntl", [0, 4, 0x2000, 0, 0, 0]), NOSYS, "O_ASYNC in the {part}");
        // PR_SET_DUMPABLE, PR_SET_PDEATHSIG, PR_SET_PTRACER, PR_SET_MM.
        for option in [4, 1, 0x5961_6d61, 35] {
            assert_eq!(native(calls, "prctl", [option, 0, 0, 0, 0, 0]), NOSYS, "{option} in the {part}");
        }
        assert_eq!(native(calls, "prctl", [21, 0, 0, 0, 0, 0]), ALLOW, "the control, in the {part}");
    });
    let daemon = Calls::compile(DATA[0].1).unwrap();
    assert_eq!(native(&daemon, "fcntl", [0, 4, 0x800, 0, 0, 0]), ALLOW, "O_NONBLOCK");
    for (family, expected) in [(1, ALLOW), (2, NOSYS), (16, NOSYS)] {
        assert_eq!(native(&daemon, "socketpair", [family, 1, 0, 0, 0, 0]), expected, "family {family}");
    }
}

#[test]
fn data_without_a_list_or_with_an_unknown_call_is_an_error() {
    assert!(matches!(Calls::compile("{}"), Err(ConfinementError::List { name: "fatal" })));
    assert!(matches!(Calls::compile("["), Err(ConfinementError::Calls { .. })));
    let unknown = DATA[0].1.replacen("\"ptrace\"", "\"ptrase\"", 1);
    assert!(matches!(Calls::compile(&unknown), Err(ConfinementError::Calls { .. })));
}
