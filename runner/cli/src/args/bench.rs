//! `bench`

use std::path::PathBuf;

use clap::Args;
use toolcell_types::ControlId;

use super::values;
use crate::exit;

/// `bench`
#[derive(Debug, Args)]
#[command(after_help = format!("\
One static program that does nothing is run in turns: by itself, in bubblewrap with the nearest flags, by docker run with \
the flags of a lab (each where it is installed), and as a cold call to an instance of its own, with all controls and both \
receipts durable. Every answer is checked, its receipt included, before its time counts. Nothing is judged: figures are of \
the machine at hand, and of how busy it is; the ratios are what to compare.

Examples:
  toolcell bench
  toolcell bench --rounds 50 --memory-calls 500
  toolcell bench --json > bench.json

{}", exit::TABLE))]
pub(crate) struct BenchArgs {
    /// Rounds of the comparison; docker takes part in the first 20
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) rounds: u32,
    /// Calls between the two looks at memory
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) memory_calls: u32,
    /// Folder in which the state is kept meanwhile, on the file system that is to be measured
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub(crate) dir: PathBuf,
    /// Controls that may be missing on this machine; the result says so
    #[arg(long, value_name = "CONTROL,…", value_delimiter = ',', value_parser = values::control)]
    pub(crate) accept_unavailable: Vec<ControlId>,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
}
