//! `toolcell call`: a registered tool with its arguments, and its result.

use toolcell_client::ClientError;
use toolcell_types::CallId;

use super::ending;
use super::submission::Submission;
use crate::args::CallArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::{Waited, cancelling};
use crate::reach::{Reached, reach_exactly};
use crate::{render, request};

/// Calls it and waits.
pub(crate) async fn call(args: &CallArgs) -> Result<Exit, Failure> {
    let submission = Submission::prepare(&args.cell, |around| request::of_call(args, around))?;
    let reached = reach_exactly(&args.start).await?;
    let client = &reached.client;
    let id = submission.call_id();
    let work = ending::answer(&submission, &args.start, &reached);
    let waited = cancelling(client, &id, work).await;
    let waited = waited.map_err(|source| Failure::plain(Exit::Failed, source))?;
    let Waited::Done(reply) = waited else {
        render::say(&format!("call {id} is being cancelled; its end is shown by: toolcell calls {id}"));
        return Ok(Exit::Failed);
    };
    let reply = reply?.map_err(|error| submitting(error, &id, &reached))?;
    if args.cell.json {
        submission.tell(&reply, reached.named())?;
        render::json(&reply.body)?;
    } else {
        Submission::replay_output(&reply)?;
        submission.tell(&reply, reached.named())?;
    }
    Ok(Exit::of_answer(&reply.answer))
}

/// Without a connection nothing was submitted; else it may have been.
fn submitting(error: ClientError, call: &CallId, reached: &Reached) -> Failure {
    let is_sent = !matches!(error, ClientError::Connect { .. });
    let failure = Failure::of_client(error);
    if is_sent { failure.about(call, reached) } else { failure }
}
