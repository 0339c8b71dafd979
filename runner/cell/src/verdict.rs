//! Why an attempt ended: decided from evidence, in one pure function.

use toolcell_types::plan::{EndCause, KillReason};

use crate::record::{MainEnd, StageError};

/// Whose decision it was to kill the tree, taken before the main process was seen to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnKill {
    /// The wall clock ran out.
    Wall,
    /// The processor clock ran out.
    Cpu,
    /// The daemon asked.
    Asked(KillReason),
}

/// Everything that was seen of an end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Evidence {
    /// Our kill, if there was one.
    pub(crate) own_kill: Option<OwnKill>,
    /// How the main process ended, by the init's record; none if the init vanished first.
    pub(crate) main: Option<MainEnd>,
    /// The main process said that it could not execute the tool.
    pub(crate) exec_failed: Option<StageError>,
    /// The main process ended at or after the wall limit, by the init's stamp.
    pub(crate) past_wall: bool,
    /// The tree had used its processor time, by the group's counter.
    pub(crate) past_cpu: bool,
    /// Processes that the kernel killed for memory since *go*.
    pub(crate) oom_kills: u64,
    /// Forks that the process limit refused since *go*.
    pub(crate) forks_refused: u64,
}

/// The tie rules: our own kill first, then memory, then processes, then the program's own end.
///
/// An end at or after a limit counts as the limit's, even where the program was quicker than our signal: the figures
/// say that the limit was used up. Memory and processes need the program to have ended badly: a counter that rose
/// while it went on to succeed is no cause. That is correlation, and the documentation calls it so.
pub(crate) fn decide(evidence: &Evidence) -> EndCause {
    if let Some(kill) = evidence.own_kill {
        return match kill {
            OwnKill::Wall => EndCause::WallLimit,
            OwnKill::Cpu => EndCause::CpuLimit,
            OwnKill::Asked(KillReason::Cancelled) => EndCause::Cancelled,
            OwnKill::Asked(KillReason::OutputLimit) => EndCause::OutputLimit,
        };
    }
    if evidence.past_wall {
        return EndCause::WallLimit;
    }
    if evidence.past_cpu {
        return EndCause::CpuLimit;
    }
    let ended_badly = !matches!(evidence.main, Some(MainEnd::Exited(0)));
    if ended_badly && evidence.oom_kills > 0 {
        return EndCause::MemoryLimit;
    }
    if ended_badly && evidence.forks_refused > 0 && evidence.exec_failed.is_none() && evidence.main.is_some() {
        return EndCause::PidsLimit;
    }
    if let Some(error) = evidence.exec_failed {
        return EndCause::StartFailed { stage: error.stage.as_str().to_owned(), errno: error.errno };
    }
    match evidence.main {
        Some(MainEnd::Exited(code)) => EndCause::Exited(code),
        Some(MainEnd::Signaled(signal)) => EndCause::Signaled(signal),
        None => {
            EndCause::Internal { detail: "the cell's init ended without a word, and no counter says why".to_owned() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Op, Stage};

    const QUIET: Evidence = Evidence {
        own_kill: None,
        main: Some(MainEnd::Exited(0)),
        exec_failed: None,
        past_wall: false,
        past_cpu: false,
        oom_kills: 0,
        forks_refused: 0,
    };

    #[test]
    fn the_program_s_own_end_counts_when_nothing_else_happened() {
        assert_eq!(decide(&QUIET), EndCause::Exited(0));
        assert_eq!(decide(&Evidence { main: Some(MainEnd::Exited(137)), ..QUIET }), EndCause::Exited(137));
        assert_eq!(decide(&Evidence { main: Some(MainEnd::Signaled(9)), ..QUIET }), EndCause::Signaled(9));
    }

    #[test]
    fn our_own_kill_comes_before_everything() {
        let all =
            Evidence { main: Some(MainEnd::Signaled(9)), oom_kills: 3, forks_refused: 3, past_cpu: true, ..QUIET };
        assert_eq!(decide(&Evidence { own_kill: Some(OwnKill::Wall), ..all }), EndCause::WallLimit);
        assert_eq!(decide(&Evidence { own_kill: Some(OwnKill::Cpu), ..all }), EndCause::CpuLimit);
        let asked = |reason| decide(&Evidence { own_kill: Some(OwnKill::Asked(reason)), ..all });
        assert_eq!(asked(KillReason::Cancelled), EndCause::Cancelled);
        assert_eq!(asked(KillReason::OutputLimit), EndCause::OutputLimit);
    }

    #[test]
    fn memory_comes_before_processes_and_both_need_a_bad_end() {
        let both = Evidence { oom_kills: 1, forks_refused: 1, ..QUIET };
        assert_eq!(decide(&both), EndCause::Exited(0));
        assert_eq!(decide(&Evidence { main: Some(MainEnd::Signaled(9)), ..both }), EndCause::MemoryLimit);
        assert_eq!(decide(&Evidence { main: Some(MainEnd::Exited(1)), ..both }), EndCause::MemoryLimit);
        assert_eq!(decide(&Evidence { main: Some(MainEnd::Exited(1)), oom_kills: 0, ..both }), EndCause::PidsLimit);
    }

    #[test]
    fn an_end_past_a_limit_is_the_limit_s() {
        let late = Evidence { past_wall: true, main: Some(MainEnd::Exited(0)), ..QUIET };
        assert_eq!(decide(&late), EndCause::WallLimit);
        assert_eq!(decide(&Evidence { past_cpu: true, ..QUIET }), EndCause::CpuLimit);
    }

    #[test]
    fn an_init_that_vanished_is_memory_if_the_counter_rose_and_internal_if_not() {
        let gone = Evidence { main: None, ..QUIET };
        assert_eq!(decide(&Evidence { oom_kills: 1, ..gone }), EndCause::MemoryLimit);
        assert!(matches!(decide(&Evidence { forks_refused: 1, ..gone }), EndCause::Internal { .. }));
        assert!(matches!(decide(&gone), EndCause::Internal { .. }));
    }

    #[test]
    fn a_tool_that_cannot_be_executed_is_a_failed_start() {
        let error = StageError::new(Stage::Exec, Op::Exec, 2);
        let failed = Evidence { exec_failed: Some(error), main: Some(MainEnd::Exited(1)), ..QUIET };
        assert_eq!(decide(&failed), EndCause::StartFailed { stage: "exec".to_owned(), errno: 2 });
        assert_eq!(decide(&Evidence { oom_kills: 1, ..failed }), EndCause::MemoryLimit);
    }
}
