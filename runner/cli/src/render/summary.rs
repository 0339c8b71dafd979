//! The one line about a call that is over: how it ended, what it used, what held, where the receipt is.

use std::path::Path;

use serde_json::Value;
use toolcell_types::{AblationFacts, Answer, Effect, Status, Verdict};

use super::listing::receipt_index;

/// Where the receipt can be had.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Place<'a> {
    /// In the ledger of the daemon behind this socket (none: the default one).
    Ledger {
        /// The socket that was named.
        socket: Option<&'a Path>,
        /// Whether we may read the ledger, which holds everybody's receipts; else it is in the answer.
        is_operator: bool,
    },
    /// In the ledger, and in this file.
    File(&'a Path),
    /// In the ledger, and written to standard output.
    Stdout,
}

/// What is listed among the limits if a stream was not read to its end.
const OUTPUT_READ: &str = "output_read";

/// The line, without its line feed. `why` is why the program did not start, where that is known better.
pub(crate) fn summary(answer: &Answer, place: Place<'_>, is_replay: bool, why: Option<&str>) -> String {
    let ending = ending(answer);
    let mut parts = vec![why.map_or_else(|| ending.clone(), |why| format!("{why}: {ending}"))];
    parts.extend(usage(answer));
    let (unread, hit): (Vec<&str>, Vec<&str>) =
        answer.limits_hit.iter().map(|hit| hit.limit.as_str()).partition(|limit| *limit == OUTPUT_READ);
    if !hit.is_empty() {
        parts.push(format!("reached {}", hit.join(" and ")));
    }
    if !unread.is_empty() {
        parts.push("output not read to its end".to_owned());
    }
    parts.extend(controls(answer));
    parts.extend(answer.ablation.as_ref().map(ablation));
    parts.push(receipt(answer, place));
    if is_replay {
        parts.push("replayed: nothing ran again".to_owned());
    }
    parts.join(", ")
}

fn ending(answer: &Answer) -> String {
    let cause = match &answer.verdict {
        Verdict::Exited { exit_code } => format!("exited {exit_code}"),
        Verdict::Signaled { signal } => format!("signaled {signal}"),
        Verdict::StartFailed { stage, errno } => format!("start_failed at {stage} with {errno}"),
        Verdict::WallLimit
        | Verdict::CpuLimit
        | Verdict::MemoryLimit
        | Verdict::PidsLimit
        | Verdict::OutputLimit
        | Verdict::Cancelled
        | Verdict::Lost
        | Verdict::Internal => answer.verdict.cause().to_owned(),
    };
    let effect = match answer.effect {
        Effect::None => "effect none",
        Effect::Applied => "effect applied",
        Effect::Unknown => "effect unknown",
    };
    match answer.status {
        Status::Transient => format!("{cause}, {effect}, may succeed later"),
        Status::Ok | Status::Unknown => format!("{cause}, {effect}"),
    }
}

/// Only figures that the kernel gave.
fn usage(answer: &Answer) -> Vec<String> {
    let usage = &answer.usage;
    let cpu = match (usage.cpu_user_us, usage.cpu_system_us) {
        (Some(user), Some(system)) => user.checked_add(system),
        (user, system) => user.or(system),
    };
    let figures = [
        usage.wall_us.map(|us| format!("wall {}", time(us))),
        cpu.map(|us| format!("cpu {}", time(us))),
        usage.memory_peak_bytes.map(|bytes| format!("memory {}", size(bytes))),
    ];
    figures.into_iter().flatten().collect()
}

/// Nothing of controls that held nobody.
fn controls(answer: &Answer) -> Option<String> {
    let is_enforced = |item: &&Value| item.get("state").and_then(Value::as_str) == Some("enforced");
    match (answer.controls.len(), &answer.verdict) {
        (0, _) => Some("no cell was built".to_owned()),
        (_, Verdict::StartFailed { .. }) => None,
        (all, _) => Some(format!("{} of {all} controls enforced", answer.controls.iter().filter(is_enforced).count())),
    }
}

/// Nobody is to take it for a sealed cell's.
fn ablation(facts: &AblationFacts) -> String {
    let off: Vec<&str> = facts.ablated.iter().chain(facts.fell.iter().flatten()).map(|id| id.as_str()).collect();
    let off = if off.is_empty() { "nothing".to_owned() } else { off.join(" ") };
    format!("ABLATION MODE (experiment {}), off: {off}", facts.experiment)
}

