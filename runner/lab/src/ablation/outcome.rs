//! What came of one call of one probe.

use serde::Serialize;

/// What came of one call. Only the first two say anything about controls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// It was refused, or killed.
    Stopped {
        /// By its own word, or how it was killed.
        how: String,
    },
    /// It got through, and who had to see it has seen it.
    Reached {
        /// What was reached.
        what: String,
    },
    /// This kernel does not have what it tries.
    NotApplicable {
        /// What is missing.
        why: String,
    },
    /// The controls cannot be switched off in this way here.
    NotPossible {
        /// In the words of the instance.
        why: String,
    },
    /// There is no program to run.
    NotRun {
        /// What is missing, and what to do.
        why: String,
    },
    /// Anything else: it broke down, or a witness and its word contradict each other.
    Broken {
        /// What was seen.
        why: String,
    },
}

impl Outcome {
    /// Its word, as in JSON.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Stopped { .. } => "stopped",
            Self::Reached { .. } => "reached",
            Self::NotApplicable { .. } => "not_applicable",
            Self::NotPossible { .. } => "not_possible",
            Self::NotRun { .. } => "not_run",
            Self::Broken { .. } => "broken",
        }
    }

    /// What is said about it.
    #[must_use]
    pub fn words(&self) -> &str {
        match self {
            Self::Stopped { how } => how,
            Self::Reached { what } => what,
            Self::NotApplicable { why } | Self::NotPossible { why } | Self::NotRun { why } | Self::Broken { why } => {
                why
            }
        }
    }

    /// Whether it got through.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        matches!(self, Self::Reached { .. })
    }

    /// Whether it was stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Stopped { .. })
    }

    /// Why its controls cannot be switched off in that way here, if it is that.
    #[must_use]
    pub fn not_possible(&self) -> Option<&str> {
        if let Self::NotPossible { why } = self { Some(why) } else { None }
    }

    /// Whether it broke down.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        matches!(self, Self::Broken { .. })
    }
}
