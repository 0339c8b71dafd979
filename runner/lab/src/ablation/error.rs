//! Why there is no matrix.

use toolcell_client::ClientError;

/// Why there is no matrix.
#[derive(Debug, thiserror::Error)]
pub enum AblationError {
    /// The system refused something that has nothing to do with cells.
    #[error("cannot {doing}")]
    System {
        /// What.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
    /// The daemon did not do what was asked.
    #[error("a call failed")]
    Client {
        /// Why.
        source: ClientError,
    },
    /// The daemon has no key.
    #[error("the instance names no key, so that no receipt of its can be checked")]
    NoKey,
    /// Controls were to be switched off where that is not done.
    #[error("this instance does not switch controls off")]
    NotAblating,
    /// An answer cannot be believed.
    #[error("the receipt of a call of {probe} does not hold: {detail}")]
    Receipt {
        /// Whose call.
        probe: String,
        /// The checks.
        detail: String,
    },
    /// A process that stands outside of the cells did not do its part.
    #[error("a process that stands outside of the cells broke down: {detail}")]
    Bystander {
        /// How.
        detail: String,
    },
    /// A task ended by itself.
    #[error("a task broke down")]
    Task {
        /// How.
        source: tokio::task::JoinError,
    },
}

impl AblationError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        let remedy = match self {
            Self::Client { source } => return source.remedy(),
            Self::NotAblating => {
                "leave --socket out, or start one that does: toolcell serve --ablation --socket PATH --state DIR"
            }
            Self::NoKey | Self::Receipt { .. } => "use the toolcell binary that the instance was started from",
            Self::Bystander { .. } | Self::Task { .. } => "try again on a machine that is less busy",
            Self::System { .. } => "look whether /var/tmp and /tmp can be written to and have room",
        };
        remedy.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_says_what_to_do() {
        let errors = [
            AblationError::NoKey,
            AblationError::NotAblating,
            AblationError::System { doing: "listen", source: std::io::ErrorKind::AddrInUse.into() },
            AblationError::Receipt { probe: "x".to_owned(), detail: "signature FAILED".to_owned() },
            AblationError::Bystander { detail: "it is gone".to_owned() },
        ];
        for error in errors {
            assert!(!error.remedy().is_empty() && !error.to_string().ends_with('.'), "{error}");
        }
    }
}
