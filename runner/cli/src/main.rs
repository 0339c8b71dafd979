//! `toolcell`: the one binary. Parses the command line and asks the daemon, or becomes one of its parts.
//!
//! What was typed is in [`args`], what it means in [`request`] and [`reach`], each command in [`commands`], everything
//! that is printed in [`render`], every exit code in [`exit`]. `serve` and the parts that it starts are in [`serve`] and
//! [`parts`]. No policy is decided here.

mod amounts;
mod args;
mod build_digest;
mod bystander;
mod commands;
mod exit;
mod failure;
mod interrupt;
mod logs;
mod missing;
mod parts;
mod paths;
mod reach;
mod ready;
mod render;
mod request;
mod serve;

use std::process::ExitCode;

use clap::Parser as _;
use clap::error::ErrorKind;

use crate::args::{Cli, Command, KeysCommand};
use crate::exit::Exit;
use crate::failure::Failure;

fn main() -> ExitCode {
    let exit = match Cli::try_parse() {
        Ok(cli) => {
            let (talk, socket) = (cli.command.talk(), cli.command.socket());
            dispatch(cli.command).unwrap_or_else(|failure| {
                let failure = failure.in_commands(socket.as_deref());
                render::failure(&failure, talk);
                failure.exit
            })
        }
        Err(error) => {
            let is_run = is_run(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()));
            render::usage(&error, is_run);
            usage_exit(&error, is_run)
        }
    };
    ExitCode::from(exit.code())
}

fn dispatch(command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Run(args) => asking(commands::run::run(&args)),
        Command::Call(args) => asking(commands::call::call(&args)),
        Command::Tools(args) => asking(commands::tools::tools(&args)),
        Command::Calls(args) => asking(commands::calls::calls(&args)),
        Command::Cancel(args) => asking(commands::cancel::cancel(&args)),
        Command::Receipts(args) => asking(commands::receipts::receipts(&args)),
        Command::Keys(KeysCommand::Show(args)) => asking(commands::keys::show(&args)),
        Command::Verify(args) => commands::verify::verify(&args),
        Command::Bench(args) => commands::bench::bench(&args),
        Command::Ablate(args) => commands::ablate::ablate(&args),
        Command::Bystander(args) => bystander::bystander(&args),
        Command::Serve(args) => serve::serve(&args),
        Command::Doctor(args) => commands::doctor::doctor(&args),
        Command::SurveyProbe(args) => parts::survey_probe(&args),
        Command::Signer(args) => parts::signer(&args),
        Command::Daemon(args) => parts::daemon(&args),
        Command::Launcher(args) => parts::launcher(&args),
    }
}

/// One thread is enough to ask, and as long as it is the only one a daemon can be started from it.
fn asking(work: impl Future<Output = Result<Exit, Failure>>) -> Result<Exit, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|source| Failure::plain(Exit::Failed, source))?;
    let done = runtime.block_on(work);
    // A write to an output that nobody reads must not hold up our end.
    runtime.shutdown_background();
    done
}

/// Help that was asked for is no mistake. A mistake in `run` must not look like the program's own exit code.
fn usage_exit(error: &clap::Error, is_run: bool) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return Exit::Ok;
    }
    if is_run { Exit::RunnerFault } else { Exit::Usage }
}

/// Whether these words are a command line of `run`.
fn is_run(mut words: impl Iterator<Item = String>) -> bool {
    words.find(|word| !word.starts_with('-')).as_deref() == Some("run")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit_of(line: &[&str]) -> u8 {
        let error = Cli::try_parse_from(["toolcell"].iter().chain(line)).unwrap_err();
        usage_exit(&error, is_run(line.iter().map(|word| (*word).to_owned()))).code()
    }

    #[test]
    fn a_wrong_command_line_ends_with_2_and_with_125_in_run() {
        assert_eq!(exit_of(&["tools", "--nonsense"]), 2);
        assert_eq!(exit_of(&["nonsense"]), 2);
        assert_eq!(exit_of(&[]), 2);
        assert_eq!(exit_of(&["run"]), 125);
        assert_eq!(exit_of(&["run", "--memory", "0", "true"]), 125);
        assert_eq!(exit_of(&["call", "run"]), 2);
    }

    #[test]
    fn help_that_was_asked_for_ends_with_0() {
        assert_eq!(exit_of(&["--help"]), 0);
        assert_eq!(exit_of(&["run", "--help"]), 0);
        assert_eq!(exit_of(&["--version"]), 0);
    }
}
