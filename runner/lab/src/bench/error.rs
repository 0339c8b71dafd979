//! Why nothing was measured.

use std::path::PathBuf;

use toolcell_client::ClientError;

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The system refused something that has nothing to do with cells.
    #[error("cannot {doing}")]
    System {
        /// What.
        doing: &'static str,
        /// What it said.
        source: std::io::Error,
    },
    /// A file could not be used.
    #[error("cannot use {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The instance that was started for this does not answer.
    #[error("the instance did not start: {words}")]
    Start {
        /// The end of what it wrote.
        words: String,
    },
    /// The daemon did not do what was asked.
    #[error("a call failed")]
    Client {
        /// Why.
        source: ClientError,
    },
    /// An answer is not what the comparison needs.
    #[error("a call did not do what it should: {detail}")]
    Answer {
        /// What is wrong with it.
        detail: String,
    },
    /// Another way of running the program failed.
    #[error("{way} failed: {detail}")]
    Other {
        /// Which.
        way: &'static str,
        /// What it said.
        detail: String,
    },
    /// Somebody asked for the end.
    #[error("interrupted; what was started for this is ended and removed")]
    Interrupted,
    /// A task of the comparison ended by itself.
    #[error("a task of the comparison broke down")]
    Task {
        /// How.
        source: tokio::task::JoinError,
    },
}

impl BenchError {
    /// What to do about it, in one sentence; empty where there is nothing to advise.
    #[must_use]
    pub fn remedy(&self) -> String {
        let remedy = match self {
            Self::Client { source } => return source.remedy(),
            Self::Interrupted => "",
            Self::Start { .. } => "start `toolcell serve` by hand with the same rights and see what it lacks",
            Self::Answer { .. } => {
                "see that `toolcell run -- true` works here with all controls; a figure for less is worth nothing"
            }
            Self::File { .. } => "name a folder on a local file system that you may write to: --dir DIR",
            Self::Other { .. } => "run it by hand, or leave it out by taking it from PATH",
            Self::System { .. } | Self::Task { .. } => "try again on a machine that is less busy",
        };
        remedy.to_owned()
    }
}
