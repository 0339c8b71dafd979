//! Settings of the host that take away a second line: what goes, what stands in its place in a cell, and the one command.
//!
//! Only settings that a cell would otherwise have as a second line. None of them is needed for a control to be in force.

use toolcell_types::doctor::{HostFacts, HostWarning};

use crate::remedies::{kernel_before, on_the_host};

/// What is to be known of one setting.
struct Rule {
    setting: &'static str,
    /// What it is now, if that takes something away.
    is_bad: fn(&HostFacts, Option<&str>) -> Option<String>,
    removes: &'static str,
    instead: &'static str,
    remedy: &'static str,
}

/// Every setting that takes a second line away here.
#[must_use]
pub fn warnings(host: &HostFacts) -> Vec<HostWarning> {
    let warn = |rule: &Rule| {
        Some(HostWarning {
            setting: rule.setting.to_owned(),
            value: (rule.is_bad)(host, host.setting(rule.setting))?,
            removes: rule.removes.to_owned(),
            instead: rule.instead.to_owned(),
            remedy: format!("{}{}", on_the_host(host), rule.remedy),
        })
    };
    RULES.iter().filter_map(warn).collect()
}

/// The value, if it is this one.
fn is(value: Option<&str>, bad: &str) -> Option<String> {
    value.filter(|value| *value == bad).map(str::to_owned)
}

fn below(value: Option<&str>, least: i64) -> Option<String> {
    value.filter(|value| value.parse::<i64>().is_ok_and(|number| number < least)).map(str::to_owned)
}

const RULES: &[Rule] = &[
    Rule {
        setting: "kernel.io_uring_disabled",
        is_bad: |_host, value| match value {
            Some("2") => None,
            Some(other) => Some(other.to_owned()),
            None => Some("not in this kernel".to_owned()),
        },
        removes: "io_uring does work of system calls that no filter sees",
        instead: "the cell's filter answers ENOSYS to its three calls",
        remedy: "sysctl -w kernel.io_uring_disabled=2 (Linux 6.6 or later)",
    },
    Rule {
        setting: "dev.tty.legacy_tiocsti",
        is_bad: |host, value| {
            let is_old = value.is_none() && kernel_before(host, (6, 2));
            is(value, "1").or_else(|| is_old.then(|| "not in this kernel, which allows it".to_owned()))
        },
        removes: "TIOCSTI lets a program type into the terminal of who started it",
        instead: "a cell has no terminal, a session of its own, and a filter that refuses the call",
        remedy: "sysctl -w dev.tty.legacy_tiocsti=0 (Linux 6.2 or later)",
    },
    Rule {
        setting: "kernel.perf_event_paranoid",
        is_bad: |_host, value| below(value, 2),
        removes: "everybody may watch the kernel through perf_event_open",
        instead: "the cell's filter refuses the call",
        remedy: "sysctl -w kernel.perf_event_paranoid=2",
    },
    Rule {
        setting: "kernel.core_pattern",
        is_bad: |_host, value| value.filter(|value| value.starts_with('|')).map(str::to_owned),
        removes: "a crash starts this program on the host, as root",
        instead: "the core limit of 1 byte keeps the kernel from starting it for a cell (core(5))",
        remedy: "sysctl -w kernel.core_pattern=core",
    },
    Rule {
        setting: "kernel.unprivileged_bpf_disabled",
        is_bad: |_host, value| is(value, "0"),
        removes: "everybody may load programs into the kernel through bpf",
        instead: "the cell's filter refuses the call",
        remedy: "sysctl -w kernel.unprivileged_bpf_disabled=2",
    },
    Rule {
        setting: "kernel.kptr_restrict",
        is_bad: |_host, value| is(value, "0"),
        removes: "addresses of the kernel may be read where /proc shows them, which helps an exploit",
        instead: "without kernel.perf_event_paranoid below 2 they read as zeros",
        remedy: "sysctl -w kernel.kptr_restrict=1",
    },
    Rule {
        setting: "vm.unprivileged_userfaultfd",
        is_bad: |_host, value| is(value, "1"),
        removes: "everybody may hold the kernel up in a page fault, which exploits of races need",
        instead: "the cell's filter refuses the call, and /dev has no userfaultfd",
        remedy: "sysctl -w vm.unprivileged_userfaultfd=0",
    },
    Rule {
        setting: "kernel.yama.ptrace_scope",
        is_bad: |_host, value| is(value, "0"),
        removes: "processes of one user may look into one another",
        instead: "a cell's ids are nobody else's (with identity.unprivileged), and its filter refuses ptrace",
        remedy: "sysctl -w kernel.yama.ptrace_scope=1",
    },
    Rule {
        setting: "swap",
        is_bad: |host, _value| {
            let has_swap = host.swap_bytes.is_some_and(|bytes| bytes > 0);
            (has_swap && host.is_swap_counted == Some(false)).then(|| "on, and not counted for groups".to_owned())
        },
        removes: "what a cell has in swap is not limited",
        instead: "memory itself is limited (cgroup.memory)",
        remedy: "boot with swapaccount=1, or without swap: swapoff -a",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn named(settings: &[(&str, &str)], release: &str) -> Vec<String> {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let host = HostFacts { settings, release: release.to_owned(), ..HostFacts::default() };
        warnings(&host).into_iter().map(|warning| format!("{}={}", warning.setting, warning.value)).collect()
    }

    #[test]
    fn each_setting_is_told_only_if_it_takes_something_away() {
        const GOOD: [(&str, &str); 8] = [
            ("kernel.io_uring_disabled", "2"),
            ("dev.tty.legacy_tiocsti", "0"),
            ("kernel.perf_event_paranoid", "3"),
            ("kernel.core_pattern", "core"),
            ("kernel.unprivileged_bpf_disabled", "1"),
            ("kernel.kptr_restrict", "1"),
            ("vm.unprivileged_userfaultfd", "0"),
            ("kernel.yama.ptrace_scope", "1"),
        ];
        assert_eq!(named(&GOOD, "6.18.0"), Vec::<String>::new());
        let bad = ["0", "1", "-1", "|/bin/x", "0", "0", "1", "0"];
        for (at, bad) in bad.into_iter().enumerate() {
            let mut settings = GOOD;
            settings[at].1 = bad;
            assert_eq!(named(&settings, "6.18.0"), [format!("{}={bad}", GOOD[at].0)]);
        }
    }

    #[test]
    fn what_an_old_kernel_cannot_switch_off_is_told_and_what_it_does_not_have_is_not() {
        assert_eq!(
            named(&[], "6.1.0-40-cloud-amd64"),
            [
                "kernel.io_uring_disabled=not in this kernel",
                "dev.tty.legacy_tiocsti=not in this kernel, which allows it"
            ]
        );
        assert_eq!(named(&[("kernel.io_uring_disabled", "2")], "6.8.0"), Vec::<String>::new(), "built without it");
    }

    #[test]
    fn swap_is_told_only_where_there_is_some_and_it_is_not_counted() {
        let told = |swap_bytes, is_swap_counted| {
            let settings = vec![("kernel.io_uring_disabled".to_owned(), "2".to_owned())];
            let host =
                HostFacts { swap_bytes, is_swap_counted, settings, release: "6.18".into(), ..HostFacts::default() };
            warnings(&host).len()
        };
        assert_eq!((told(Some(1), Some(false)), told(Some(1), Some(true))), (1, 0));
        assert_eq!((told(Some(0), Some(false)), told(Some(1), None), told(None, Some(false))), (0, 0, 0));
    }
}
