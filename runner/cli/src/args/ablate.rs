//! `ablate`, and the processes that it starts outside of the cells.

use std::path::PathBuf;

use clap::Args;
use regex::Regex;
use toolcell_lab::ablation::Instrument;
use toolcell_types::ControlId;

use super::{ServeArgs, values};

/// Heading of what is said about the instance in the help.
const INSTANCE: &str = "Instance";

const HELP: &str = "\
A probe is a small program that tries what a tool in a cell must not be able to do; all of them are in this program \
(toolcell ablate --list). Each is run in a cell with all controls on, where nothing may get through, and then with \
each control off by itself. What can be seen from outside of the cell is believed only if it was seen there: by a \
listener, by a process that was signalled, by a file that was changed, by a secret that was read. \"opens nothing\" means that a second \
control holds what this one holds: that is a result and no failure.

An instance of its own is started for this beside whatever runs, one that can switch controls off, whose receipts \
say so, and nothing of it stays. Each receipt is verified before its call counts. It takes a few minutes.

Exit codes:
  0  nothing gets out of a cell with all controls, no probe broke down or could not be run, and with --declared \
every probe's declaration holds
  1  otherwise, or it could not be run
  2  the command line is wrong
  (130 after Ctrl-C, 141 if our standard output was closed)

Examples:
  toolcell ablate
  toolcell ablate --controls none                 all controls on, nothing else
  toolcell ablate --controls seccomp,landlock.fs --probes '^files$|^ipc$'
  toolcell ablate --pairs 'namespace.net,seccomp;capabilities,seccomp'
  toolcell ablate --declared --html matrix.html
  toolcell ablate --json | jq '.controls[] | {id, opens: [.opens[].probe]}'";

/// `ablate`
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct AblateArgs {
    /// Controls that are switched off, each by itself; or all, or none
    #[arg(long, value_name = "CONTROL,…", default_value = "all", value_parser = controls)]
    pub(crate) controls: Controls,
    /// Only probes whose name or class matches this regular expression
    #[arg(long, value_name = "REGEX", value_parser = Regex::new)]
    pub(crate) probes: Option<Regex>,
    /// Controls that are switched off together, several such sets behind ; or in more options
    #[arg(long, value_name = "A,B[;C,D…]", value_delimiter = ';', value_parser = set)]
    pub(crate) pairs: Vec<Set>,
    /// For each probe the controls that it declares: without all of them it must get through, with each alone it must not
    #[arg(long)]
    pub(crate) declared: bool,
    /// List the probes and run none
    #[arg(long, conflicts_with_all = ["declared", "pairs", "html"])]
    pub(crate) list: bool,
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the matrix to this file as one page that needs nothing else
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Folder of the probes [default: those in this program]
    #[arg(long, value_name = "DIR")]
    pub(crate) probes_dir: Option<PathBuf>,
    /// Folder in which the probes in C lie compiled, by name without .c [default: they are compiled here, with cc]
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Option<PathBuf>,
    /// Calls at once
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) at_once: u8,
    #[command(flatten)]
    pub(crate) instance: InstanceArgs,
}

/// The instance that is tried.
#[derive(Debug, Args)]
pub(crate) struct InstanceArgs {
    /// Socket of an instance that runs already, with --ablation [default: one is started for this]
    #[arg(long, value_name = "PATH", help_heading = INSTANCE)]
    pub(crate) socket: Option<PathBuf>,
    /// Folder beside which its state is kept meanwhile [default: as for serve]
    #[arg(long, value_name = "DIR", conflicts_with = "socket", help_heading = INSTANCE)]
    pub(crate) state: Option<PathBuf>,
    /// Settings, as for serve
    #[arg(long, value_name = "FILE", conflicts_with = "socket", help_heading = INSTANCE)]
    pub(crate) config: Option<PathBuf>,
    /// First of its user ids, as for serve
    #[arg(long, value_name = "N", conflicts_with = "socket", help_heading = INSTANCE,
          value_parser = clap::value_parser!(u32).range(values::UID_BASES))]
    pub(crate) uid_base: Option<u32>,
    /// Group below which cells get theirs, as for serve
    #[arg(long, value_name = "PATH", conflicts_with = "socket", help_heading = INSTANCE, value_parser = values::cgroup_parent)]
    pub(crate) cgroup_parent: Option<String>,
    /// Controls that may be missing on this machine; what gets through by that is counted apart
    #[arg(long, value_name = "CONTROL,…", value_delimiter = ',', conflicts_with = "socket", help_heading = INSTANCE,
          value_parser = values::control)]
    pub(crate) accept_unavailable: Vec<ControlId>,
}

