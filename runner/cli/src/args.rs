//! What was typed: the command line as types, with the help that a newcomer reads. What it means is in `request`.

mod ablate;
mod bench;
mod cell;
mod docker;
mod parts;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use toolcell_client::Stream;
use toolcell_types::{CallId, ControlId};

pub(crate) use ablate::{AblateArgs, BystanderArgs};
pub(crate) use bench::BenchArgs;
pub(crate) use cell::{CallArgs, CellArgs, LimitArgs, RunArgs};
pub(crate) use docker::foreign_in;
pub(crate) use parts::{DaemonArgs, DoctorArgs, LauncherArgs, LogFormat, ServeArgs, SignerArgs, SurveyProbeArgs};
pub(crate) use values::{EnvArg, MountArg, UID_BASES, cgroup_parent, mode as socket_mode};

use crate::exit;

const EXAMPLES: &str = "\
Start here:
  toolcell run -- python3 -c 'print(6*7)'     run a program in a sealed cell
  toolcell receipts                           what was signed
  toolcell receipts 2 > receipt.json          one receipt
  toolcell verify receipt.json                check it, offline

Each command has its own help: toolcell run --help";

const DOCTOR_HELP: &str = "\
Starts `serve` with these options in a place of its own beside whatever runs, has it build cells as for calls, reads \
every control back, and tries in them what must work and what must fail. Nothing stays. Give it the options that you \
give to `serve`, or mean to.

Exit codes:
  0  `serve` starts with these options, or has this state and socket already, and calls run; with --probe: and nothing \
gets out of a cell
  1  it does not, or a required control is missing: the report names the one thing to do; or a probe got out, or could \
not be run
  2  the command line is wrong
  (130 after Ctrl-C, 141 if our standard output was closed)

Examples:
  toolcell doctor
  toolcell doctor --probe
  toolcell doctor --json | jq '.controls[] | select(.state != \"enforced\")'
  toolcell doctor --accept-unavailable cgroup.memory,cgroup.cpu,cgroup.pids,cpu-clock

The same report of a running daemon: GET /v1/doctor";

/// Run programs in sealed cells and get a signed receipt of what really happened.
#[derive(Debug, Parser)]
#[command(name = "toolcell", version, about, after_help = EXAMPLES, disable_help_subcommand = true)]
#[command(arg_required_else_help = true, subcommand_value_name = "COMMAND")]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// One command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program in a cell
    Run(Box<RunArgs>),
    /// Serve a socket (what `run` starts by itself)
    Serve(Box<ServeArgs>),
    /// See what of a cell can be enforced on this machine
    #[command(after_help = DOCTOR_HELP)]
    Doctor(Box<DoctorArgs>),
    /// Call a registered tool
    Call(Box<CallArgs>),
    /// List the tools that you may call
    Tools(ToolsArgs),
    /// List calls, or show one
    Calls(CallsArgs),
    /// Cancel a running call
    Cancel(CancelArgs),
    /// List receipts, or write one to standard output
    Receipts(ReceiptsArgs),
    /// The keys that receipts are signed with
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Check a receipt, offline
    Verify(VerifyArgs),
    /// Measure what a call costs, beside other ways of running a program
    Bench(BenchArgs),
    /// See what each control is worth: run every probe with all controls, and without each
    Ablate(Box<AblateArgs>),
    /// What stands outside of a cell for a probe
    #[command(hide = true)]
    Bystander(BystanderArgs),
    /// The part that holds the key
    #[command(hide = true)]
    Signer(SignerArgs),
    /// The part that speaks HTTP
    #[command(hide = true)]
    Daemon(DaemonArgs),
    /// The part that builds cells
    #[command(hide = true)]
    Launcher(LauncherArgs),
    /// What runs in a survey's cell
    #[command(hide = true)]
    SurveyProbe(SurveyProbeArgs),
}

/// In which form a failure is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Talk {
    /// Words on standard error.
    Plain,
    /// A refusal is the one JSON object on standard output; all else as words.
    Problem,
    /// A line of the log, which is JSON.
    Log,
}

