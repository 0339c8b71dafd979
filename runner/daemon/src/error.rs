//! Why the daemon could not start or had to end.

use std::path::PathBuf;
use std::sync::Arc;

use toolcell_confinement::ConfinementError;
use toolcell_ledger::{BlobError, LedgerError};
use toolcell_policy::InvalidPolicy;

use crate::LauncherError;

/// Why the daemon could not start or had to end. Printed by whoever started it.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// A policy file could not be read.
    #[error("the policy file {name} cannot be read")]
    PolicyFile {
        /// Its name within the policy directory, escaped.
        name: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The policy has mistakes.
    #[error("the policy is not valid")]
    Policy {
        /// All of them.
        source: InvalidPolicy,
    },
    /// The process could not be confined.
    #[error("the daemon could not confine itself")]
    Sandbox {
        /// What failed.
        source: ConfinementError,
    },
    /// A descriptor, thread, signal or kernel file that the daemon needs could not be used.
    #[error("the daemon could not {doing}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The digest of the program has no known form.
    #[error("{got:?} is no build digest")]
    Build {
        /// What was given.
        got: String,
    },
    /// The ledger could not be opened.
    #[error("the ledger cannot be used")]
    Ledger {
        /// Why.
        source: LedgerError,
    },
    /// The signer does not answer.
    #[error("the signer does not answer")]
    Signer {
        /// How it failed.
        source: toolcell_ledger::SignError,
    },
    /// The directory of kept output could not be used.
    #[error("the directory of kept output cannot be used")]
    Blobs {
        /// Why.
        source: BlobError,
    },
    /// The launcher is gone, without which no call can run.
    #[error("no call can run any more")]
    Launcher {
        /// How.
        source: Arc<LauncherError>,
    },
    /// Logging could not be set up.
    #[error("the log cannot be set up")]
    Logs {
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The directory holds more than a policy has.
    #[error("{path} holds more than {most} files")]
    PolicyFolder {
        /// What was read.
        path: PathBuf,
        /// The most that is read.
        most: usize,
    },
}

impl DaemonError {
    /// What to do next.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::PolicyFile { .. } => "make every file of the policy directory a readable plain file",
            Self::PolicyFolder { .. } => "leave only policy files in the policy directory",
            Self::Policy { .. } => "correct the places that are named",
            Self::Sandbox { .. } => "see the cause; `toolcell doctor` says what this machine lacks",
            Self::System { .. } => "see the cause; this needs no more than what every process has",
            Self::Build { .. } => "start the daemon through `toolcell serve`, which finds the digest out",
            Self::Ledger { source } => source.remedy(),
            Self::Signer { .. } => "see the signer's own message, then start again",
            Self::Blobs { .. } => "make the directory `blobs` of the state writable for the daemon's user",
            Self::Launcher { .. } => "see the launcher's own message, then start again",
            Self::Logs { .. } => "report this",
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_ledger::SignError;
    use toolcell_policy::Policy;

    use super::*;

    #[test]
    fn every_error_says_what_to_do() {
        let refused = || std::io::Error::from_raw_os_error(13);
        let errors = [
            DaemonError::PolicyFile { name: "tools.toml".to_owned(), source: refused() },
            DaemonError::Policy { source: Policy::parse(&[("tools.tml".to_owned(), Vec::new())]).unwrap_err() },
            DaemonError::Sandbox { source: ConfinementError::Root { source: refused() } },
            DaemonError::System { doing: "read the boot id", source: refused() },
            DaemonError::Build { got: "x".to_owned() },
            DaemonError::Ledger { source: LedgerError::Busy { most: 1 } },
            DaemonError::Signer { source: SignError::Unreachable { source: refused() } },
            DaemonError::Blobs { source: BlobError::File { path: PathBuf::from("/state/blobs"), source: refused() } },
            DaemonError::Launcher { source: Arc::new(LauncherError::Gone) },
            DaemonError::Logs { source: refused().into() },
            DaemonError::PolicyFolder { path: PathBuf::from("the policy directory"), most: 16 },
        ];
        let lines: Vec<_> = errors.iter().map(|error| format!("{error}\n  hint: {}", error.remedy())).collect();
        insta::assert_snapshot!(lines.join("\n"));
    }
}
