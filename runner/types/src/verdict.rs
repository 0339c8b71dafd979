//! Why an attempt ended. A closed list; each cause comes from the kernel or from our own timers, never from text.

use serde::{Deserialize, Serialize};

/// The cause of an end, as it stands in answers and receipts. Signals and errnos by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// The main process called exit.
    Exited {
        /// Its exit code, 0 to 255.
        exit_code: i32,
    },
    /// The main process died by a signal that was not ours.
    Signaled {
        /// The signal's name.
        signal: String,
    },
    /// Our wall clock killed the tree.
    WallLimit,
    /// Our processor clock killed the tree.
    CpuLimit,
    /// The main process was killed by the kernel for memory, or ended badly while that counter rose.
    MemoryLimit,
    /// The main process ended badly while forks were refused.
    PidsLimit,
    /// More output than allowed; the tree was killed.
    OutputLimit,
    /// Somebody asked for it.
    Cancelled,
    /// The program never ran.
    StartFailed {
        /// What was being done.
        stage: String,
        /// What the kernel answered.
        errno: String,
    },
    /// The runner died; nobody saw the end.
    Lost,
    /// A fault of the runner.
    Internal,
}

impl Verdict {
    /// The name of the cause, which is also the error code of a failed tool.
    #[must_use]
    pub fn cause(&self) -> &'static str {
        match self {
            Self::Exited { .. } => "exited",
            Self::Signaled { .. } => "signaled",
            Self::WallLimit => "wall_limit",
            Self::CpuLimit => "cpu_limit",
            Self::MemoryLimit => "memory_limit",
            Self::PidsLimit => "pids_limit",
            Self::OutputLimit => "output_limit",
            Self::Cancelled => "cancelled",
            Self::StartFailed { .. } => "start_failed",
            Self::Lost => "lost",
            Self::Internal => "internal",
        }
    }
}

/// A limit that was reached, and how that was seen. Being listed here does not make it the cause.
///
/// One name is no limit: `output_read` says that a stream was not read to its end, because somebody outside of the cell
/// still held its pipe or wrote to it. Digest and size are then those of what was read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitHit {
    /// The limit's name, as in `limits`; or `output_read`.
    pub limit: String,
    /// Where it was seen.
    pub seen: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_have_the_contract_s_form() {
        let exited = serde_json::to_string(&Verdict::Exited { exit_code: 137 }).unwrap();
        assert_eq!(exited, r#"{"cause":"exited","exit_code":137}"#);
        assert_eq!(serde_json::to_string(&Verdict::WallLimit).unwrap(), r#"{"cause":"wall_limit"}"#);
        let back: Verdict =
            serde_json::from_str(r#"{"cause":"start_failed","stage":"exec","errno":"ENOENT"}"#).unwrap();
        assert_eq!(back.cause(), "start_failed");
    }
}
