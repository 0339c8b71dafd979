//! Ctrl-C while a call runs: the first cancels the call and waits for its end, the second stops waiting.
//!
//! SIGTERM and the hang-up of the terminal do the same, so that nothing runs on for somebody who is gone.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use toolcell_client::{CallStatus, Client, ClientError};
use toolcell_types::{CallId, ErrorCode};

use crate::render;

/// A call that is not admitted yet is unknown; the wish is repeated until it is.
const AGAIN: Duration = Duration::from_millis(50);

/// How the work on a call ended.
#[derive(Debug)]
pub(crate) enum Waited<T> {
    /// By itself, or because the call was cancelled.
    Done(T),
    /// A second signal came: the call is being cancelled and nobody waits for it.
    GivenUp,
}

/// Does `work`, which waits for the end of `call`, and cancels the call at the first signal.
///
/// # Errors
/// The error of installing a signal handler.
pub(crate) async fn cancelling<T>(
    client: &Client,
    call: &CallId,
    work: impl Future<Output = T>,
) -> io::Result<Waited<T>> {
    let mut signals = Signals::listen()?;
    let mut work = pin!(work);
    tokio::select! {
        done = &mut work => return Ok(Waited::Done(done)),
        () = signals.next() => {}
    }
    let mut cancel = pin!(cancel(client, call));
    let mut is_asked = false;
    loop {
        tokio::select! {
            done = &mut work => return Ok(Waited::Done(done)),
            () = signals.next() => return Ok(Waited::GivenUp),
            asked = &mut cancel, if !is_asked => {
                is_asked = true;
                if let Err(error) = asked {
                    render::say(&format!("the call could not be cancelled: {error}"));
                }
            }
        }
    }
}

/// Asks for the end of a call that was submitted, whether it is admitted yet or not.
pub(crate) async fn cancel(client: &Client, call: &CallId) -> Result<CallStatus, ClientError> {
    loop {
        match client.cancel(call).await {
            Err(error) if error.problem().is_some_and(|problem| problem.code == ErrorCode::NotFound) => {
                tokio::time::sleep(AGAIN).await;
            }
            other => return other,
        }
    }
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
