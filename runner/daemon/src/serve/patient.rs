//! A connection whose other end has to take what it is sent.
//!
//! Guarantees: who takes no byte of what waits for him within [`STALL_PATIENCE`] is closed, so that answers nobody reads
//! hold neither a seat nor memory, nor keep an idle daemon up; who follows a call is waited for while the call is live.
//! Does not: ask for a rate.

use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::output::Output;

/// How long a client may take nothing.
pub(crate) const STALL_PATIENCE: Duration = Duration::from_secs(30);

/// The call that a connection follows, if any.
#[derive(Debug, Default)]
pub(crate) struct Follows(Mutex<Option<Arc<Output>>>);

impl Follows {
    /// From now on this one; none with the next request.
    pub(crate) fn set(&self, output: Option<Arc<Output>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = output;
    }

    /// Whether more may come from it.
    fn is_live(&self) -> bool {
        let output = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        output.as_ref().is_some_and(|output| !output.is_over())
    }
}

/// The stream.
#[derive(Debug)]
pub(super) struct Patient<S> {
    stream: S,
    follows: Arc<Follows>,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> Patient<S> {
    /// Watches this stream.
    pub(super) fn new(stream: S, follows: Arc<Follows>) -> Self {
        Self { stream, follows, stalled: None }
    }

    /// What came of a try to send something, and whether there may be another.
    fn watch<T>(&mut self, context: &mut Context<'_>, sent: Poll<Result<T>>) -> Poll<Result<T>> {
        if sent.is_ready() {
            self.stalled = None;
            return sent;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(tokio::time::sleep(STALL_PATIENCE)));
        while stalled.as_mut().poll(context).is_ready() {
            if !self.follows.is_live() {
                return Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "nobody takes what is sent")));
            }
            stalled.as_mut().reset(Instant::now() + STALL_PATIENCE);
        }
        Poll::Pending
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Patient<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Patient<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, sent)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let sent = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.watch(context, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use toolcell_types::Limits;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_closed_and_who_takes_something_is_waited_for() {
        let (ours, mut theirs) = tokio::io::duplex(10);
        let mut ours = Patient::new(ours, Arc::default());
        let sending = tokio::spawn(async move { ours.write_all(&[7; 40]).await });
        let mut some = [0; 10];
        for _ in 0..3 {
            tokio::time::sleep(STALL_PATIENCE * 2 / 3).await;
            theirs.read_exact(&mut some).await.unwrap();
        }
        assert!(sending.await.unwrap().is_ok());

        let (ours, _theirs) = tokio::io::duplex(10);
        let error = Patient::new(ours, Arc::default()).write_all(&[7; 40]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_is_waited_for_as_long_as_its_call_is_live() {
        let (ours, _theirs) = tokio::io::duplex(10);
        let output = Output::new(&Limits::default());
        let follows = Arc::new(Follows::default());
        follows.set(Some(Arc::clone(&output)));
        let mut ours = Patient::new(ours, follows);
        let sending = tokio::spawn(async move { ours.write_all(&[7; 40]).await });
        tokio::time::sleep(STALL_PATIENCE * 5).await;
        assert!(!sending.is_finished());
        output.close();
        tokio::time::sleep(STALL_PATIENCE * 2).await;
        assert!(sending.await.unwrap().is_err());
    }
}
