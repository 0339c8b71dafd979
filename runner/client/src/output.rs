//! Following what a running call writes.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::ClientError;

/// One of a call's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// `stdout` or `stderr`, as in the path of its endpoint.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// The bytes of one stream as they come, each in order. Dropping it stops following and holds nothing up.
#[derive(Debug)]
pub struct OutputStream {
    body: Incoming,
}

impl OutputStream {
    pub(crate) fn new(body: Incoming) -> Self {
        Self { body }
    }

    /// The next piece, or none once the stream has ended.
    ///
    /// # Errors
    /// [`ClientError::Transport`] when the daemon went away in the middle: what came so far is right but not all.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        while let Some(frame) = self.body.frame().await {
            let frame = frame.map_err(|source| ClientError::Transport { doing: "following an output", source })?;
            // Trailers hold nothing that is asked for here.
            if let Ok(piece) = frame.into_data()
                && !piece.is_empty()
            {
                return Ok(Some(piece));
            }
        }
        Ok(None)
    }
}
