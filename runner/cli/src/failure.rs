//! Why a command did not do what it was asked: the text, the way on, and the code it ends with.

use toolcell_client::ClientError;

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

    /// The same failure, which names the log of a daemon that went away.
    pub(crate) fn with_log(mut self, reached: &Reached) -> Self {
        if let (None, Some(log)) = (&self.problem, reached.log()) {
            let hint = self.hint.unwrap_or_default();
            self.hint = Some(format!("{hint} (the log is {})", log.display()));
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
