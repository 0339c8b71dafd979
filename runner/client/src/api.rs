//! The endpoints, one method each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use serde::de::DeserializeOwned;
use toolcell_types::doctor::DoctorReport;
use toolcell_types::{Answer, CallId, CallState, CallsPage, Health, KeysPage, ReceiptsPage, RunningCall, ToolsPage};

use crate::http1::{Ask, Reply, Sender, connect, exchange, exchange_on, open};
use crate::{ClientError, OutputStream, Stream};

/// A survey has four cells with clocks of a minute each, and may have to wait for the one before. It takes half a second where
/// the machine is not busy.
const SURVEY_PATIENCE: Duration = Duration::from_secs(600);

/// Asks the daemon behind one socket. Cheap to clone; holds no connection.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
}

/// The end of a call.
#[derive(Debug, Clone)]
pub struct CallReply {
    /// The answer, read.
    pub answer: Box<Answer>,
    /// The answer, byte for byte as the daemon stored it.
    pub body: Bytes,
    /// Whether it is the stored answer of an earlier request with the same id.
    pub is_replay: bool,
    /// How long each stage of the call took in the daemon, in its order (`Server-Timing`); empty for a replay.
    pub stages: Vec<Stage>,
}

/// One stage of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How long it took, in milliseconds.
    pub ms: f64,
}

/// One connection that is kept open, for who calls often: one call at a time.
#[derive(Debug)]
pub struct Connection {
    sender: Sender,
}

impl Connection {
    /// The same as [`Client::call`], with an answer that is not read yet.
    ///
    /// # Errors
    /// As there. After a broken transport this connection is of no use any more.
    pub async fn call(&mut self, body: Bytes) -> Result<Unread, ClientError> {
        exchange_on(&mut self.sender, submission(body)).await.map(Unread)
    }
}

/// An answer that has come and was not read.
#[derive(Debug)]
pub struct Unread(Reply);

impl Unread {
    /// Reads it.
    ///
    /// # Errors
    /// [`ClientError::Shape`].
    pub fn read(self) -> Result<CallReply, ClientError> {
        over(self.0, SUBMITTING)
    }
}

const SUBMITTING: &str = "submitting a call";

fn submission(body: Bytes) -> Ask<'static> {
    Ask { patience: None, ..Ask::post(SUBMITTING, "/v1/calls", body) }
}

/// Where a call is.
#[derive(Debug, Clone)]
pub enum CallStatus {
    /// Its intent is signed; the rest is to come.
    Running(Box<RunningCall>),
    /// It is over.
    Over(CallReply),
}