fn receipt(answer: &Answer, place: Place<'_>) -> String {
    let name = match receipt_index(&answer.receipt) {
        Some(index) => format!("receipt {index}"),
        None => "receipt".to_owned(),
    };
    let (socket, is_operator) = match place {
        Place::File(path) => return format!("{name} in {}", path.display()),
        Place::Stdout => return format!("{name} on standard output"),
        Place::Ledger { socket, is_operator } => (socket, is_operator),
    };
    let socket = socket.map(|path| format!(" --socket {}", path.display())).unwrap_or_default();
    match receipt_index(&answer.receipt) {
        Some(index) if is_operator => format!("{name}: toolcell receipts {index}{socket}"),
        Some(_) | None => format!("{name}: toolcell calls {} --json{socket}", answer.call_id),
    }
}

/// Microseconds as a person reads them.
fn time(us: u64) -> String {
    match us {
        0..1_000 => format!("{us} us"),
        1_000..1_000_000 => format!("{} ms", us / 1_000),
        _ => format!("{}.{:02} s", us / 1_000_000, us % 1_000_000 / 10_000),
    }
}

/// Bytes as a person reads them, in powers of 1024, rounded down.
pub(super) fn size(bytes: u64) -> String {
    let units = [("GiB", 1_u64 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match units.iter().find(|(_, factor)| bytes >= *factor) {
        // The remainder is below 2^30: ten times it fits.
        Some((unit, factor)) => format!("{}.{} {unit}", bytes / factor, bytes % factor * 10 / factor),
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn answer() -> Answer {
        let digest = format!("sha256:{}", "0".repeat(64));
        serde_json::from_value(json!({
            "call_id": "c-1", "attempt": 1, "tool": "exec", "state": "complete", "status": "ok", "is_error": false,
            "effect": "none", "retryable": false, "revision": digest, "data": {}, "error": null,
            "verdict": {"cause": "exited", "exit_code": 0}, "limits_hit": [],
            "usage": {"wall_us": 31_456, "cpu_user_us": 20_000, "cpu_system_us": 4_100, "memory_peak_bytes": 5_452_595},
            "stdout": "", "stderr": "", "truncated": {"stdout": null, "stderr": null},
            "controls": [{"id": "seccomp", "state": "enforced"}, {"id": "landlock.net", "state": "unavailable"}],
            "policy": digest, "image": {"name": "host", "digest": null, "pinned": false},
            "receipt": {"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": []},
        }))
        .unwrap()
    }

    const HERE: Place<'static> = Place::Ledger { socket: None, is_operator: true };

    #[test]
    fn the_line_tells_verdict_usage_controls_and_receipt() {
        insta::assert_snapshot!(summary(&answer(), HERE, false, None), @"exited 0, effect none, wall 31 ms, cpu 24 ms, memory 5.1 MiB, 1 of 2 controls enforced, receipt: toolcell calls c-1 --json");
        insta::assert_snapshot!(summary(&answer(), Place::File(Path::new("r.json")), true, None), @"exited 0, effect none, wall 31 ms, cpu 24 ms, memory 5.1 MiB, 1 of 2 controls enforced, receipt in r.json, replayed: nothing ran again");
    }

    #[test]
    fn a_figure_that_the_kernel_does_not_give_is_left_out() {
        let mut answer = answer();
        answer.usage = toolcell_types::Usage::default();
        answer.verdict = Verdict::StartFailed { stage: "exec".to_owned(), errno: "ENOENT".to_owned() };
        answer.controls.clear();
        insta::assert_snapshot!(summary(&answer, HERE, false, None), @"start_failed at exec with ENOENT, effect none, no cell was built, receipt: toolcell calls c-1 --json");
    }

    #[test]
    fn a_program_that_did_not_start_is_told_by_name_and_without_controls() {
        let mut answer = answer();
        answer.usage = toolcell_types::Usage::default();
        answer.verdict = Verdict::StartFailed { stage: "exec".to_owned(), errno: "ENOENT".to_owned() };
        insta::assert_snapshot!(summary(&answer, HERE, false, Some("x: not found")), @"x: not found: start_failed at exec with ENOENT, effect none, receipt: toolcell calls c-1 --json");
    }

    #[test]
    fn limits_that_were_reached_are_named() {
        let mut answer = answer();
        let hit = |limit: &str| toolcell_types::LimitHit { limit: limit.to_owned(), seen: "x".to_owned() };
        answer.limits_hit = vec![hit("tmp_bytes"), hit("pids")];
        assert!(summary(&answer, HERE, false, None).contains(", reached tmp_bytes and pids, "));
        answer.limits_hit = vec![hit("output_read"), hit("output_read"), hit("pids")];
        assert!(summary(&answer, HERE, false, None).contains(", reached pids, output not read to its end, "));
    }

    #[test]
    fn times_and_sizes_are_short() {
        assert_eq!(
            [time(0), time(999), time(1_000), time(999_999), time(12_345_678)],
            ["0 us", "999 us", "1 ms", "999 ms", "12.34 s"]
        );
        assert_eq!(
            [size(0), size(1023), size(1024), size(1_572_864), size(u64::MAX)],
            ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "17179869183.9 GiB"]
        );
    }
}
