//! One task per pipe: from the descriptor into what is kept.
//!
//! Guarantees: ends with the pipe, or a bounded time after the attempt, of which it then reads no more than what the pipe
//! could hold (pipe(7), F_GETPIPE_SZ), so that a tree that could not be killed cannot fill the memory; reads nothing while a reader is behind by more
//! than the window, or while the output limit is exceeded and the tree not yet dead. Does not: decide what to kill.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::task::JoinHandle;

use super::{Output, StreamName, WINDOW_BYTES};

/// A running task.
#[derive(Debug)]
pub(super) struct Pump {
    name: StreamName,
    task: JoinHandle<std::io::Result<()>>,
}

/// Reads the pipe from now on.
pub(super) fn start(output: Arc<Output>, name: StreamName, pipe: OwnedFd) -> std::io::Result<Pump> {
    let pipe = Receiver::from_owned_fd(pipe)?;
    Ok(Pump { name, task: tokio::spawn(pump(output, name, pipe)) })
}

async fn pump(output: Arc<Output>, name: StreamName, mut pipe: Receiver) -> std::io::Result<()> {
    let stream = output.stream(name);
    let mut chunk = vec![0_u8; WINDOW_BYTES];
    let mut left = None;
    loop {
        if output.is_over_limit() {
            output.ended.cancelled().await;
        }
        if output.ended.is_cancelled() && left.is_none() {
            left = Some(rustix::pipe::fcntl_getpipe_size(&pipe)?);
        }
        let length = pipe.read(&mut chunk).await?;
        if length == 0 {
            return Ok(());
        }
        if let Some(most) = left {
            // More than the pipe held at the end: somebody still writes.
            left = Some(most.checked_sub(length).ok_or_else(|| std::io::Error::other("somebody still writes to it"))?);
        }
        output.count(u64::try_from(length).unwrap_or(u64::MAX));
        let bytes = chunk.get(..length).unwrap_or(&chunk);
        loop {
            // Made before the try, so that no notification is lost between the two.
            let read = stream.read.notified();
            if stream.append(bytes, output.ended.is_cancelled()) {
                break;
            }
            tokio::select! {
                () = read => {}
                () = output.ended.cancelled() => {}
            }
        }
    }
}

impl Pump {
    /// Waits for the end of the pipe, but not for ever.
    pub(super) async fn finish(mut self, patience: Duration) {
        match tokio::time::timeout(patience, &mut self.task).await {
            Ok(Ok(Ok(()))) => {}
            Ok(Ok(Err(error))) => {
                tracing::warn!(stream = self.name.as_str(), %error, "an output pipe could not be read to its end");
            }
            Ok(Err(error)) => tracing::error!(stream = self.name.as_str(), %error, "an output reader failed"),
            Err(_elapsed) => {
                self.task.abort();
                tracing::warn!(stream = self.name.as_str(), "an output pipe stayed open after the end of its cell");
            }
        }
    }
}
