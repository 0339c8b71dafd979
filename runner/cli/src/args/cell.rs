//! `run` and `call`: what a cell gets. docker's names where docker has one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use toolcell_types::{CallId, LimitName};

use super::StartArgs;
use super::values::{self, EnvArg, MountArg};
use crate::{amounts, exit};

const RUN_EXAMPLES: &str = "\
The program runs on a read-only view of this machine's programs and libraries, with nothing of its files but what \
--ro shows, no network, an empty /tmp, and limits on everything. Its output comes as it is written; then one line on \
standard error tells how it ended, what it used, how many controls held, and where the receipt is.

Ctrl-C cancels the program. If our standard output is closed (`| head`), the program is cancelled as well.

Examples:
  toolcell run -- python3 -c 'print(6*7)'
  toolcell run --timeout 30s --memory 512m --ro ./data:/data -- python3 /data/job.py
  toolcell run --stdin input.txt -e LANG=C -- sort -u
  toolcell run --json --receipt receipt.json -- sh -c 'exit 3'
";

/// Heading of the limits in the help.
const LIMITS: &str = "Limits (none is ever unlimited)";

/// `run`
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_EXAMPLES}\n{}", exit::RUN_TABLE))]
pub(crate) struct RunArgs {
    /// The program and its arguments
    #[arg(value_name = "ARGV", required = true, trailing_var_arg = true)]
    pub(crate) argv: Vec<OsString>,
    /// Image that the root is made of
    #[arg(long, value_name = "IMAGE", help_heading = "Cell")]
    pub(crate) image: Option<String>,
    /// Working directory inside [default: /tmp]
    #[arg(short = 'w', long = "workdir", value_name = "DIR", value_parser = values::inside, help_heading = "Cell")]
    pub(crate) workdir: Option<String>,
    /// Taken for docker's sake: the root always is read-only
    #[arg(long, help_heading = "Cell")]
    pub(crate) read_only: bool,
    /// Taken for docker's sake: there is no other network than none
    #[arg(long, value_name = "none", value_parser = values::network, help_heading = "Cell")]
    pub(crate) network: Option<String>,
    #[command(flatten)]
    pub(crate) cell: CellArgs,
    #[command(flatten)]
    pub(crate) start: StartArgs,
}

/// `call`
#[derive(Debug, Args)]
#[command(after_help = format!("\
What the tool takes is shown by: toolcell tools TOOL

Examples:
  toolcell call python '{{\"code\":\"print(6*7)\"}}'
  toolcell call python '{{\"code\":\"print(6*7)\"}}' --json --receipt receipt.json

{}", exit::TABLE))]
pub(crate) struct CallArgs {
    /// The tool
    #[arg(value_name = "TOOL")]
    pub(crate) tool: String,
    /// Its arguments, one JSON object
    #[arg(value_name = "ARGS_JSON")]
    pub(crate) args: String,
    #[command(flatten)]
    pub(crate) cell: CellArgs,
    #[command(flatten)]
    pub(crate) start: StartArgs,
}

/// What `run` and `call` have in common.
#[derive(Debug, Default, Args)]
pub(crate) struct CellArgs {
    /// Show a file or folder of this machine inside, read-only
    #[arg(long, value_name = "HOST[:INSIDE]", value_parser = values::read_only, help_heading = "Cell")]
    pub(crate) ro: Vec<MountArg>,
    /// The same in docker's words
    #[arg(short = 'v', long = "volume", value_name = "HOST:INSIDE:ro", value_parser = values::volume,
        help_heading = "Cell")]
    pub(crate) volume: Vec<MountArg>,
    /// Set a variable; without a value it is taken from here
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]", value_parser = values::env, help_heading = "Cell")]
    pub(crate) env: Vec<EnvArg>,
    /// What the program reads as standard input; - is ours [default: nothing]
    #[arg(long, value_name = "FILE", help_heading = "Cell")]
    pub(crate) stdin: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Name of the call; the same name with the same request never runs twice [default: a fresh one]
    #[arg(long, value_name = "ID", value_parser = values::call_id, help_heading = "Result")]
    pub(crate) call_id: Option<CallId>,
    /// One JSON object on standard output, the answer (or the refusal), and nothing else
    #[arg(long, help_heading = "Result")]
    pub(crate) json: bool,
    /// Write the receipt of the outcome to this file
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write the request to this file, exactly the bytes whose digest the receipt names
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) request_out: Option<PathBuf>,
}

/// Limits that differ from the tool's own.
#[derive(Debug, Default, Args)]
pub(crate) struct LimitArgs {
    /// Wall clock, like 10s, 500ms or 2m [default: the tool's, 10s]
    #[arg(long, help_heading = LIMITS, visible_alias = "wall", value_name = "TIME", value_parser = amounts::of(LimitName::WallMs),
        allow_hyphen_values = true)]
    pub(crate) timeout: Option<u64>,
    /// Processor time of all processes together [default: the tool's, 10s]
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = amounts::of(LimitName::CpuMs), allow_hyphen_values = true)]
    pub(crate) cpu_time: Option<u64>,
    /// Memory of all processes together, like 512m or 1g [default: the tool's, 256m]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = amounts::of(LimitName::MemoryBytes), allow_hyphen_values = true)]
    pub(crate) memory: Option<u64>,
    /// Processes and threads at once [default: the tool's, 64]
    #[arg(long, help_heading = LIMITS, visible_alias = "pids-limit", value_name = "N", value_parser = amounts::of(LimitName::Pids),
        allow_hyphen_values = true)]
    pub(crate) pids: Option<u64>,
    /// Processors, like 0.5 or 2 [default: the tool's, 1]
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = amounts::of(LimitName::CpuMillis), allow_hyphen_values = true)]
    pub(crate) cpus: Option<u64>,
    /// Output kept of each stream; more is counted and hashed, not kept [default: the tool's, 1m]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = amounts::of(LimitName::OutputKeepBytes),
        allow_hyphen_values = true)]
    pub(crate) output_keep: Option<u64>,
    /// Output of both streams; more ends the program [default: the tool's, 64m]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = amounts::of(LimitName::OutputLimitBytes),
        allow_hyphen_values = true)]
    pub(crate) output_limit: Option<u64>,
    /// Size of /tmp and /dev/shm together [default: the tool's, 64m]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = amounts::of(LimitName::TmpBytes), allow_hyphen_values = true)]
    pub(crate) tmp_size: Option<u64>,
}
