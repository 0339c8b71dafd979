//! `toolcell calls`: what was called, and what became of it.

use toolcell_client::{CallStatus, Client, Stream};
use toolcell_types::CallId;

use crate::args::CallsArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::reach::{Reached, reach_any};
use crate::render::{self, Place, Sink};

/// Lists calls, shows one, or writes what one has written.
pub(crate) async fn calls(args: &CallsArgs) -> Result<Exit, Failure> {
    let reached = reach_any(&args.reach).await?;
    match (&args.id, args.output) {
        (None, _) => list(args, &reached).await,
        (Some(id), None) => show(args, id, &reached).await,
        (Some(id), Some(stream)) if args.follow => follow(&reached.client, id, stream.into()).await,
        (Some(id), Some(stream)) => {
            let kept = reached.client.output(id, stream.into()).await.map_err(Failure::of_client)?;
            render::out(&kept)?;
            Ok(Exit::Ok)
        }
    }
}

async fn list(args: &CallsArgs, reached: &Reached) -> Result<Exit, Failure> {
    let page = reached.client.calls(args.limit).await.map_err(Failure::of_client)?;
    if args.json {
        render::value(&page)?;
    } else {
        render::out(render::calls(&page).as_bytes())?;
    }
    Ok(Exit::Ok)
}

async fn show(args: &CallsArgs, id: &CallId, reached: &Reached) -> Result<Exit, Failure> {
    match reached.client.status(id).await.map_err(Failure::of_client)? {
        CallStatus::Running(running) if args.json => render::value(&running)?,
        CallStatus::Running(running) => render::out(render::running(&running).as_bytes())?,
        CallStatus::Over(reply) if args.json => render::json(&reply.body)?,
        CallStatus::Over(reply) => {
            let line = render::summary(
                &reply.answer,
                Place::Ledger { socket: reached.named(), is_operator: reached.is_operators() },
                false,
                None,
            );
            render::out(format!("call {id} attempt {}: {}\n", reply.answer.attempt, render::clean(&line)).as_bytes())?;
        }
    }
    Ok(Exit::Ok)
}

async fn follow(client: &Client, id: &CallId, stream: Stream) -> Result<Exit, Failure> {
    let mut pieces = client.follow(id, stream).await.map_err(Failure::of_client)?;
    let mut sink = Sink::new(Stream::Stdout);
    while let Some(piece) = pieces.next().await.map_err(Failure::of_client)? {
        sink.write(&piece).await.map_err(render::broken)?;
    }
    Ok(Exit::Ok)
}
