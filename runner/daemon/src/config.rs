//! What the daemon is started with. All descriptors were opened by the part that started it, while it still could.

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use toolcell_types::ControlId;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One readable line, coloured on a terminal.
    Human,
    /// One JSON object a line.
    Json,
}

/// A control that cannot be had on this machine, as found before the daemon was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnavailableControl {
    /// Which.
    pub id: ControlId,
    /// What is missing.
    pub detail: String,
    /// What to do about it.
    pub remedy: String,
}

/// Everything the daemon needs; it opens nothing else of the host.
#[derive(Debug)]
pub struct DaemonConfig {
    /// The listening Unix stream socket of the API.
    pub listener: OwnedFd,
    /// SEQPACKET socket to the launcher.
    pub launcher: OwnedFd,
    /// Stream socket to the signer.
    pub signer: OwnedFd,
    /// The state directory, owned by `uid`: `ledger.db` and `blobs/`. The only part of the host that stays reachable.
    pub state: OwnedFd,
    /// Written to while the start takes its time ("checking N of M\n", entries of the ledger), and when requests are
    /// answered ("ready\n"), then closed.
    pub ready: OwnedFd,
    /// Directory of the policy files; without one the policy that is built in.
    pub policy: Option<OwnedFd>,
    /// The user to become.
    pub uid: u32,
    /// The group to become.
    pub gid: u32,
    /// Whether the process is that user already, an ordinary one, and confines itself in a user namespace of its own.
    pub is_rootless: bool,
    /// Users that are operators of this instance, besides root.
    pub operator_uids: Vec<u32>,
    /// Name of the instance.
    pub instance: String,
    /// Of an instance in ablation mode: which experiment its receipts are for. None: controls cannot be switched off.
    pub experiment: Option<String>,
    /// Digest of the program: `sha256:` and 64 hex digits, or its GNU build id.
    pub build: String,
    /// Version of the program.
    pub version: String,
    /// Ends by itself after this time without connections and calls.
    pub idle_exit: Option<Duration>,
    /// Controls that the operator accepted as unavailable.
    pub accept_unavailable: Vec<ControlId>,
    /// Controls that are known to be unavailable: calls that need one are refused before anything is written.
    pub unavailable: Vec<UnavailableControl>,
    /// Whether every process of this instance's earlier life was seen gone (its cgroups empty) before this start. Only
    /// then can the effect of a call that was cut off be attested as none.
    pub leftovers_gone: bool,
    /// Path of the API's socket, for messages only.
    pub socket_path: PathBuf,
    /// How log lines look.
    pub log_format: LogFormat,
}
