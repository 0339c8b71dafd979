//! Accepting connections and answering on them, within bounds.
//!
//! Guarantees: a connection whose credentials the kernel does not tell is closed unread; open connections are bounded in
//! all and for one user, and some are left to operators ([`SEATS`]), so that no user can lock the others out, and no
//! number of them the operators; a request head has to come within [`HEAD_PATIENCE`], which also ends idle connections;
//! an answer that nobody takes ends one as well (see `patient`), and so does a client that is gone; one that only says
//! that it sends nothing more gets its answer. A head that is no HTTP, or too long, is answered by the HTTP library
//! itself: 400, 414 or 431 without a body. Does not: know what a request means.

pub(crate) mod patient;

use std::convert::Infallible;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use toolcell_types::{ErrorCode, Problem};
use tower_service::Service as _;

use crate::calls::Calls;
use crate::identify::{Peer, is_operator};
use crate::serve::patient::{Follows, Patient};
use crate::shares::{Bounds, Shares, Short, Who};

/// Open connections: 64 live calls with two followers each, and room for everything else; 16 calls of one user, with as
/// much room. An operator's own are bounded by what there is in all.
const SEATS: Bounds = Bounds { all: 512, per_user: 128, for_operators: 64 };
/// How long a request head may take, and how long a connection may wait for its next request.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// Most bytes of a request head.
const HEAD_MAX_BYTES: usize = 32 * 1024;
/// Most header lines.
const HEADERS_MAX: usize = 64;
/// After an accept that failed (for want of descriptors, say).
const BREATHER: Duration = Duration::from_millis(50);
/// How long the log says nothing more about connections that were turned away.
const SILENCE: Duration = Duration::from_secs(60);
/// How often is looked whether a client is still there.
const LOOK: Duration = Duration::from_secs(1);
/// How often quiet is looked for.
const TICK: Duration = Duration::from_millis(500);

/// Why accepting ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    /// Somebody asked for it.
    Asked,
    /// Nobody came, and no call was live, for the time that was given.
    Idle,
}

/// What the connections share.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    router: Router,
    calls: Arc<Calls>,
    operator_uids: Vec<u32>,
    seats: Arc<Shares>,
    tasks: TaskTracker,
    stop: CancellationToken,
    told_full: Arc<Mutex<Option<Instant>>>,
}

impl Server {
    /// A server for these paths; it stops when the calls say so.
    pub(crate) fn new(router: Router, calls: Arc<Calls>, operator_uids: Vec<u32>) -> Self {
        let (seats, tasks, stop) = (Shares::new(SEATS), TaskTracker::new(), calls.stop());
        Self { router, calls, operator_uids, seats, tasks, stop, told_full: Arc::default() }
    }

    /// Accepts until asked to stop, or until it was quiet for `idle_exit`.
    pub(crate) async fn accept(&self, listener: UnixListener, idle_exit: Option<Duration>) -> Stopped {
        let mut quiet_since = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return Stopped::Asked,
                accepted = listener.accept() => {
                    quiet_since = Instant::now();
                    match accepted {
                        Ok((stream, _address)) => self.open(stream),
                        Err(error) => {
                            tracing::warn!(%error, "a connection could not be accepted");
                            tokio::time::sleep(BREATHER).await;
                        }
                    }
                }
                _ = ticks.tick() => {
                    if self.calls.live_count() > 0 || !self.tasks.is_empty() {
                        quiet_since = Instant::now();
                    }
                    if idle_exit.is_some_and(|most| quiet_since.elapsed() >= most) {
                        return Stopped::Idle;
                    }
                }
            }
        }
    }

    /// Waits until every connection has had its last reply, but not for ever.
    pub(crate) async fn drain(&self, patience: Duration) {
        self.stop.cancel();
        self.tasks.close();
        if tokio::time::timeout(patience, self.tasks.wait()).await.is_err() {
            tracing::warn!(open = self.tasks.len(), "connections are closed before their time");
        }
    }

    /// At most one line in a while, so that nobody fills the log by connecting.
    fn tell_full(&self, uid: u32) {
        let mut told = self.told_full.lock().unwrap_or_else(PoisonError::into_inner);
        if told.is_none_or(|at| at.elapsed() >= SILENCE) {
            *told = Some(Instant::now());
            tracing::warn!(uid, "too many connections are open, new ones are turned away");
        }
    }

    fn open(&self, stream: UnixStream) {
        let peer = match Peer::of(&stream) {
            Ok(peer) => Arc::new(peer),
            Err(error) => {
                tracing::warn!(%error, "a connection without credentials is closed");
                return;
            }
        };
        let who = Who { uid: peer.uid, is_operator: is_operator(peer.uid, &self.operator_uids) };
        let seat = match self.seats.take(who, 1) {
            Ok(seat) => seat,
            Err(short) => {
                self.tell_full(peer.uid);
                turn_away(&stream, short);
                return;
            }
        };
        let (router, stop) = (self.router.clone(), self.stop.clone());
        drop(self.tasks.spawn(async move {
            converse(stream, (router, peer), stop).await;
            drop(seat);
        }));
    }
}

