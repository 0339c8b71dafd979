//! `toolcell cancel`: ends a call of one's own.

use toolcell_client::CallStatus;

use crate::args::CancelArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reach::reach_any;
use crate::render;

/// Asks for the end; does not wait for it.
pub(crate) async fn cancel(args: &CancelArgs) -> Result<Exit, Failure> {
    let reached = reach_any(&args.reach).await?;
    let status = reached.client.cancel(&args.id).await.map_err(Failure::of_client)?;
    match (&status, args.json) {
        (CallStatus::Running(running), true) => render::value(running)?,
        (CallStatus::Over(reply), true) => render::json(&reply.body)?,
        (CallStatus::Running(_), false) => {
            render::say(&format!("call {} is being cancelled; its end is shown by: toolcell calls {0}", args.id));
        }
        (CallStatus::Over(reply), false) => {
            let state = reply.answer.state.as_str();
            render::say(&format!("call {} was over already ({state}): toolcell calls {0}", args.id));
        }
    }
    Ok(Exit::Ok)
}
