//! `run` and `call`: what a cell gets. docker's names where docker has one.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use toolcell_types::{CallId, ControlId, LimitName};

use super::StartArgs;
use super::values::{self, EnvArg, MountArg};
use crate::{amounts, exit};

const RUN_EXAMPLES: &str = "\
The program runs on a read-only view of this machine's programs and libraries, with nothing of its files but what \
--ro shows, no network, an empty /tmp, and limits on everything. Its output comes as it is written; then one line on \
standard error tells how it ended, what it used, how many controls held, and where the receipt is.

The program is nobody inside: what --ro shows must be readable by everybody. Its standard input is empty without \
--stdin. Ctrl-C cancels the program. If our standard output is closed (`| head`), the program is cancelled as well.

Of docker's options these have nothing to do here and are refused by name, with what to do instead: --rm, -i, -t, \
--user, -p, -d, --name, --entrypoint, --privileged and more.

Examples:
  toolcell run -- python3 -c 'print(6*7)'
  toolcell run --timeout 30s --memory 512m --ro ./data:/data -- python3 /data/job.py
  toolcell run --stdin input.txt -e LANG=C -- sort -u
  seq 3 | toolcell run --stdin - -- wc -l
  toolcell run --json --receipt receipt.json -- sh -c 'exit 3'
  toolcell run --receipt - -- date | toolcell verify -
";

/// Heading of the limits in the help.
const LIMITS: &str = "Limits (none is ever unlimited)";

/// `run`
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_EXAMPLES}\n{}\n\n{}", exit::JSON, exit::RUN_TABLE))]
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

{}\n\n{}", exit::JSON, exit::TABLE))]
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
    /// Show a file or folder of this machine inside, read-only; the program reads what everybody may read
    #[arg(long, value_name = "HOST[:INSIDE]", value_parser = values::read_only, help_heading = "Cell")]
    pub(crate) ro: Vec<MountArg>,
    /// The same in docker's words
    #[arg(short = 'v', long = "volume", value_name = "HOST:INSIDE:ro", value_parser = values::volume,
        help_heading = "Cell")]
    pub(crate) volume: Vec<MountArg>,
    /// Set a variable; without a value it is taken from here
    #[arg(short = 'e', long = "env", value_name = "NAME[=VALUE]", value_parser = values::env, help_heading = "Cell")]
    pub(crate) env: Vec<EnvArg>,
    /// What the program reads as standard input; - is ours, read to its end first [default: empty]
    #[arg(long, value_name = "FILE", help_heading = "Cell")]
    pub(crate) stdin: Option<PathBuf>,
    /// Switch controls off; only an instance that was started with `serve --ablation` does that
    #[arg(long, value_name = "CONTROL,…", value_delimiter = ',', value_parser = values::control, help_heading = "Cell")]
    pub(crate) ablate: Vec<ControlId>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Name of the call; the same name with the same request never runs twice [default: a fresh one]
    #[arg(long, value_name = "ID", value_parser = values::call_id, help_heading = "Result")]
    pub(crate) call_id: Option<CallId>,
    /// One JSON object on standard output, the answer or the refusal, and nothing else; see below
    #[arg(long, help_heading = "Result")]
    pub(crate) json: bool,
    /// Write the receipt of the outcome to this file; - is standard output, and the program's own then goes to
    /// standard error
    #[arg(long, value_name = "FILE", help_heading = "Result")]
    pub(crate) receipt: Option<PathBuf>,
    /// Write the request to this file, exactly the bytes whose digest the receipt names; - is as with --receipt
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
    /// Processes and threads at once, the cell's own init being one of them [default: the tool's, 64]
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
    /// Files and folders in /tmp and /dev/shm together [default: the tool's, 16384]
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = amounts::of(LimitName::TmpInodes), allow_hyphen_values = true)]
    pub(crate) tmp_files: Option<u64>,
    /// Size of one file that the program writes [default: the tool's, 64m]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = amounts::of(LimitName::FileBytes), allow_hyphen_values = true)]
    pub(crate) file_size: Option<u64>,
    /// Files and sockets that one process has open at once [default: the tool's, 256]
    #[arg(long, help_heading = LIMITS, value_name = "N", value_parser = amounts::of(LimitName::OpenFiles), allow_hyphen_values = true)]
    pub(crate) open_files: Option<u64>,
}

impl LimitArgs {
    /// What was typed, by limit, with the option it was typed with.
    pub(crate) fn typed(&self) -> impl Iterator<Item = (LimitName, &'static str, u64)> {
        LimitName::ALL.into_iter().filter_map(|name| {
            let (option, value) = self.of(name);
            value.map(|value| (name, option, value))
        })
    }

    fn of(&self, name: LimitName) -> (&'static str, Option<u64>) {
        match name {
            LimitName::WallMs => ("--timeout", self.timeout),
            LimitName::CpuMs => ("--cpu-time", self.cpu_time),
            LimitName::MemoryBytes => ("--memory", self.memory),
            LimitName::Pids => ("--pids", self.pids),
            LimitName::CpuMillis => ("--cpus", self.cpus),
            LimitName::TmpBytes => ("--tmp-size", self.tmp_size),
            LimitName::TmpInodes => ("--tmp-files", self.tmp_files),
            LimitName::OutputKeepBytes => ("--output-keep", self.output_keep),
            LimitName::OutputLimitBytes => ("--output-limit", self.output_limit),
            LimitName::FileBytes => ("--file-size", self.file_size),
            LimitName::OpenFiles => ("--open-files", self.open_files),
        }
    }
}
