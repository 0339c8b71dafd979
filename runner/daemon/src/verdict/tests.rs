//! The table of ends and verdicts.

use super::*;
use crate::output::Output;

fn report(cause: EndCause) -> EndReport {
    EndReport { cause, limits_hit: Vec::new(), usage: PlanUsage::default(), tree_gone: true }
}

fn captured(is_over_limit: bool) -> CapturedOutput {
    let output = Output::new(&Limits::default());
    let nothing = output.captured(crate::output::StreamName::Stdout);
    CapturedOutput { stdout: nothing.clone(), stderr: nothing, is_over_limit, unread: Vec::new() }
}

#[test]
fn every_cause_of_the_launcher_has_its_verdict() {
    let start = EndCause::StartFailed { stage: "exec".to_owned(), errno: 2 };
    for (cause, verdict) in [
        (EndCause::Exited(137), Verdict::Exited { exit_code: 137 }),
        (EndCause::Signaled(31), Verdict::Signaled { signal: "SIGSYS".to_owned() }),
        (EndCause::WallLimit, Verdict::WallLimit),
        (EndCause::CpuLimit, Verdict::CpuLimit),
        (EndCause::MemoryLimit, Verdict::MemoryLimit),
        (EndCause::PidsLimit, Verdict::PidsLimit),
        (EndCause::OutputLimit, Verdict::OutputLimit),
        (EndCause::Cancelled, Verdict::Cancelled),
        (start, Verdict::StartFailed { stage: "exec".to_owned(), errno: "ENOENT".to_owned() }),
        (EndCause::Internal { detail: "x".to_owned() }, Verdict::Internal),
    ] {
        let seen = over(report(cause), &Limits::default(), Some(&captured(false)));
        assert_eq!(seen.verdict, verdict);
        assert!(!seen.message.is_empty() && !seen.remedy.is_empty());
        assert!(seen.limits_hit.is_empty());
    }
}

#[test]
fn too_much_output_beats_the_program_s_own_end_and_the_kernel_but_no_earlier_kill_of_ours() {
    for (cause, verdict) in [
        (EndCause::Exited(0), Verdict::OutputLimit),
        (EndCause::Signaled(13), Verdict::OutputLimit),
        (EndCause::MemoryLimit, Verdict::OutputLimit),
        (EndCause::WallLimit, Verdict::WallLimit),
        (EndCause::CpuLimit, Verdict::CpuLimit),
        (EndCause::Cancelled, Verdict::Cancelled),
    ] {
        let seen = over(report(cause), &Limits::default(), Some(&captured(true)));
        assert_eq!(seen.verdict, verdict);
        assert_eq!(seen.limits_hit.len(), 1, "reached all the same");
    }
}

#[test]
fn what_the_launcher_saw_is_not_repeated() {
    let mut with_hit = report(EndCause::OutputLimit);
    with_hit.limits_hit = vec![(OUTPUT_LIMIT.to_owned(), "asked by the daemon".to_owned())];
    assert_eq!(over(with_hit, &Limits::default(), Some(&captured(true))).limits_hit.len(), 1);
}

#[test]
fn every_refusal_of_the_launcher_has_its_verdict() {
    let stage = |verdict: &Verdict| {
        if let Verdict::StartFailed { stage, errno } = verdict {
            return format!("{stage} {errno}");
        }
        verdict.cause().to_owned()
    };
    let text = |text: &str| text.to_owned();
    for (fault, expected) in [
        (LaunchFault::BadPlan { detail: text("d") }, "plan EINVAL"),
        (LaunchFault::Mount { index: 0, errno: 13, detail: text("d") }, "mounts EACCES"),
        (
            LaunchFault::Control { id: toolcell_types::ControlId::Seccomp, detail: text("d"), remedy: text("r") },
            "controls EOPNOTSUPP",
        ),
        (LaunchFault::Stage { stage: text("clone"), errno: 11, detail: text("d") }, "clone EAGAIN"),
        (LaunchFault::Killed { reason: KillReason::Cancelled }, "cancelled"),
        (LaunchFault::Killed { reason: KillReason::OutputLimit }, "internal"),
    ] {
        let seen = refused(fault, true);
        assert_eq!(stage(&seen.verdict), expected);
        assert!(seen.tree_gone && seen.started_on.is_none() && seen.controls.is_empty());
    }
}

#[test]
fn a_silent_launcher_is_no_proof_that_the_tree_is_gone() {
    let seen = see(End::Silent { started: None }, &Limits::default(), None);
    assert_eq!((seen.verdict, seen.tree_gone), (Verdict::Internal, false));
}

#[test]
fn a_call_that_was_cancelled_before_its_cell_left_nothing_behind() {
    let seen = see(End::NeverLetGo, &Limits::default(), None);
    assert_eq!((seen.verdict, seen.tree_gone), (Verdict::Cancelled, true));
}

#[test]
fn a_plan_that_could_not_be_made_names_the_errno() {
    let source = std::io::Error::from_raw_os_error(24);
    let seen = no_plan(&PlanFault::Memory { what: "go half", source });
    assert_eq!(seen.verdict, Verdict::StartFailed { stage: "plan".to_owned(), errno: "EMFILE".to_owned() });
    assert_eq!(seen.findings.len(), 1);
}

#[test]
fn output_that_was_not_read_to_its_end_is_told_whatever_the_end() {
    let unread = vec![(crate::output::StreamName::Stderr, "somebody held it open".to_owned())];
    let output = CapturedOutput { unread, ..captured(false) };
    let controls = Vec::new;
    let over = || End::Over {
        controls: controls(),
        started_on: UnixMicros(1),
        report: report(EndCause::Exited(0)),
        unread: None,
    };
    for end in [over(), End::Silent { started: None }] {
        let seen = see(end, &Limits::default(), Some(&output));
        let [hit] = seen.limits_hit.as_slice() else { panic!("{:?}", seen.limits_hit) };
        assert_eq!(hit.limit, "output_read");
        assert_eq!(hit.seen, "stderr was not read to its end: somebody held it open");
    }
    assert_eq!(see(over(), &Limits::default(), Some(&output)).verdict, Verdict::Exited { exit_code: 0 });
    let none = End::Over {
        controls: controls(),
        started_on: UnixMicros(1),
        report: report(EndCause::Cancelled),
        unread: Some(std::io::Error::from_raw_os_error(24)),
    };
    assert_eq!(see(none, &Limits::default(), None).limits_hit.len(), 2);
}

#[test]
fn a_start_that_memory_was_too_little_for_says_which_limit_to_raise() {
    for stage in ["supervise", "mounts", "exec", "cwd"] {
        let fault = LaunchFault::Stage { stage: stage.to_owned(), errno: NO_MEMORY, detail: "x".to_owned() };
        assert!(refused(fault, true).remedy.contains("limits.memory_bytes"), "{stage}");
        let cause = EndCause::StartFailed { stage: stage.to_owned(), errno: NO_MEMORY };
        assert!(over(report(cause), &Limits::default(), None).remedy.contains("limits.memory_bytes"), "{stage}");
        let other = LaunchFault::Stage { stage: stage.to_owned(), errno: INVALID, detail: "x".to_owned() };
        assert!(!refused(other, true).remedy.contains("limits.memory_bytes"), "{stage}");
    }
}
