//! One task per pipe: from the descriptor into what is kept.
//!
//! Guarantees: ends with the pipe, or a bounded time after the attempt, of which it then reads no more than what was in
//! the pipe (FIONREAD; more than F_GETPIPE_SZ says, if pages larger than one were spliced into it), so that a tree that
//! could not be killed cannot fill the memory; says so if the pipe had more, or did not end; reads nothing while a reader
//! is behind by more than the window, or while the output limit is exceeded and the tree not yet dead. Does not: decide
//! what to kill.

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
            left = Some(usize::try_from(rustix::io::ioctl_fionread(&pipe)?).unwrap_or(usize::MAX));
        }
        // With nothing left, one byte tells the end from somebody who still writes.
        let most = left.map_or(chunk.len(), |left| left.clamp(1, chunk.len()));
        let length = pipe.read(chunk.get_mut(..most).unwrap_or_default()).await?;
        if length == 0 {
            return Ok(());
        }
        if let Some(before) = left {
            let rest = before.checked_sub(length);
            left = Some(rest.ok_or_else(|| std::io::Error::other("somebody outside of the cell still writes to it"))?);
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
    /// Waits for the end of the pipe, but not for ever. Says why it was not read to its end, if so.
    pub(super) async fn finish(mut self, patience: Duration) -> Option<String> {
        let why = match tokio::time::timeout(patience, &mut self.task).await {
            Ok(Ok(Ok(()))) => return None,
            Ok(Ok(Err(error))) => error.to_string(),
            Ok(Err(error)) => format!("its reader failed: {error}"),
            Err(_elapsed) => {
                self.task.abort();
                let seconds = patience.as_secs();
                format!("somebody outside of the cell held it open {seconds} s after the end of the attempt")
            }
        };
        tracing::warn!(stream = self.name.as_str(), why, "an output pipe was not read to its end");
        Some(why)
    }
}
