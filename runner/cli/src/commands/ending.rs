//! From a submission to the end of its call, over the death of a daemon of one's own.

use std::time::Duration;

use toolcell_client::{CallReply, CallStatus, Client, ClientError};
use toolcell_types::{CallId, ErrorCode};

use super::submission::Submission;
use crate::args::StartArgs;
use crate::failure::Failure;
use crate::reach::{Reached, revive};

/// Submits and waits for the answer.
pub(super) async fn answer(
    submission: &Submission,
    start: &StartArgs,
    reached: &Reached,
) -> Result<Result<CallReply, ClientError>, Failure> {
    let error = match reached.client.call(submission.body()).await {
        Ok(reply) => return Ok(Ok(reply)),
        Err(error) => error,
    };
    if let Err(error) = revive(reached, start, error).await? {
        return Ok(Err(error));
    }
    let call = submission.call_id();
    Ok(match reached.client.status(&call).await {
        Ok(CallStatus::Over(reply)) => Ok(reply),
        Ok(CallStatus::Running(_)) => wait_for_end(&reached.client, &call).await,
        Err(error) if is_unknown(&error) => reached.client.call(submission.body()).await,
        Err(error) => Err(error),
    })
}

/// Submits and returns once the intent is signed.
pub(super) async fn intent(
    submission: &Submission,
    start: &StartArgs,
    reached: &Reached,
) -> Result<Result<CallStatus, ClientError>, Failure> {
    let error = match reached.client.submit(submission.body()).await {
        Ok(status) => return Ok(Ok(status)),
        Err(error) => error,
    };
    if let Err(error) = revive(reached, start, error).await? {
        return Ok(Err(error));
    }
    Ok(match reached.client.status(&submission.call_id()).await {
        Err(error) if is_unknown(&error) => reached.client.submit(submission.body()).await,
        other => other,
    })
}

/// A request that never arrived may be sent again.
fn is_unknown(error: &ClientError) -> bool {
    error.problem().is_some_and(|problem| problem.code == ErrorCode::NotFound)
}

/// Asks until the outcome is signed.
pub(super) async fn wait_for_end(client: &Client, call: &CallId) -> Result<CallReply, ClientError> {
    let mut pause = Duration::from_millis(1);
    loop {
        match client.status(call).await? {
            CallStatus::Over(reply) => return Ok(reply),
            CallStatus::Running(_) => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}