impl Client {
    /// A client of the daemon at `socket`. Nothing is opened yet.
    #[must_use]
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into() }
    }

    /// The socket.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// `GET /healthz`.
    ///
    /// # Errors
    /// [`ClientError`]; `is_nobody_there` tells whether to start a daemon.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.read(Ask::get("asking for the daemon's health", "/healthz")).await
    }

    /// `POST /v1/calls`: runs a tool and waits for its end, however long that takes.
    ///
    /// # Errors
    /// [`ClientError::Refused`] when no tool ran. After a broken transport the call is found by its id.
    pub async fn call(&self, body: Bytes) -> Result<CallReply, ClientError> {
        over(exchange(&self.socket, submission(body)).await?, SUBMITTING)
    }

    /// Opens a connection that is kept.
    ///
    /// # Errors
    /// [`ClientError`]; `is_nobody_there` tells whether to start a daemon.
    pub async fn connect(&self) -> Result<Connection, ClientError> {
        Ok(Connection { sender: connect(&self.socket, SUBMITTING).await? })
    }

    /// `POST /v1/calls` with `Prefer: respond-async, follow`: returns once the intent is signed. The tool's output
    /// waits for a follower of each stream, so [`Self::follow`] both at once.
    ///
    /// # Errors
    /// [`ClientError::Refused`] when no tool will run.
    pub async fn submit(&self, body: Bytes) -> Result<CallStatus, ClientError> {
        let ask = Ask { prefer: Some("respond-async, follow"), ..submission(body) };
        status(exchange(&self.socket, ask).await?, SUBMITTING)
    }

    /// `GET /v1/calls`: the newest calls first.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn calls(&self, limit: Option<u32>) -> Result<CallsPage, ClientError> {
        let query = limit.map_or_else(String::new, |limit| format!("?limit={limit}"));
        self.read(Ask::get("listing calls", format!("/v1/calls{query}"))).await
    }

    /// `GET /v1/calls/{id}`.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with NOT_FOUND when there is no such call, or it is not the caller's.
    pub async fn status(&self, call: &CallId) -> Result<CallStatus, ClientError> {
        const DOING: &str = "asking for a call";
        status(exchange(&self.socket, Ask::get(DOING, format!("/v1/calls/{call}"))).await?, DOING)
    }

    /// `POST /v1/calls/{id}/cancel`. The call ends soon after; one that is over stays as it is.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with NOT_FOUND when there is no such call, or it is not the caller's.
    pub async fn cancel(&self, call: &CallId) -> Result<CallStatus, ClientError> {
        const DOING: &str = "cancelling a call";
        let ask = Ask::post(DOING, format!("/v1/calls/{call}/cancel"), Bytes::new());
        status(exchange(&self.socket, ask).await?, DOING)
    }

    /// `GET /v1/calls/{id}/stdout|stderr`: what is kept of a stream so far.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn output(&self, call: &CallId, stream: Stream) -> Result<Bytes, ClientError> {
        let ask = Ask::get("reading an output", format!("/v1/calls/{call}/{}", stream.as_str()));
        Ok(exchange(&self.socket, ask).await?.body)
    }

    /// `GET /v1/calls/{id}/stdout|stderr?follow=1`: a stream from its beginning, as it is written, to its end.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with INVALID_REQUEST when the beginning is not kept any more.
    pub async fn follow(&self, call: &CallId, stream: Stream) -> Result<OutputStream, ClientError> {
        let path = format!("/v1/calls/{call}/{}?follow=1", stream.as_str());
        let ask = Ask { patience: None, ..Ask::get("following an output", path) };
        Ok(OutputStream::new(open(&self.socket, ask).await?.into_body()))
    }

    /// `GET /v1/tools`: the tools that the caller may see.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tools(&self) -> Result<ToolsPage, ClientError> {
        self.read(Ask::get("listing tools", "/v1/tools")).await
    }

    /// `GET /v1/receipts`: at most `limit` entries of the log behind index `after`, or from the start.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with ROLE_DENIED for who may not read the log.
    pub async fn receipts(&self, after: Option<u64>, limit: Option<u32>) -> Result<ReceiptsPage, ClientError> {
        let members = [after.map(|n| format!("after={n}")), limit.map(|n| format!("limit={n}"))];
        let query = members.into_iter().flatten().collect::<Vec<_>>().join("&");
        let mark = if query.is_empty() { "" } else { "?" };
        self.read(Ask::get("reading receipts", format!("/v1/receipts{mark}{query}"))).await
    }

    /// `GET /v1/keys`: the public keys that receipts of this instance are signed with.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn keys(&self) -> Result<KeysPage, ClientError> {
        self.read(Ask::get("asking for the keys", "/v1/keys")).await
    }

    /// `GET /v1/doctor`: what can be enforced on the daemon's machine. Takes as long as a few cells.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with ROLE_DENIED for who is no operator.
    pub async fn doctor(&self) -> Result<DoctorReport, ClientError> {
        const DOING: &str = "asking for a report about the machine";
        self.read(Ask { patience: Some(SURVEY_PATIENCE), ..Ask::get(DOING, "/v1/doctor") }).await
    }

    /// `POST /v1/shutdown`: an idle daemon ends; one with live calls refuses.
    ///
    /// # Errors
    /// [`ClientError::Refused`] with QUEUE_FULL while calls run, ROLE_DENIED for who is no operator.
    pub async fn shutdown(&self) -> Result<Health, ClientError> {
        self.read(Ask::post("asking the daemon to end", "/v1/shutdown", Bytes::new())).await
    }

    async fn read<T: DeserializeOwned>(&self, ask: Ask<'_>) -> Result<T, ClientError> {
        let doing = ask.doing;
        let reply = exchange(&self.socket, ask).await?;
        serde_json::from_slice(&reply.body).map_err(|source| ClientError::Shape { doing, source })
    }
}

/// Only the state decides whether a call is over, not the HTTP status.
#[derive(serde::Deserialize)]
struct StateOnly {
    state: CallState,
}

fn status(reply: Reply, doing: &'static str) -> Result<CallStatus, ClientError> {
    let shape = |source| ClientError::Shape { doing, source };
    let peek: StateOnly = serde_json::from_slice(&reply.body).map_err(shape)?;
    match peek.state {
        CallState::Submitting => Ok(CallStatus::Running(serde_json::from_slice(&reply.body).map_err(shape)?)),
        CallState::Complete | CallState::Failed | CallState::Unknown => over(reply, doing).map(CallStatus::Over),
    }
}

fn over(reply: Reply, doing: &'static str) -> Result<CallReply, ClientError> {
    let answer = serde_json::from_slice(&reply.body).map_err(|source| ClientError::Shape { doing, source })?;
    let is_replay = reply.headers.get("idempotent-replayed").is_some_and(|value| value == "true");
    let stages = reply.headers.get("server-timing").and_then(|value| value.to_str().ok()).map_or_else(Vec::new, stages);
    Ok(CallReply { answer, body: reply.body, is_replay, stages })
}

/// `name;dur=1.234, …`; what is not of this form is passed over, as the header promises nothing.
fn stages(header: &str) -> Vec<Stage> {
    let stage = |item: &str| {
        let (name, ms) = item.trim().split_once(";dur=")?;
        Some(Stage { name: name.to_owned(), ms: ms.parse().ok()? })
    };
    header.split(',').filter_map(stage).collect()
}

#[cfg(test)]
mod tests;