/// One connection, to its end.
async fn converse(stream: UnixStream, (router, peer): (Router, Arc<Peer>), stop: CancellationToken) {
    let watched = match stream.as_fd().try_clone_to_owned() {
        Ok(watched) => watched,
        Err(error) => {
            tracing::warn!(%error, "a connection is closed for want of a descriptor");
            return;
        }
    };
    let follows = Arc::new(Follows::default());
    let stream = Patient::new(stream, Arc::clone(&follows));
    let service = service_fn(move |mut request: Request<Incoming>| {
        follows.set(None);
        request.extensions_mut().insert(Arc::clone(&peer));
        request.extensions_mut().insert(Arc::clone(&follows));
        // A router is always ready (Service::poll_ready of axum 0.8).
        let mut router = router.clone();
        async move { Ok::<Response<Body>, Infallible>(infallible(router.call(request).await)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .half_close(true)
        .header_read_timeout(HEAD_PATIENCE)
        .max_buf_size(HEAD_MAX_BYTES)
        .max_header_size(HEAD_MAX_BYTES)
        .max_headers(HEADERS_MAX)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = gone(&watched) => {
            tracing::debug!("a client left before its answer came");
            return;
        }
    };
    if let Err(error) = ended {
        // A client that left, or spoke no HTTP: its own affair.
        tracing::debug!(%error, "a connection ended early");
    }
}

/// Waits until the other end is closed, in both directions: nothing can be sent there any more. (POLLHUP; one that has
/// only shut down its writing shows as POLLRDHUP, see unix_poll in the kernel.) Seen twice in a row, so that a request
/// that was sent in the last moment is still read.
async fn gone(socket: &OwnedFd) {
    let mut seen = 0;
    while seen < 2 {
        tokio::time::sleep(LOOK).await;
        let mut polled = [PollFd::new(socket, PollFlags::empty())];
        let is_gone = poll(&mut polled, Some(&Timespec::default())).is_ok()
            && polled.iter().any(|one| one.revents().contains(PollFlags::HUP));
        seen = if is_gone { seen + 1 } else { 0 };
    }
}

fn infallible(result: Result<Response<Body>, Infallible>) -> Response<Body> {
    match result {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// One refusal without reading: a client that waits for it gets it, one that does not is not waited for.
fn turn_away(stream: &UnixStream, short: Short) {
    let (detail, remedy) = match short {
        Short::Own => (
            format!("you have {} connections open, which is the most for one user", SEATS.per_user),
            "close connections that are not needed, then send it again",
        ),
        Short::All => ("connections of everybody take all that this daemon has".to_owned(), "send it again later"),
    };
    let problem = Problem::new(ErrorCode::QueueFull, detail, remedy);
    let body = serde_json::to_string(&problem).unwrap_or_default();
    let reply = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\nretry-after: 1\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    if let Err(error) = stream.try_write(reply.as_bytes()) {
        tracing::debug!(%error, "a connection that was turned away did not hear so");
    }
}

#[cfg(test)]
mod tests {
    use axum::routing::post;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    #[test]
    fn no_user_can_take_every_seat_and_no_number_of_them_the_operators_seats() {
        let seats = Shares::new(SEATS);
        let user = |uid| Who { uid, is_operator: false };
        let mut taken = Vec::new();
        for uid in 1..=4 {
            taken.extend(std::iter::repeat_with(|| seats.take(user(uid), 1)).map_while(Result::ok));
        }
        assert_eq!(taken.len(), 448);
        assert!(seats.take(user(9), 1).is_err());
        assert!(seats.take(Who { uid: 0, is_operator: true }, 1).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_quiet_server_ends_by_itself_only_if_it_was_told_to() {
        let directory = tempfile::tempdir().unwrap();
        let bind = |name: &str| UnixListener::bind(directory.path().join(name)).unwrap();
        let server = Server::new(Router::new(), Arc::default(), Vec::new());
        assert_eq!(server.accept(bind("a"), Some(Duration::from_secs(60))).await, Stopped::Idle);
        let never = tokio::time::timeout(Duration::from_secs(6000), server.accept(bind("b"), None)).await;
        assert!(never.is_err());
    }

    /// A server on a socket, and a client's end of a connection to it.
    async fn connected(router: Router) -> (Server, UnixStream, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let (listener, server) = (UnixListener::bind(&path).unwrap(), Server::new(router, Arc::default(), Vec::new()));
        drop(tokio::spawn({
            let server = server.clone();
            async move { server.accept(listener, None).await }
        }));
        let client = UnixStream::connect(&path).await.unwrap();
        (server, client, directory)
    }

    const POST: &[u8] = b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nhi";

    async fn begun(server: &Server) {
        while server.tasks.is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_nothing_more_gets_its_answer() {
        let slow = async |body: String| {
            tokio::time::sleep(Duration::from_millis(100)).await;
            body
        };
        let (_server, mut client, _directory) = connected(Router::new().route("/", post(slow))).await;
        client.write_all(POST).await.unwrap();
        client.shutdown().await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("hi"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_is_gone_holds_no_seat() {
        let never = async |_body: String| std::future::pending::<()>().await;
        let (server, mut client, _directory) = connected(Router::new().route("/", post(never))).await;
        client.write_all(POST).await.unwrap();
        begun(&server).await;
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(server.tasks.len(), 1, "who waits is waited for");
        drop(client);
        tokio::time::sleep(LOOK * 4).await;
        assert!(server.tasks.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_nobody_takes_holds_no_seat() {
        let much = async || vec![b'x'; 8 << 20];
        let (server, mut client, _directory) = connected(Router::new().route("/", post(much))).await;
        client.write_all(POST).await.unwrap();
        begun(&server).await;
        tokio::time::sleep(patient::STALL_PATIENCE * 3).await;
        assert!(server.tasks.is_empty());
    }
}
