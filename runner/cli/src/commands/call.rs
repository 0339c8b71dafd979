//! `toolcell call`: a registered tool with its arguments, and its result.

use super::ending;
use super::refusal::Asked;
use super::submission::Submission;
use crate::args::CallArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::{Waited, cancelling};
use crate::reach::reach_exactly;
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
    let reply = match reply? {
        Ok(reply) => reply,
        Err(error) => {
            let asked = Asked { call: &id, tool: &args.tool, limits: &args.cell.limits };
            return Err(asked.refused(error, &reached, Failure::of_client).await);
        }
    };
    if args.cell.json {
        submission.tell(&reply, reached.named())?;
        render::json(&reply.body)?;
    } else {
        submission.replay_output(&reply)?;
        submission.tell(&reply, reached.named())?;
    }
    Ok(Exit::of_answer(&reply.answer))
}
