use super::*;

const EXITS: fn(i32) -> Verdict = |exit_code| Verdict::Exited { exit_code };

fn seen(verdict: Verdict, last_line: &str) -> Seen {
    let controls = ControlId::ALL.into_iter().map(|id| (id, ControlState::Enforced)).collect();
    Seen {
        verdict,
        last_line: last_line.to_owned(),
        complaint: "Traceback".to_owned(),
        controls,
        witnesses: Vec::new(),
    }
}

fn signaled(signal: &str) -> Verdict {
    Verdict::Signaled { signal: signal.to_owned() }
}

const BASELINE: Asked<'static> = Asked { off: &[], accepted: &[] };

fn word(seen: &Seen) -> &'static str {
    judge(BASELINE, seen).word()
}

#[test]
fn word_and_status_must_agree() {
    assert_eq!(word(&seen(EXITS(0), "REACHED the port")), "reached");
    assert_eq!(word(&seen(EXITS(1), "STOPPED connect: EPERM")), "stopped");
    assert_eq!(word(&seen(EXITS(3), "NOT-APPLICABLE no AF_ALG")), "not_applicable");
    for (status, line) in [
        (1, "REACHED the port"),
        (0, "STOPPED connect: EPERM"),
        (3, "STOPPED x"),
        (0, "NOT-APPLICABLE x"),
        (0, ""),
        (1, ""),
        (2, "usage"),
        (127, ""),
        (0, "REACHEDx"),
        (1, "stopped x"),
    ] {
        assert_eq!(word(&seen(EXITS(status), line)), "broken", "{status} {line}");
    }
}

#[test]
fn who_is_killed_was_stopped_and_who_crashes_is_broken() {
    for signal in KILLS {
        assert_eq!(word(&seen(signaled(signal), "")), "stopped", "{signal}");
    }
    for signal in ["SIGSEGV", "SIGABRT", "SIGBUS", "SIGPIPE", "SIGTERM"] {
        assert_eq!(word(&seen(signaled(signal), "")), "broken", "{signal}");
    }
    for verdict in
        [Verdict::WallLimit, Verdict::CpuLimit, Verdict::MemoryLimit, Verdict::PidsLimit, Verdict::OutputLimit]
    {
        assert_eq!(word(&seen(verdict, "")), "stopped");
    }
    for verdict in [Verdict::Cancelled, Verdict::Lost, Verdict::Internal] {
        assert_eq!(word(&seen(verdict, "")), "broken");
    }
    // What got through before it was killed was not stopped.
    let outcome = judge(BASELINE, &seen(Verdict::WallLimit, "REACHED it"));
    assert_eq!(outcome.words(), "it said REACHED it, and then: wall_limit");
    let refused = judge(BASELINE, &seen(Verdict::PidsLimit, "STOPPED fork: EAGAIN"));
    assert_eq!(refused, Outcome::Stopped { how: "pids_limit: fork: EAGAIN".to_owned() });
}

#[test]
fn a_witness_has_the_last_word() {
    let with = |status, line: &str, saw| Seen { witnesses: vec![(Witness::Tcp, saw)], ..seen(EXITS(status), line) };
    assert_eq!(word(&with(0, "REACHED it", true)), "reached");
    assert_eq!(word(&with(0, "REACHED it", false)), "broken");
    assert_eq!(word(&with(1, "STOPPED it", true)), "broken");
    assert_eq!(word(&with(1, "STOPPED it", false)), "stopped");
    assert_eq!(word(&Seen { verdict: signaled("SIGKILL"), ..with(0, "", true) }), "broken");
    // Nothing was held back: that says nothing about a probe that was stopped.
    let free =
        |status, line: &str, saw| Seen { witnesses: vec![(Witness::Throttled, saw)], ..seen(EXITS(status), line) };
    assert_eq!((word(&free(1, "STOPPED x", true)), word(&free(0, "REACHED x", false))), ("stopped", "stopped"));
    assert_eq!(word(&free(0, "REACHED x", true)), "reached");
    // All of several.
    let two = Seen { witnesses: vec![(Witness::Tcp, true), (Witness::Secret, false)], ..seen(EXITS(0), "REACHED x") };
    assert!(judge(BASELINE, &two).words().contains("the witness secret saw nothing"));
}

#[test]
fn a_control_must_be_as_it_was_asked_for() {
    let set = |id: ControlId, state| {
        let mut seen = seen(EXITS(0), "REACHED it");
        seen.controls.iter_mut().filter(|(known, _)| *known == id).for_each(|(_, known)| *known = state);
        seen
    };
    let off = [ControlId::Seccomp];
    let asked = Asked { off: &off, ..BASELINE };
    assert!(judge(asked, &set(ControlId::Seccomp, ControlState::Ablated)).is_reached());
    assert!(judge(asked, &set(ControlId::Seccomp, ControlState::Unavailable)).is_reached());
    assert_eq!(
        judge(asked, &set(ControlId::LandlockFs, ControlState::Ablated)).words(),
        "seccomp was to be off, and is enforced"
    );
    assert_eq!(
        judge(BASELINE, &set(ControlId::Seccomp, ControlState::Ablated)).words(),
        "seccomp is off, and nobody asked for that"
    );
    assert!(judge(BASELINE, &set(ControlId::Seccomp, ControlState::Unavailable)).is_broken());
    assert!(
        judge(Asked { accepted: &off, ..BASELINE }, &set(ControlId::Seccomp, ControlState::Unavailable)).is_reached()
    );
    assert!(judge(BASELINE, &set(ControlId::LandlockNet, ControlState::Unavailable)).is_reached());
    let mut fallen = set(ControlId::Seccomp, ControlState::Ablated);
    fallen.controls.retain(|(id, _)| *id != ControlId::Seccomp);
    assert_eq!(judge(asked, &fallen).words(), "seccomp was to be off, and is not reported");
}

#[test]
fn a_long_line_is_cut() {
    let outcome = judge(BASELINE, &seen(EXITS(0), &format!("REACHED {}", "ä".repeat(1000))));
    assert_eq!(outcome.words().chars().count(), TEXT_MAX + 1);
}
