//! `toolcell run`: a program in a cell, its output as it is written, one line at the end.

use std::io::ErrorKind;

use toolcell_client::{CallReply, CallStatus, Client, ClientError, Stream};
use toolcell_types::CallId;

use super::ending;
use super::refusal::Asked;
use super::submission::Submission;
use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::{self, Waited, cancelling};
use crate::reach::{Reached, reach_exactly, revive};
use crate::render::{self, Program, Sink};
use crate::request;

/// Runs it. Every failure has a code of `run`'s own table.
pub(crate) async fn run(args: &RunArgs) -> Result<Exit, Failure> {
    attempt(args).await.map_err(Failure::in_run)
}

async fn attempt(args: &RunArgs) -> Result<Exit, Failure> {
    let submission = Submission::prepare(&args.cell, |around| request::of_run(args, around))?;
    let submission = submission.of_program(program(args));
    let reached = reach_exactly(&args.start).await?;
    if args.cell.json { whole(args, submission, &reached).await } else { live(args, submission, &reached).await }
}

/// The answer, byte for byte, and nothing else.
async fn whole(args: &RunArgs, submission: Submission, reached: &Reached) -> Result<Exit, Failure> {
    let client = &reached.client;
    let call = submission.call_id();
    let work = ending::answer(&submission, &args.start, reached);
    let Waited::Done(reply) = cancelling(client, &call, work).await.map_err(no_signals)? else {
        return Ok(given_up(&call));
    };
    let reply = match reply? {
        Ok(reply) => reply,
        Err(error) => return Err(asked(args, &call).refused(error, reached, Failure::of_run).await),
    };
    submission.tell(&reply, reached.named())?;
    render::json(&reply.body)?;
    Ok(Exit::of_run(&reply.answer.verdict))
}

/// The program's bytes as they come, then the line.
async fn live(args: &RunArgs, submission: Submission, reached: &Reached) -> Result<Exit, Failure> {
    let client = &reached.client;
    let call = submission.call_id();
    let work = async {
        let submitted = ending::intent(&submission, &args.start, reached).await?;
        match submitted {
            Ok(CallStatus::Over(reply)) => Ok(Ended::before(reply)),
            Ok(CallStatus::Running(_)) => follow(args, &call, reached, submission.program_output()).await,
            Err(error) => Err(asked(args, &call).refused(error, reached, Failure::of_run).await),
        }
    };
    let Waited::Done(ended) = cancelling(client, &call, work).await.map_err(no_signals)? else {
        return Ok(given_up(&call));
    };
    let ended = ended?;
    if ended.is_mid_line {
        render::err(b"\n");
    }
    if ended.is_replay_only {
        submission.replay_output(&ended.reply)?;
    }
    submission.tell(&ended.reply, reached.named())?;
    Ok(match ended.passed {
        Passed::Whole => Exit::of_run(&ended.reply.answer.verdict),
        Passed::Closed => Exit::BrokenPipe,
        Passed::Failed => Exit::RunnerFault,
    })
}

fn asked<'a>(args: &'a RunArgs, call: &'a CallId) -> Asked<'a> {
    Asked { call, tool: request::EXEC, limits: &args.cell.limits }
}

/// What the command line tells about the program. The policy can give the tool another PATH, which nobody else is told.
fn program(args: &RunArgs) -> Program {
    let name = args.argv.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let path = args.cell.env.iter().rev().find(|variable| variable.name == "PATH");
    let path = path.and_then(|path| path.value.clone().or_else(|| std::env::var("PATH").ok()));
    Program::new(name, path, args.workdir.clone())
}

fn no_signals(source: std::io::Error) -> Failure {
    Failure::plain(Exit::RunnerFault, anyhow::Error::new(source).context("cannot listen to signals"))
}

fn given_up(call: &CallId) -> Exit {
    render::say(&format!("call {call} is being cancelled; its end is shown by: toolcell calls {call}"));
    Exit::Cancelled
}

/// A call that is over, and what our own streams were like by then.
struct Ended {
    reply: CallReply,
    /// Nothing was followed, as the answer was there already.
    is_replay_only: bool,
    /// How passing on the worse of both streams ended.
    passed: Passed,
    is_mid_line: bool,
}

impl Ended {
    /// A call that was over before it was submitted this time.
    fn before(reply: CallReply) -> Self {
        Self { reply, is_replay_only: true, passed: Passed::Whole, is_mid_line: false }
    }
}

/// Passes both streams on, standard output to where `to` says.
async fn follow(args: &RunArgs, call: &CallId, reached: &Reached, to: Stream) -> Result<Ended, Failure> {
    let client = &reached.client;
    let (mut stdout, mut stderr) = (Sink::new(to), Sink::new(Stream::Stderr));
    let followed = async {
        let (out, err) = tokio::try_join!(
            pass_on(client, call, Stream::Stdout, &mut stdout),
            pass_on(client, call, Stream::Stderr, &mut stderr),
        )?;
        Ok((out.max(err), ending::wait_for_end(client, call).await?))
    };
    let followed = match followed.await {
        Ok(ended) => Ok(ended),
        // Whatever became of the call, the next start settles it.
        Err(error) => match revive(reached, &args.start, error).await? {
            Ok(()) => ending::wait_for_end(client, call).await.map(|reply| (Passed::Whole, reply)),
            Err(error) => Err(error),
        },
    };
    let (passed, reply) = followed.map_err(|error| Failure::of_run(error).about(call, reached))?;
    let is_mid_line = stdout.is_mid_line() || stderr.is_mid_line();
    Ok(Ended { reply, is_replay_only: false, passed, is_mid_line })
}

/// How passing on a stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Passed {
    /// All of it was written.
    Whole,
    /// Our own end was closed.
    Closed,
    /// Our own end takes nothing more, as on a full disk.
    Failed,
}

/// A program whose reader is gone would die of SIGPIPE outside; here its call is cancelled. A closed standard error
/// does that as well: what nobody can see should not go on.
async fn pass_on(client: &Client, call: &CallId, stream: Stream, sink: &mut Sink) -> Result<Passed, ClientError> {
    let mut pieces = client.follow(call, stream).await?;
    while let Some(piece) = pieces.next().await? {
        if let Err(error) = sink.write(&piece).await {
            drop(pieces);
            interrupt::cancel(client, call).await?;
            if error.kind() == ErrorKind::BrokenPipe {
                return Ok(Passed::Closed);
            }
            render::say(&format!("cannot write to {}: {error}", stream.as_str()));
            return Ok(Passed::Failed);
        }
    }
    Ok(Passed::Whole)
}
