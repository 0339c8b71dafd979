//! How a command ends: one enum, one table, and the rules from verdict or refusal to code.
//!
//! The codes of `run` are those that timeout(1), docker and the shells use, so that scripts keep working; a program
//! may use the same numbers itself, so only the answer (`--json`) and the receipt are unambiguous.

use toolcell_types::{Answer, CallState, Problem, Verdict, names};

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and it went well.
    Ok,
    /// The tool did not succeed, or the daemon refused.
    Failed,
    /// The command line is wrong.
    Usage,
    /// The effect of a call is unknown.
    Unknown,
    /// The program's own code.
    Program(u8),
    /// Wall, processor or output limit.
    Limit,
    /// Our own fault, or no daemon.
    RunnerFault,
    /// Refused before anything ran.
    Refused,
    /// The program is there but cannot be executed.
    NotExecutable,
    /// The program is not there.
    NotFound,
    /// The program died by this signal.
    Signal(u8),
    /// Cancelled, by Ctrl-C or by somebody else.
    Cancelled,
    /// Memory or process limit.
    KernelLimit,
    /// Whoever read our output is gone.
    BrokenPipe,
}

/// The table of `toolcell run --help`.
pub(crate) const RUN_TABLE: &str = "\
Exit codes:
  0-255  the program's own
  124    wall, cpu or output limit
  125    the cell could not be set up, the runner failed, or the command line is wrong
  126    refused, or the program was found and is not executable
  127    the program was not found
  128+n  the program died by signal n
  130    cancelled (Ctrl-C)
  137    memory or pids limit
  141    our standard output was closed; the program was cancelled
  A program may use these codes itself. Only --json and the receipt are unambiguous.";

/// What `--json` promises, in `run` and in `call`.
pub(crate) const JSON: &str = "\
With --json, standard output holds exactly one JSON object:
  the answer    if the call was taken, however it ended (it has a `verdict`)
  the refusal   if the daemon refused it (its `type` begins with urn:toolcell:problem:)
  nothing       if the command line is wrong, no daemon answered, or we stopped waiting;
                standard error has the words, and the exit code tells which";

/// What `--json` promises in the commands that only ask.
pub(crate) const JSON_ASKED: &str = "\
With --json, standard output holds exactly one JSON object: what was asked for, or the refusal (its `type` begins \
with urn:toolcell:problem:). If the command line is wrong or no daemon answered, it is empty, and standard error has \
the words.";

/// The table of all other commands.
pub(crate) const TABLE: &str = "\
Exit codes:
  0  ok
  1  the tool did not succeed, or the daemon refused
  2  the command line or the request is wrong
  3  the effect of the call is unknown
  (141 if our standard output was closed)";

impl Exit {
    /// The number that the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Unknown => 3,
            Self::Program(code) => code,
            Self::Limit => 124,
            Self::RunnerFault => 125,
            Self::Refused | Self::NotExecutable => 126,
            Self::NotFound => 127,
            Self::Signal(number) => 128_u8.saturating_add(number),
            Self::Cancelled => 130,
            Self::KernelLimit => 137,
            Self::BrokenPipe => 141,
        }
    }

    /// How `run` ends after a verdict.
    pub(crate) fn of_run(verdict: &Verdict) -> Self {
        match verdict {
            Verdict::Exited { exit_code } => u8::try_from(*exit_code).map_or(Self::RunnerFault, Self::Program),
            Verdict::Signaled { signal } => names::signal_number(signal)
                .and_then(|number| u8::try_from(number).ok())
                .map_or(Self::RunnerFault, Self::Signal),
            Verdict::WallLimit | Verdict::CpuLimit | Verdict::OutputLimit => Self::Limit,
            Verdict::MemoryLimit | Verdict::PidsLimit => Self::KernelLimit,
            Verdict::Cancelled => Self::Cancelled,
            // Only at exec is it the program that is missing; before, it is the cell that could not be built.
            Verdict::StartFailed { stage, errno } if stage == "exec" => match errno.as_str() {
                "ENOENT" | "ENOTDIR" => Self::NotFound,
                _ => Self::NotExecutable,
            },
            Verdict::StartFailed { .. } | Verdict::Lost | Verdict::Internal => Self::RunnerFault,
        }
    }

    /// How the other commands end after an answer.
    pub(crate) fn of_answer(answer: &Answer) -> Self {
        match answer.state {
            CallState::Complete => Self::Ok,
            CallState::Failed => Self::Failed,
            CallState::Unknown | CallState::Submitting => Self::Unknown,
        }
    }

    /// How the other commands end after a refusal.
    pub(crate) fn of_problem(problem: &Problem) -> Self {
        match problem.code.exit() {
            0 => Self::Ok,
            2 => Self::Usage,
            3 => Self::Unknown,
            _ => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcell_types::ErrorCode;

    fn start_failed(stage: &str, errno: &str) -> Verdict {
        Verdict::StartFailed { stage: stage.to_owned(), errno: errno.to_owned() }
    }

    #[test]
    fn run_ends_by_the_table() {
        let signaled = |name: &str| Verdict::Signaled { signal: name.to_owned() };
        let table = [
            (Verdict::Exited { exit_code: 0 }, 0),
            (Verdict::Exited { exit_code: 137 }, 137),
            (Verdict::WallLimit, 124),
            (Verdict::CpuLimit, 124),
            (Verdict::OutputLimit, 124),
            (Verdict::MemoryLimit, 137),
            (Verdict::PidsLimit, 137),
            (Verdict::Cancelled, 130),
            (Verdict::Lost, 125),
            (Verdict::Internal, 125),
            (start_failed("mounts", "ENOENT"), 125),
            (start_failed("exec", "ENOENT"), 127),
            (start_failed("exec", "ENOTDIR"), 127),
            (start_failed("exec", "EACCES"), 126),
            (start_failed("exec", "ENOEXEC"), 126),
            (signaled("SIGSEGV"), 139),
            (signaled("SIGKILL"), 137),
            (signaled("SIG40"), 168),
            (signaled("nonsense"), 125),
        ];
        for (verdict, code) in table {
            assert_eq!(Exit::of_run(&verdict).code(), code, "{verdict:?}");
        }
    }

    #[test]
    fn other_commands_end_by_the_refusal_s_own_code() {
        for code in ErrorCode::ALL {
            let problem = Problem::new(*code, "", "");
            assert_eq!(Exit::of_problem(&problem).code(), code.exit(), "{code}");
        }
    }

    #[test]
    fn the_tables_name_every_code() {
        for exit in [
            Exit::Limit,
            Exit::RunnerFault,
            Exit::Refused,
            Exit::NotFound,
            Exit::Cancelled,
            Exit::KernelLimit,
            Exit::BrokenPipe,
        ] {
            assert!(RUN_TABLE.contains(&format!("  {} ", exit.code())), "{exit:?}");
        }
        for exit in [Exit::Ok, Exit::Failed, Exit::Usage, Exit::Unknown] {
            assert!(TABLE.contains(&format!("  {}  ", exit.code())), "{exit:?}");
        }
    }
}