impl Command {
    /// The socket that was named, for a command that asks a daemon.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        let reach = match self {
            Self::Run(args) => &args.start.reach,
            Self::Call(args) => &args.start.reach,
            Self::Tools(args) => &args.start.reach,
            Self::Calls(args) => &args.reach,
            Self::Cancel(args) => &args.reach,
            Self::Receipts(args) => &args.reach,
            Self::Keys(KeysCommand::Show(args)) => &args.reach,
            Self::Doctor(_)
            | Self::Bench(_)
            | Self::Ablate(_)
            | Self::Bystander(_)
            | Self::Verify(_)
            | Self::Serve(_)
            | Self::Signer(_)
            | Self::Daemon(_)
            | Self::Launcher(_)
            | Self::SurveyProbe(_) => return None,
        };
        reach.socket.clone()
    }

    /// In which form a failure is told.
    pub(crate) fn talk(&self) -> Talk {
        let by_json = |is_json: bool| if is_json { Talk::Problem } else { Talk::Plain };
        let by_log = |format: LogFormat| if format == LogFormat::Json { Talk::Log } else { Talk::Plain };
        match self {
            Self::Run(args) => by_json(args.cell.json),
            Self::Call(args) => by_json(args.cell.json),
            Self::Tools(args) => by_json(args.json),
            Self::Calls(args) => by_json(args.json),
            Self::Cancel(args) => by_json(args.json),
            Self::Receipts(args) => by_json(args.json),
            Self::Keys(KeysCommand::Show(args)) => by_json(args.json),
            Self::Verify(args) => by_json(args.json),
            Self::Doctor(args) => by_json(args.json),
            Self::SurveyProbe(_) | Self::Bystander(_) => Talk::Plain,
            Self::Ablate(args) => by_json(args.json),
            Self::Bench(args) => by_json(args.json),
            Self::Serve(args) => by_log(args.log_format.unwrap_or(LogFormat::Human)),
            Self::Signer(args) => by_log(args.log_format),
            Self::Daemon(args) => by_log(args.log_format),
            Self::Launcher(args) => by_log(args.log_format),
        }
    }
}

/// Heading of what is said about the daemon in the help.
const DAEMON: &str = "Daemon";

/// Which daemon to ask.
#[derive(Debug, Args)]
pub(crate) struct ReachArgs {
    /// Socket of the daemon [default: your own, whose daemon is started if need be]
    #[arg(long, value_name = "PATH", env = "TOOLCELL_SOCKET", hide_env_values = true, help_heading = DAEMON)]
    pub(crate) socket: Option<PathBuf>,
}

/// What the daemon has to be like, for commands that run something.
#[derive(Debug, Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
    /// Policy folder that the daemon must have, or is started with [default: /etc/toolcell/policy, else built in]
    #[arg(long, value_name = "DIR", help_heading = DAEMON)]
    pub(crate) policy: Option<PathBuf>,
    /// Controls that may be missing on this machine; receipts will say so
    #[arg(long, value_name = "CONTROL,…", value_delimiter = ',', value_parser = values::control, help_heading = DAEMON)]
    pub(crate) accept_unavailable: Vec<ControlId>,
}

/// `tools`
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:\n  toolcell tools\n  toolcell tools python --json\n\n{}\n\n{}", exit::JSON_ASKED, exit::TABLE))]
pub(crate) struct ToolsArgs {
    /// Show only this tool, with the schema of its arguments
    #[arg(value_name = "TOOL")]
    pub(crate) name: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) start: StartArgs,
}

/// `calls`
#[derive(Debug, Args)]
#[command(after_help = format!("\
Examples:
  toolcell calls
  toolcell calls 0199a5b2-0000-7000-8000-000000000000
  toolcell calls 0199a5b2-0000-7000-8000-000000000000 --output stdout --follow

{}

