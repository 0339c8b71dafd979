//! One call, from its bytes to its answer, top to bottom. Each step takes a value and gives the next one.
//!
//! Runs in a task of its own, detached from the client's connection: a client that leaves changes nothing, the call runs
//! on and its answer can be fetched.

use std::sync::Arc;

use toolcell_types::{Problem, RunningCall};

use crate::daemon::Daemon;
use crate::decode::{Prefer, RawCall};
use crate::gate::Gated;
use crate::intent::Intended;
use crate::outcome::AnswerBytes;
use crate::timing::Stages;
use crate::{cell, decode, effect, gate, identify, intent, outcome, plan, verdict};

/// What the controller gets, if it is no refusal.
#[derive(Debug)]
pub(crate) enum Reply {
    /// The call is over.
    Answer(AnswerBytes, Stages),
    /// The call was over before.
    Replayed(AnswerBytes),
    /// The call has begun.
    Running(RunningCall),
}

/// Takes a request to its reply.
///
/// # Errors
/// The refusal; or, after the intent, a fault that kept the outcome from being written.
pub(crate) async fn submit(daemon: Arc<Daemon>, raw: RawCall) -> Result<Reply, Problem> {
    let mut stages = Stages::since(&daemon.clock, raw.received);
    let decoded = decode::decode(daemon.ablation(), raw)?;
    let identified = identify::identify(decoded, &daemon.operator_uids);
    stages.over("decode");
    let admitted = match gate::admit(&daemon, identified).await? {
        Gated::Replay(answer) => return Ok(Reply::Replayed(answer)),
        Gated::Admitted(admitted) => *admitted,
    };
    stages.over("gate");
    let planned = plan::make(&daemon, admitted)?;
    stages.over("plan");
    // The cell is built first: what keeps it from being sealed is a refusal, of which nothing is kept. Where cells like it
    // have held, the intent is signed while it is still being set up. Dropped here, it is killed; nothing of the tool runs
    // before the intent is durable.
    let armed = cell::arm(&daemon, planned).await?;
    stages.over("arm");
    let intended = intent::sign(&daemon, armed).await?;
    stages.over("intent");
    match intended.prefer() {
        Prefer::Wait => execute(&daemon, intended, &mut stages).await.map(|answer| Reply::Answer(answer, stages)),
        Prefer::RespondAsync { .. } => {
            let running = intended.running().clone();
            // The task's end is in the ledger; its faults are in the log.
            drop(tokio::spawn(async move { execute(&daemon, intended, &mut stages).await }));
            Ok(Reply::Running(running))
        }
    }
}

/// From the signed intent to the signed outcome.
async fn execute(daemon: &Daemon, intended: Intended, stages: &mut Stages) -> Result<AnswerBytes, Problem> {
    let ready = cell::ready(intended).await?;
    stages.over("ready");
    let ended = cell::run(daemon, ready).await?;
    stages.over("run");
    let judged = verdict::judge(ended);
    let settled = effect::attest(judged);
    let answer = outcome::sign(daemon, settled).await?;
    stages.over("outcome");
    Ok(answer)
}
