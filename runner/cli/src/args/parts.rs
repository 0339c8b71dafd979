//! `serve` and the three parts that it starts: their command lines.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use toolcell_types::ControlId;

use super::values;
use crate::exit;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For a person
    Human,
    /// One JSON object a line
    Json,
}

impl LogFormat {
    /// The word on a command line.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
        }
    }
}

/// `serve`
#[derive(Debug, Default, Args)]
#[command(after_help = format!("\
`toolcell run` starts this by itself on the default socket. Start it yourself to keep it running, to use your own \
policy, or to serve other users. It stays in the foreground, says when it is ready, and ends on Ctrl-C or SIGTERM \
with every cell, process and cgroup of its own.

The settings file takes the same names with underscores: socket, state, policy, uid_base, cgroup_parent, \
socket_mode (a string: \"0660\"), idle_exit_s, accept_unavailable, log_format.

Examples:
  toolcell serve
  toolcell serve --policy ./policy --log-format json
  toolcell serve --socket /run/lab/toolcell.sock --state /var/lib/toolcell-lab --socket-mode 0666

{}", exit::TABLE))]
pub(crate) struct ServeArgs {
    /// Socket to serve [default: /run/toolcell/toolcell.sock, without root $XDG_RUNTIME_DIR/toolcell/toolcell.sock]
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
    /// Folder of the key, the ledger and the kept output [default: /var/lib/toolcell, without root $XDG_STATE_HOME/toolcell]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
    /// Folder with tools.toml [default: /etc/toolcell/policy if it is there, else the built-in tools]
    #[arg(long, value_name = "DIR")]
    pub(crate) policy: Option<PathBuf>,
    /// Settings that the options here override [default: /etc/toolcell/config.toml if it is there]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// First of the 65536 user ids to use, or of the next free range above; for root [default: 1879048192]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(values::UID_BASES))]
    pub(crate) uid_base: Option<u32>,
    /// Group below which cells get theirs [default: on cgroup version 2 our own if it is ours alone, else /toolcell]
    #[arg(long, value_name = "PATH", value_parser = values::cgroup_parent)]
    pub(crate) cgroup_parent: Option<String>,
    /// Who may connect: the mode of the socket, octal [default: 0600]
    #[arg(long, value_name = "MODE", value_parser = values::mode)]
    pub(crate) socket_mode: Option<u32>,
    /// End by itself after so many seconds without a call [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub(crate) idle_exit: Option<u64>,
    /// Controls that may be missing on this machine; receipts will say so
    #[arg(long, value_name = "CONTROL,…", value_delimiter = ',', value_parser = values::control)]
    pub(crate) accept_unavailable: Vec<ControlId>,
    /// Let calls switch controls off (`ablate`). For experiments: such an instance has a key and receipts of its own kind
    #[arg(long, requires_all = ["socket", "state"])]
    pub(crate) ablation: bool,
    /// What its receipts are for [default: a new random name]
    #[arg(long, value_name = "NAME", requires = "ablation", value_parser = values::experiment)]
    pub(crate) experiment: Option<String>,
    /// How log lines look [default: human]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
    /// Descriptor to write `ready` to
    #[arg(long, hide = true)]
    pub(crate) ready_fd: Option<i32>,
    /// Leave the session of whoever started us
    #[arg(long, hide = true)]
    pub(crate) detach: bool,
}

/// `doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// One JSON object on standard output
    #[arg(long)]
    pub(crate) json: bool,
    /// Also run every probe of `toolcell ablate` with all controls on: nothing may get out. Takes a minute
    #[arg(long, conflicts_with = "ablation")]
    pub(crate) probe: bool,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

/// What runs in a survey's cell.
#[derive(Debug, Args)]
pub(crate) struct SurveyProbeArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// `signer`: descriptors 3 = socket to the daemon, 4 = the folder with the key, 5 = state lock.
#[derive(Debug, Args)]
pub(crate) struct SignerArgs {
    #[arg(long)]
    pub(crate) uid: u32,
    #[arg(long)]
    pub(crate) gid: u32,
    /// These are our ids already.
    #[arg(long)]
    pub(crate) rootless: bool,
    /// Sign for an instance in ablation mode, and for no other.
    #[arg(long)]
    pub(crate) ablation: bool,
    #[arg(long)]
    pub(crate) log_format: LogFormat,
}

/// `daemon`: descriptors 3 = listener, 4 = launcher, 5 = signer, 6 = state folder, 7 = ready pipe, 8 = policy folder.
#[derive(Debug, Args)]
pub(crate) struct DaemonArgs {
    #[arg(long)]
    pub(crate) uid: u32,
    #[arg(long)]
    pub(crate) gid: u32,
    /// These are our ids already.
    #[arg(long)]
    pub(crate) rootless: bool,
    /// Why cells are in no cgroups.
    #[arg(long, value_name = "WHY")]
    pub(crate) no_groups: Option<String>,
    /// Why cells have no ids of their own.
    #[arg(long, value_name = "WHY")]
    pub(crate) no_ids: Option<String>,
    /// Not every process of an earlier life was seen gone.
    #[arg(long)]
    pub(crate) leftovers_unseen: bool,
    #[arg(long)]
    pub(crate) operator_uid: u32,
    #[arg(long)]
    pub(crate) instance: String,
    #[arg(long)]
    pub(crate) build: String,
    #[arg(long)]
    pub(crate) idle_exit: Option<u64>,
    #[arg(long, value_delimiter = ',', value_parser = values::control)]
    pub(crate) accept_unavailable: Vec<ControlId>,
    /// The mode is ablation, and this is what for.
    #[arg(long)]
    pub(crate) experiment: Option<String>,
    #[arg(long)]
    pub(crate) has_policy: bool,
    #[arg(long)]
    pub(crate) socket: PathBuf,
    #[arg(long)]
    pub(crate) log_format: LogFormat,
}

/// `launcher`: descriptors 3 = daemon, 4 = the daemon's pidfd, 5 = the signer's, 6 = state lock, 7 = the ids' lock, if
/// cells have ids of their own.
#[derive(Debug, Args)]
pub(crate) struct LauncherArgs {
    /// Started by an ordinary user, and privileged in a user namespace of that user's.
    #[arg(long)]
    pub(crate) rootless: bool,
    /// First user id of cells; without one they have the launcher's own.
    #[arg(long, requires_all = ["cell_gids", "cells"])]
    pub(crate) cell_uids: Option<u32>,
    /// First group id of cells.
    #[arg(long, requires = "cell_uids")]
    pub(crate) cell_gids: Option<u32>,
    /// For how many cells at once there are ids.
    #[arg(long, requires = "cell_uids")]
    pub(crate) cells: Option<u32>,
    #[arg(long)]
    pub(crate) instance: String,
    #[arg(long)]
    pub(crate) runtime_dir: PathBuf,
    #[arg(long)]
    pub(crate) cgroup_parent: Option<String>,
    #[arg(long)]
    pub(crate) deny_path: Vec<PathBuf>,
    #[arg(long, value_delimiter = ',', value_parser = values::control)]
    pub(crate) accept_unavailable: Vec<ControlId>,
    /// Calls may have controls switched off.
    #[arg(long)]
    pub(crate) ablation: bool,
    #[arg(long)]
    pub(crate) unlink: Vec<PathBuf>,
    #[arg(long)]
    pub(crate) log_format: LogFormat,
}