{}", exit::JSON_ASKED, exit::TABLE))]
pub(crate) struct CallsArgs {
    /// Show only this call
    #[arg(value_name = "ID", value_parser = values::call_id)]
    pub(crate) id: Option<CallId>,
    /// At most so many calls, newest first
    #[arg(long, value_name = "N", conflicts_with = "id", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: Option<u32>,
    /// Write what the call has written to this stream, and nothing else
    #[arg(long, value_name = "STREAM", requires = "id", conflicts_with = "json")]
    pub(crate) output: Option<StreamArg>,
    /// With --output: go on until the stream ends
    #[arg(long, requires = "output")]
    pub(crate) follow: bool,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// One of the two output streams.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum StreamArg {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

impl From<StreamArg> for Stream {
    fn from(arg: StreamArg) -> Self {
        match arg {
            StreamArg::Stdout => Self::Stdout,
            StreamArg::Stderr => Self::Stderr,
        }
    }
}

/// `cancel`
#[derive(Debug, Args)]
#[command(after_help = format!("\
A call that is over stays as it is. What the call was is shown by: toolcell calls ID

{}

{}", exit::JSON_ASKED, exit::TABLE))]
pub(crate) struct CancelArgs {
    /// The call, as `toolcell calls` lists it
    #[arg(value_name = "ID", value_parser = values::call_id)]
    pub(crate) id: CallId,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// `receipts`
#[derive(Debug, Args)]
#[command(after_help = format!("\
Every call has two receipts in the log: an intent, signed before the program starts, and an outcome.

Examples:
  toolcell receipts                     the log, from its start
  toolcell receipts --after 100         what was added after entry 100
  toolcell receipts 2 > receipt.json    one receipt, as a DSSE envelope

{}

{}", exit::JSON_ASKED, exit::TABLE))]
pub(crate) struct ReceiptsArgs {
    /// Write this entry of the log to standard output, as a DSSE envelope
    #[arg(value_name = "INDEX", value_parser = values::index)]
    pub(crate) index: Option<u64>,
    /// List only entries behind this one
    #[arg(long, value_name = "INDEX", value_parser = values::index, conflicts_with = "index")]
    pub(crate) after: Option<u64>,
    /// List at most so many entries [default: to the end of the log; with --json: one page]
    #[arg(long, value_name = "N", conflicts_with = "index", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) limit: Option<u32>,
    /// One JSON object on standard output: the page of entries, or the one envelope
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// `keys`
#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Show the public key and its id
    #[command(after_help = format!("\
Examples:
  toolcell keys show > public.pem       the PEM on standard output, the key id on standard error
  toolcell verify receipt.json --key public.pem

{}

{}", exit::JSON_ASKED, exit::TABLE))]
    Show(KeysShowArgs),
}

/// `keys show`
#[derive(Debug, Args)]
pub(crate) struct KeysShowArgs {
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) reach: ReachArgs,
}

/// `verify`
#[derive(Debug, Args)]
#[command(after_help = format!("\
No daemon is asked and nothing is started. Without --key the receipt is checked against the public key in the state \
folder of this machine, which needs the right to read it; that tells you whether this machine signed it, not \
whether to trust this machine.

Examples:
  toolcell verify receipt.json
  toolcell verify receipt.json --key public.pem --request request.json

With --json, standard output holds exactly one JSON object with all checks, also when the receipt does not hold. If a \
file cannot be read, it is empty, and standard error has the words.

{}", exit::TABLE))]
pub(crate) struct VerifyArgs {
    /// The receipt, a DSSE envelope; - is standard input
    #[arg(value_name = "RECEIPT")]
    pub(crate) receipt: PathBuf,
    /// Public key to check against, PEM
    #[arg(long, value_name = "PUB.pem")]
    pub(crate) key: Option<PathBuf>,
    /// The request that the receipt must be about (run and call write it with --request-out)
    #[arg(long, value_name = "FILE")]
    pub(crate) request: Option<PathBuf>,
    /// State folder whose public key is taken without --key [default: /var/lib/toolcell]
    #[arg(long, value_name = "DIR", conflicts_with = "key")]
    pub(crate) state: Option<PathBuf>,
    /// Check a receipt of ablation mode, which shows no sealed cell and is refused without this
    #[arg(long)]
    pub(crate) ablation: bool,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

#[cfg(test)]
mod tests;
