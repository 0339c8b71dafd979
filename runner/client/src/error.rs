//! What can go wrong between a controller and the daemon, and what to do about it.

use std::io;
use std::path::PathBuf;

use toolcell_types::Problem;

/// Why a request has no result. Three kinds: the daemon refused ([`Self::Refused`]), the transport broke
/// ([`Self::Connect`], [`Self::Transport`], [`Self::Silent`]), or the other end speaks something else (the rest).
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing was sent: nobody answers at the socket, or we may not connect.
    #[error("cannot connect to {}", socket.display())]
    Connect {
        /// The socket.
        socket: PathBuf,
        /// The error of connect(2).
        source: io::Error,
    },
    /// The connection broke. The request may have arrived; a call is known by its `call_id` and never runs twice.
    #[error("the connection broke while {doing}")]
    Transport {
        /// What was being done.
        doing: &'static str,
        /// What the HTTP library saw.
        source: hyper::Error,
    },
    /// No response came in time.
    #[error("no response within {seconds} s while {doing}")]
    Silent {
        /// What was being done.
        doing: &'static str,
        /// How long it was waited, in seconds.
        seconds: u64,
    },
    /// The daemon said no, and why. Nothing has changed because of it.
    #[error("{problem}")]
    Refused {
        /// Code, text and remedy.
        problem: Box<Problem>,
        /// The body as it came, `application/problem+json`.
        body: bytes::Bytes,
    },
    /// The request cannot be written as HTTP.
    #[error("cannot write the request while {doing}")]
    Request {
        /// What was being done.
        doing: &'static str,
        /// What the HTTP library said.
        source: http::Error,
    },
    /// A status that this endpoint does not answer with, and no problem document with it.
    #[error("unexpected HTTP status {status} while {doing}")]
    Status {
        /// What was being done.
        doing: &'static str,
        /// The status.
        status: u16,
    },
    /// A body that is not of the shape that the endpoint answers with.
    #[error("the response is not of the expected shape while {doing}")]
    Shape {
        /// What was being done.
        doing: &'static str,
        /// Where it differs.
        source: serde_json::Error,
    },
    /// A body that broke off or is larger than any answer can be.
    #[error("the response broke off or is too large while {doing}")]
    Body {
        /// What was being done.
        doing: &'static str,
        /// What the HTTP library saw.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl ClientError {
    /// What to do next, one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Connect { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
                "ask as the user who started the daemon, or have it started with another --socket-mode".to_owned()
            }
            Self::Connect { socket, .. } if self.is_nobody_there() => {
                format!("start the daemon: toolcell serve --socket {}", socket.display())
            }
            Self::Connect { .. } => "look at the path of the socket".to_owned(),
            Self::Transport { .. } | Self::Silent { .. } | Self::Body { .. } => {
                "look at the daemon's log; a call that was submitted is found by its id with: toolcell calls ID"
                    .to_owned()
            }
            Self::Refused { problem, .. } => problem.remedy.clone(),
            Self::Request { .. } => "use an id of the form [A-Za-z0-9][A-Za-z0-9._-]{0,127}".to_owned(),
            Self::Status { .. } | Self::Shape { .. } => {
                "use the toolcell binary that the daemon was started from".to_owned()
            }
        }
    }

    /// Whether nothing was sent because nobody listens at the socket.
    #[must_use]
    pub fn is_nobody_there(&self) -> bool {
        matches!(self, Self::Connect { source, .. }
            if matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused))
    }

    /// Whether the daemon went away, before or while it was asked.
    #[must_use]
    pub fn is_gone(&self) -> bool {
        self.is_nobody_there() || matches!(self, Self::Transport { .. })
    }

    /// The refusal, if it is one.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Refused { problem, .. } => Some(problem),
            Self::Connect { .. }
            | Self::Transport { .. }
            | Self::Silent { .. }
            | Self::Request { .. }
            | Self::Status { .. }
            | Self::Shape { .. }
            | Self::Body { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(kind: io::ErrorKind) -> ClientError {
        ClientError::Connect { socket: "/run/x.sock".into(), source: kind.into() }
    }

    #[test]
    fn each_kind_of_failure_has_its_own_remedy() {
        let nobody = connect(io::ErrorKind::ConnectionRefused);
        assert!(nobody.is_nobody_there());
        assert_eq!(nobody.remedy(), "start the daemon: toolcell serve --socket /run/x.sock");
        let locked = connect(io::ErrorKind::PermissionDenied);
        assert!(!locked.is_nobody_there());
        assert!(locked.remedy().contains("--socket-mode"), "{}", locked.remedy());
        assert!(connect(io::ErrorKind::NotFound).problem().is_none());
    }
}
