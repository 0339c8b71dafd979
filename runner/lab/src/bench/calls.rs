//! One call as a controller makes it, and what has to be true of its answer before its time counts.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::{Value, json};
use toolcell_client::{Client, Connection, Stage, Unread};
use toolcell_types::{ControlId, Verdict};

use super::BenchError;
use super::program::{INSIDE, Program};

/// The public key of the instance, PEM.
pub(super) type Key = String;

/// Asks for the key.
pub(super) async fn key(client: &Client) -> Result<Key, BenchError> {
    let keys = client.keys().await.map_err(|source| BenchError::Client { source })?;
    let first = keys.keys.into_iter().next();
    first.map(|key| key.pem).ok_or_else(|| BenchError::Answer { detail: "the instance has no key".to_owned() })
}

/// One connection, which is kept, and calls on it.
#[derive(Debug)]
pub(super) struct Caller {
    connection: Connection,
    folder: String,
    rules: Rules,
}

/// What an answer has to be like.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) key: Key,
    /// Controls that may be missing.
    pub(super) accepted: Vec<ControlId>,
}

/// A call that is over and not yet looked at.
#[derive(Debug)]
pub(super) struct Called {
    pub(super) took: Duration,
    body: Bytes,
    unread: Unread,
}

impl Caller {
    pub(super) async fn connect(client: &Client, program: &Program, rules: &Rules) -> Result<Self, BenchError> {
        let connection = client.connect().await.map_err(|source| BenchError::Client { source })?;
        Ok(Self { connection, folder: program.dir().to_string_lossy().into_owned(), rules: rules.clone() })
    }

    /// From the first byte of the request to the last of the answer.
    pub(super) async fn call(&mut self) -> Result<Called, BenchError> {
        let request = json!({
            "call_id": uuid::Uuid::now_v7().to_string(),
            "tool": "exec",
            "args": {"argv": [INSIDE]},
            "mounts": [{"host": self.folder, "inside": "/programs", "mode": "ro"}],
        });
        let body = Bytes::from(request.to_string());
        let began = Instant::now();
        let unread = self.connection.call(body.clone()).await.map_err(|source| BenchError::Client { source })?;
        Ok(Called { took: began.elapsed(), body, unread })
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }
}

impl Called {
    /// Sees that the program ran, with every control in force, and that the receipt holds for this very request.
    pub(super) fn check(self, rules: &Rules) -> Result<(Duration, Vec<Stage>), BenchError> {
        let reply = self.unread.read().map_err(|source| BenchError::Client { source })?;
        let wrong = |detail: String| Err(BenchError::Answer { detail });
        let answer = reply.answer;
        if reply.is_replay || answer.verdict != (Verdict::Exited { exit_code: 0 }) {
            return wrong(format!("its verdict is {}", answer.verdict.cause()));
        }
        for control in &answer.controls {
            let text = |member: &str| control.get(member).and_then(Value::as_str).unwrap_or_default();
            let is_accepted = rules.accepted.iter().any(|id| id.as_str() == text("id"));
            let is_required = control.get("required").and_then(Value::as_bool) == Some(true);
            if is_required && !is_accepted && text("state") != "enforced" {
                return wrong(format!("the control {} is {}", text("id"), text("state")));
            }
        }
        let receipt = serde_json::to_vec(&answer.receipt);
        let receipt = receipt.map_err(|error| BenchError::Answer { detail: error.to_string() })?;
        let report = toolcell_receipts::verify::verify(&receipt, rules.key.as_bytes(), Some(&self.body));
        if !report.holds() {
            return wrong(report.to_string());
        }
        Ok((self.took, reply.stages))
    }
}