impl InstanceArgs {
    /// The options of `serve`.
    pub(crate) fn serve(&self) -> ServeArgs {
        ServeArgs {
            state: self.state.clone(),
            config: self.config.clone(),
            uid_base: self.uid_base,
            cgroup_parent: self.cgroup_parent.clone(),
            accept_unavailable: self.accept_unavailable.clone(),
            ..ServeArgs::default()
        }
    }
}

/// `--controls`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Controls(pub(crate) Vec<ControlId>);

/// One set of `--pairs`
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Set(pub(crate) Vec<ControlId>);

/// Why a set of controls is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadSet {
    /// No control of that name.
    #[error("there is no control {name:?}; the controls are {}", names())]
    Control {
        /// As typed.
        name: String,
    },
    /// Twice the same.
    #[error("{name} stands there twice")]
    Twice {
        /// Which.
        name: ControlId,
    },
    /// One alone.
    #[error("expected at least two controls, like namespace.net,seccomp; one by itself is --controls")]
    Alone,
}

fn names() -> String {
    ControlId::ALL.map(ControlId::as_str).join(", ")
}

fn controls(text: &str) -> Result<Controls, BadSet> {
    match text {
        "all" => Ok(Controls(ControlId::ALL.to_vec())),
        "none" => Ok(Controls(Vec::new())),
        names => several(names).map(Controls),
    }
}

fn set(text: &str) -> Result<Set, BadSet> {
    let all = several(text)?;
    if all.len() < 2 { Err(BadSet::Alone) } else { Ok(Set(all)) }
}

/// In the order of all reports.
fn several(text: &str) -> Result<Vec<ControlId>, BadSet> {
    let mut all = Vec::new();
    for name in text.split(',').map(str::trim) {
        let id = ControlId::parse(name).ok_or_else(|| BadSet::Control { name: name.to_owned() })?;
        if all.contains(&id) {
            return Err(BadSet::Twice { name: id });
        }
        all.push(id);
    }
    all.sort();
    Ok(all)
}

/// What stands outside of a cell.
#[derive(Debug, Args)]
pub(crate) struct BystanderArgs {
    #[arg(required = true, value_parser = instrument)]
    pub(crate) what: Vec<Instrument>,
}

fn instrument(word: &str) -> Result<Instrument, String> {
    Instrument::parse(word).ok_or_else(|| format!("there is no {word}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_all_or_none_or_named_once() {
        assert_eq!(controls("all").unwrap().0.len(), ControlId::ALL.len());
        assert_eq!(controls("none"), Ok(Controls(Vec::new())));
        let two = vec![ControlId::LandlockFs, ControlId::Seccomp];
        assert_eq!(controls("seccomp, landlock.fs"), Ok(Controls(two.clone())));
        assert_eq!(controls("seccomp,seccomp"), Err(BadSet::Twice { name: ControlId::Seccomp }));
        let error = controls("seccom").unwrap_err().to_string();
        assert!(error.contains("\"seccom\"") && error.contains("seccomp, identity"), "{error}");
        assert!(controls("").is_err() && controls("all,seccomp").is_err());
        assert_eq!((set("seccomp,landlock.fs"), set("seccomp")), (Ok(Set(two)), Err(BadSet::Alone)));
    }
}
