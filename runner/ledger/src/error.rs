//! Why the ledger cannot be opened, read or appended to.

use std::path::PathBuf;
use std::sync::Arc;

use toolcell_types::{CallState, ErrorCode};

use crate::{AttemptKey, SignError};

/// An error of the code that the ledger calls back.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why the ledger cannot be opened, read or appended to.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// A library with a known corruption bug (SQLite 3.7.0 to 3.51.2).
    #[error("SQLite {got} is older than {least}, which lost data")]
    Library {
        /// Its version number.
        got: i32,
        /// The oldest that is taken.
        least: i32,
    },
    /// A file system on which fsync or locks cannot be relied on.
    #[error("{path} lies on a file system of type {found}, a local one is needed")]
    FileSystem {
        /// The directory.
        path: PathBuf,
        /// Its magic number (statfs(2)), with the name if known.
        found: String,
    },
    /// The file or its directory could not be used.
    #[error("{path} could not be used")]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Somebody else could read or change the file.
    #[error("{path} must be a plain file of this user with mode 0600, it is {found}")]
    FileMode {
        /// Which.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// SQLite failed. During an append this is final.
    #[error("the database failed to {doing}")]
    Database {
        /// What was being done.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// The ledger is not what it must be.
    #[error("the ledger is invalid from entry {index} on: expected {expected}, found {found}")]
    Invalid {
        /// The first bad index.
        index: u64,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// The signer failed. During an append this is final.
    #[error("the signer failed")]
    Signer {
        /// How.
        source: SignError,
    },
    /// The code that the ledger called back failed. Nothing was written.
    #[error("the {what} could not be made")]
    Callback {
        /// What was asked for.
        what: &'static str,
        /// How it failed.
        source: BoxError,
    },
    /// The attempt is in another state than the entry needs. Nothing was written.
    #[error("{key} is {}, so that {wanted} cannot be written", state.map_or("not there", CallState::as_str))]
    Conflict {
        /// Which attempt.
        key: AttemptKey,
        /// Its state, or that of an earlier one of the same call.
        state: Option<CallState>,
        /// What was to be written.
        wanted: &'static str,
    },
    /// Too much is queued. Nothing was written.
    #[error("{most} entries are waiting to be written")]
    Busy {
        /// The length of the queue.
        most: usize,
    },
    /// Too little space for the outcome that would follow. Nothing was written.
    #[error("only {free} bytes are free for the ledger, {least} are needed")]
    NoSpace {
        /// Free bytes.
        free: u64,
        /// Needed bytes.
        least: u64,
    },
    /// The writer has stopped; nothing is written until the next start.
    #[error("the ledger has stopped writing")]
    Stopped {
        /// Why; none if its thread is gone.
        #[source]
        cause: Option<Arc<LedgerError>>,
    },
}

impl LedgerError {
    /// The public code; none for a fault of the runner that has no code of its own.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Invalid { .. }
            | Self::Stopped { .. }
            | Self::Database { .. }
            | Self::Signer { .. }
            | Self::Library { .. }
            | Self::FileSystem { .. }
            | Self::File { .. }
            | Self::FileMode { .. } => Some(ErrorCode::LedgerInvalid),
            Self::Conflict { .. } => Some(ErrorCode::OutcomeUnknown),
            Self::Busy { .. } | Self::NoSpace { .. } => Some(ErrorCode::QueueFull),
            Self::Callback { .. } => None,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Library { .. } => "build with the bundled SQLite",
            Self::FileSystem { .. } => {
                "put the state on ext4, xfs, btrfs, f2fs, zfs, bcachefs or tmpfs; in a container, on a volume"
            }
            Self::File { .. } => "make the state directory writable for the daemon's user",
            Self::FileMode { .. } => "chown the file to the daemon's user and chmod it to 0600",
            Self::Database { .. } => "check the disk and the system log, then start again",
            Self::Invalid { .. } => {
                "keep this state for whoever has to look into it, and start a new one with a new key"
            }
            Self::Signer { .. } => "see the signer's own message, then start again",
            Self::Callback { .. } => "report this with the log",
            Self::Conflict { .. } => "look at the call's state; use a new call_id for new work",
            Self::Busy { .. } => "try again later",
            Self::NoSpace { .. } => "free space on the state's file system",
            Self::Stopped { .. } => "look at the log for the first error, then start again",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_happened_which_code_it_has_and_what_to_do() {
        let path = || PathBuf::from("/var/lib/toolcell/ledger.db");
        let io = || std::io::Error::from_raw_os_error(13);
        let key = || AttemptKey { tenant: "uid:0".to_owned(), key: "sum-1".to_owned(), attempt: 1 };
        let unreachable = || SignError::Unreachable { source: io() };
        let all = [
            LedgerError::Library { got: 3_040_001, least: 3_051_003 },
            LedgerError::FileSystem { path: path(), found: "overlay (0x794c7630)".to_owned() },
            LedgerError::File { path: path(), source: io() },
            LedgerError::FileMode { path: path(), found: "of mode 0644 with 1 names".to_owned() },
            LedgerError::Database { doing: "commit", source: rusqlite::Error::QueryReturnedNoRows },
            LedgerError::Invalid { index: 7, expected: "entry 7".to_owned(), found: "entry 8".to_owned() },
            LedgerError::Signer { source: unreachable() },
            LedgerError::Signer { source: SignError::Refused { at: 2, detail: "log.index is 4".to_owned() } },
            LedgerError::Signer { source: SignError::Protocol { detail: "1 signatures for 2 payloads".to_owned() } },
            LedgerError::Callback { what: "payload", source: "too long".into() },
            LedgerError::Conflict { key: key(), state: Some(CallState::Complete), wanted: "an intent" },
            LedgerError::Conflict { key: key(), state: None, wanted: "an outcome" },
            LedgerError::Busy { most: 1024 },
            LedgerError::NoSpace { free: 1, least: 67_108_864 },
            LedgerError::Stopped { cause: Some(Arc::new(LedgerError::Signer { source: unreachable() })) },
        ];
        let lines = all.iter().map(|error| {
            let code = error.code().map_or("no code", ErrorCode::as_str);
            format!("{error}\n    {code}: {}\n", error.remedy())
        });
        insta::assert_snapshot!(lines.collect::<String>());
    }
}
