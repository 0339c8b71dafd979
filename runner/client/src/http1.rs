//! One request on one connection.

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use toolcell_types::Problem;

use crate::ClientError;

/// Largest response body. An answer holds at most twice 64 MiB of output, and JSON writes a byte in at most six.
const RESPONSE_MAX_BYTES: usize = 1 << 30;
/// Largest problem document.
const PROBLEM_MAX_BYTES: usize = 8 << 20;

/// What is asked.
#[derive(Debug, Clone)]
pub(crate) struct Ask<'a> {
    /// For error texts: "asking for …".
    pub(crate) doing: &'static str,
    /// GET or POST.
    pub(crate) method: Method,
    /// Path and query.
    pub(crate) path: String,
    /// `Prefer`, if any (RFC 7240).
    pub(crate) prefer: Option<&'a str>,
    /// The body; empty for GET.
    pub(crate) body: Bytes,
    /// How long the head of the response may take; none for what runs a tool.
    pub(crate) patience: Option<Duration>,
}

impl Ask<'_> {
    /// A GET with half a minute of patience.
    pub(crate) fn get(doing: &'static str, path: impl Into<String>) -> Self {
        let patience = Some(Duration::from_secs(30));
        Self { doing, method: Method::GET, path: path.into(), prefer: None, body: Bytes::new(), patience }
    }

    /// A POST with half a minute of patience.
    pub(crate) fn post(doing: &'static str, path: impl Into<String>, body: Bytes) -> Self {
        Self { method: Method::POST, body, ..Self::get(doing, path) }
    }
}

/// A response whose body is complete.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Bytes,
}

/// A connection that is kept open.
pub(crate) type Sender = http1::SendRequest<Full<Bytes>>;

/// Opens a connection.
pub(crate) async fn connect(socket: &Path, doing: &'static str) -> Result<Sender, ClientError> {
    let stream = UnixStream::connect(socket)
        .await
        .map_err(|source| ClientError::Connect { socket: socket.to_owned(), source })?;
    let broken = |source| ClientError::Transport { doing, source };
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // The connection's own error also reaches the request, which reports it.
    drop(tokio::spawn(connection));
    Ok(sender)
}

/// The same as [`exchange`], on a connection that is there.
pub(crate) async fn exchange_on(sender: &mut Sender, ask: Ask<'_>) -> Result<Reply, ClientError> {
    let doing = ask.doing;
    let broken = |source| ClientError::Transport { doing, source };
    sender.ready().await.map_err(broken)?;
    let response = sender.send_request(write(ask)?).await.map_err(broken)?;
    whole(accepted(response, doing).await?, doing).await
}

/// Sends and reads the whole response. A problem document becomes [`ClientError::Refused`].
pub(crate) async fn exchange(socket: &Path, ask: Ask<'_>) -> Result<Reply, ClientError> {
    let doing = ask.doing;
    whole(open(socket, ask).await?, doing).await
}

async fn whole(response: Response<Incoming>, doing: &'static str) -> Result<Reply, ClientError> {
    let (head, body) = response.into_parts();
    let body = collect(body, RESPONSE_MAX_BYTES, doing).await?;
    Ok(Reply { headers: head.headers, body })
}

/// Sends and reads the head of the response; the body is still to come. A problem document becomes
/// [`ClientError::Refused`].
pub(crate) async fn open(socket: &Path, ask: Ask<'_>) -> Result<Response<Incoming>, ClientError> {
    let (doing, patience) = (ask.doing, ask.patience);
    let sent = send(socket, ask);
    let response = match patience {
        None => sent.await?,
        Some(patience) => match tokio::time::timeout(patience, sent).await {
            Ok(response) => response?,
            Err(_elapsed) => return Err(ClientError::Silent { doing, seconds: patience.as_secs() }),
        },
    };
    accepted(response, doing).await
}

/// The response, unless it is a refusal.
async fn accepted(response: Response<Incoming>, doing: &'static str) -> Result<Response<Incoming>, ClientError> {
    if response.status().is_success() {
        return Ok(response);
    }
    let status = response.status().as_u16();
    let body = collect(response.into_body(), PROBLEM_MAX_BYTES, doing).await?;
    match serde_json::from_slice::<Problem>(&body) {
        Ok(problem) => Err(ClientError::Refused { problem: Box::new(problem), body }),
        Err(_no_problem_document) => Err(ClientError::Status { doing, status }),
    }
}

async fn send(socket: &Path, ask: Ask<'_>) -> Result<Response<Incoming>, ClientError> {
    let doing = ask.doing;
    let request = write(ask)?;
    let mut sender = connect(socket, doing).await?;
    sender.send_request(request).await.map_err(|source| ClientError::Transport { doing, source })
}

fn write(ask: Ask<'_>) -> Result<Request<Full<Bytes>>, ClientError> {
    let mut request = Request::builder().method(ask.method).uri(&ask.path).header(http::header::HOST, "localhost");
    if let Some(prefer) = ask.prefer {
        request = request.header("prefer", prefer);
    }
    if !ask.body.is_empty() {
        request = request.header(http::header::CONTENT_TYPE, "application/json");
    }
    let doing = ask.doing;
    request.body(Full::new(ask.body)).map_err(|source| ClientError::Request { doing, source })
}

async fn collect(body: Incoming, most: usize, doing: &'static str) -> Result<Bytes, ClientError> {
    let whole = Limited::new(body, most).collect().await.map_err(|source| ClientError::Body { doing, source })?;
    Ok(whole.to_bytes())
}
