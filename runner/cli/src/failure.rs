//! Why a command did not do what it was asked: the text, the way on, and the code it ends with.

mod commands;

use std::path::Path;

use toolcell_client::ClientError;
use toolcell_types::CallId;

use crate::exit::Exit;
use crate::reach::Reached;

/// What `main` prints on standard error before it ends.
#[derive(Debug)]
pub(crate) struct Failure {
    /// How to end.
    pub(crate) exit: Exit,
    /// What went wrong, with its causes.
    pub(crate) error: anyhow::Error,
    /// What to do next.
    pub(crate) hint: Option<String>,
    /// The problem document, for `--json`.
    pub(crate) problem: Option<bytes::Bytes>,
}

impl Failure {
    /// A failure with a hint.
    pub(crate) fn new(exit: Exit, error: impl Into<anyhow::Error>, hint: impl Into<String>) -> Self {
        Self { exit, error: error.into(), hint: Some(hint.into()), problem: None }
    }

    /// A failure where there is nothing to advise.
    pub(crate) fn plain(exit: Exit, error: impl Into<anyhow::Error>) -> Self {
        Self { exit, error: error.into(), hint: None, problem: None }
    }

    /// What the daemon, or the lack of one, means for any command but `run`.
    pub(crate) fn of_client(error: ClientError) -> Self {
        let exit = error.problem().map_or(Exit::Failed, Exit::of_problem);
        Self::with_exit(exit, error)
    }

    /// What the daemon, or the lack of one, means for `run`.
    pub(crate) fn of_run(error: ClientError) -> Self {
        let exit = if error.problem().is_some() { Exit::Refused } else { Exit::RunnerFault };
        Self::with_exit(exit, error)
    }

    fn with_exit(exit: Exit, error: ClientError) -> Self {
        let hint = Some(error.remedy()).filter(|remedy| !remedy.is_empty());
        let problem = if let ClientError::Refused { body, .. } = &error { Some(body.clone()) } else { None };
        Self { exit, error: error.into(), hint, problem }
    }

    /// The same failure with commands where the daemon's refusal names endpoints.
    pub(crate) fn in_commands(mut self, socket: Option<&Path>) -> Self {
        let refusal = self.error.downcast_ref::<ClientError>().and_then(ClientError::problem);
        // With words of our own in front it is about something else than a call.
        if let Some(problem) = refusal.filter(|problem| self.error.to_string() == problem.to_string()) {
            let commands::Words { text, hint } = commands::words(problem, socket);
            self.error = anyhow::anyhow!(text);
            self.hint = Some(hint).filter(|hint| !hint.is_empty());
        }
        self
    }

    /// The same failure, which tells what became of the daemon.
    pub(crate) fn with_log(mut self, reached: &Reached) -> Self {
        if let (None, Some(log)) = (&self.problem, reached.log()) {
            self.hint = Some(format!("look at the daemon's log, {}", log.display()));
        }
        self
    }

    /// The same failure, which tells how to find out what became of a call that was, or may have been, submitted.
    pub(crate) fn about(mut self, call: &CallId, reached: &Reached) -> Self {
        if self.problem.is_none() {
            let socket = reached.named().map(|path| format!(" --socket {}", path.display())).unwrap_or_default();
            let log =
                reached.log().map(|path| format!(" (the daemon's log is {})", path.display())).unwrap_or_default();
            self.hint = Some(format!("once a daemon runs, this tells its end: toolcell calls {call}{socket}{log}"));
        }
        self
    }

    /// The same failure with the code that `run` has for it.
    pub(crate) fn in_run(mut self) -> Self {
        if !matches!(self.exit, Exit::Refused | Exit::BrokenPipe | Exit::Cancelled) {
            self.exit = Exit::RunnerFault;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolcell_types::{ErrorCode, Problem};

    fn refused(code: ErrorCode) -> ClientError {
        let problem = Problem::new(code, "no", "ask for less");
        ClientError::Refused { problem: Box::new(problem), body: bytes::Bytes::from_static(b"{}") }
    }

    #[test]
    fn a_refusal_ends_run_with_126_and_others_by_its_code() {
        assert_eq!(Failure::of_run(refused(ErrorCode::InvalidRequest)).exit.code(), 126);
        assert_eq!(Failure::of_client(refused(ErrorCode::InvalidRequest)).exit.code(), 2);
        assert_eq!(Failure::of_client(refused(ErrorCode::OutcomeUnknown)).exit.code(), 3);
        assert_eq!(Failure::of_client(refused(ErrorCode::UnknownTool)).exit.code(), 1);
        assert_eq!(Failure::of_run(refused(ErrorCode::UnknownTool)).hint.as_deref(), Some("ask for less"));
    }

    #[test]
    fn a_refusal_is_told_in_commands_unless_it_has_words_of_our_own() {
        let told = |failure: Failure| {
            let failure = failure.in_commands(None);
            (failure.error.to_string(), failure.hint.unwrap_or_default())
        };
        let (text, hint) = told(Failure::of_client(refused(ErrorCode::NotFound)));
        assert_eq!((text.as_str(), hint.as_str()), ("NOT_FOUND: no", "list what there is: toolcell calls"));
        let busy = anyhow::Error::new(refused(ErrorCode::QueueFull)).context("busy");
        let (text, hint) = told(Failure::new(Exit::Refused, busy, "try again"));
        assert_eq!((text.as_str(), hint.as_str()), ("busy", "try again"));
        assert_eq!(told(Failure::plain(Exit::Failed, anyhow::anyhow!("x"))).0, "x");
    }

    #[test]
    fn without_an_answer_run_ends_with_125() {
        let silent = || ClientError::Silent { doing: "asking", seconds: 1 };
        assert_eq!(Failure::of_run(silent()).exit.code(), 125);
        assert_eq!(Failure::of_client(silent()).in_run().exit.code(), 125);
        assert_eq!(Failure::of_client(silent()).exit.code(), 1);
    }

    #[test]
    fn in_run_a_wrong_command_line_is_125_and_a_refusal_stays_one() {
        let failure = |exit| Failure::plain(exit, anyhow::anyhow!("x")).in_run().exit.code();
        assert_eq!(failure(Exit::Usage), 125);
        assert_eq!(failure(Exit::Failed), 125);
        assert_eq!(failure(Exit::Refused), 126);
        assert_eq!(failure(Exit::BrokenPipe), 141);
    }
}
