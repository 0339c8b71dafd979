//! Ctrl-C while a call runs: the first cancels the call and waits for its end, the second stops waiting.
//!
//! SIGTERM and the hang-up of the terminal do the same, so that nothing runs on for somebody who is gone.

use std::future::Future;
use std::io::{self, IsTerminal as _};
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
        signal = signals.next() => signal.leave_the_line(),
    }
    let mut cancel = pin!(cancel(client, call));
    let mut is_asked = false;
    loop {
        tokio::select! {
            done = &mut work => return Ok(Waited::Done(done)),
            signal = signals.next() => {
                signal.leave_the_line();
                return Ok(Waited::GivenUp);
            }
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

/// Those of the three that whoever started us did not have ignored, as nohup(1) and shells in the background do.
struct Signals {
    interrupt: Option<Signal>,
    terminate: Option<Signal>,
    hang_up: Option<Signal>,
}

impl Signals {
    fn listen() -> io::Result<Self> {
        let ignored = ignored(&std::fs::read_to_string("/proc/self/status")?);
        let listen = |kind: SignalKind| {
            let is_ignored = u32::try_from(kind.as_raw_value() - 1).is_ok_and(|bit| ignored >> bit & 1 == 1);
            if is_ignored { Ok(None) } else { signal(kind).map(Some) }
        };
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Came {
        tokio::select! {
            () = one(&mut self.interrupt) => Came::Interrupt,
            () = one(&mut self.terminate) => Came::Other,
            () = one(&mut self.hang_up) => Came::Other,
        }
    }
}

/// Which signal came.
#[derive(Debug, Clone, Copy)]
enum Came {
    Interrupt,
    Other,
}

impl Came {
    /// A terminal shows Ctrl-C as `^C` (termios(3), ECHOCTL); what is said next begins a line of its own.
    fn leave_the_line(self) {
        match self {
            Self::Interrupt if io::stderr().is_terminal() => render::err(b"\n"),
            Self::Interrupt | Self::Other => {}
        }
    }
}

async fn one(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// The set of ignored signals, bit n − 1 for signal n (proc(5), SigIgn). A status without it ignores none.
fn ignored(status: &str) -> u64 {
    let set = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    set.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_that_were_ignored_stay_ignored() {
        let status = "Name:\ttoolcell\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000001003\n";
        assert_eq!(ignored(status), 0x1003, "SIGHUP, SIGINT and SIGPIPE");
        assert_eq!(ignored(""), 0);
    }

    #[tokio::test]
    async fn a_signal_cancels_the_work_s_call_and_the_next_gives_up() {
        let folder = tempfile::tempdir().unwrap();
        let client = Client::new(folder.path().join("nobody"));
        let call = CallId::new("c").unwrap();
        let pid = rustix::process::getpid();
        let work = async {
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
            }
            std::future::pending::<()>().await;
        };
        assert!(matches!(cancelling(&client, &call, work).await.unwrap(), Waited::GivenUp));
    }

    #[tokio::test]
    async fn work_that_ends_by_itself_is_done() {
        let client = Client::new("/nowhere");
        let call = CallId::new("c").unwrap();
        assert!(matches!(cancelling(&client, &call, async { 7 }).await.unwrap(), Waited::Done(7)));
    }
}
