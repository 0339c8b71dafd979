//! What crosses between daemon and launcher, encoded with postcard, one message a packet.
//!
//! A plan has two halves. The launcher reads *prepare* (bounded, borrowed from the packet, so that wiping the packet
//! wipes it) and passes *go* on unread: go is a sealed memfd whose descriptor travels with the packet.

use serde::{Deserialize, Serialize};

use crate::doctor::{HostFacts, SurveyAct};
use crate::{CellId, ControlReport, ControlSet, Limits, Usage};

/// Largest packet either side takes, in bytes (below the default `net.core.wmem_max` of 212,992).
pub const PACKET_MAX_BYTES: usize = 192 * 1024;
/// Largest *go* half, in bytes: a request body and what its encoding adds.
pub const GO_MAX_BYTES: u64 = 8 * 1024 * 1024;
/// How long an armed cell waits for *go*, in milliseconds: an intent has to be signed and durable meanwhile.
pub const ARMED_MAX_MS: u64 = 30_000;
/// Most mounts that a caller may add.
pub const MOUNTS_MAX: usize = 64;
/// All host and inside paths of a plan together, in bytes.
pub const PATHS_MAX_BYTES: usize = 96 * 1024;

/// Daemon to launcher.
#[derive(Debug, Serialize, Deserialize)]
pub enum ToLauncher<'a> {
    /// Build a cell up to the moment before the tool is executed, and see that every control holds. Descriptors: the
    /// *go* memfd, then the stdin memfd if `has_stdin`.
    Arm {
        /// The cell's number, never used before in this instance.
        cell: CellId,
        /// Whether a second descriptor holds standard input.
        has_stdin: bool,
        /// The half that the launcher reads.
        #[serde(borrow)]
        prepare: Prepare<'a>,
    },
    /// Build a cell as [`ToLauncher::Arm`] does, but for a program, a root and limits of the launcher's own choice: every
    /// control is reported as it is, and what is missing does not stop it. No descriptors.
    Survey {
        /// The cell's number.
        cell: CellId,
        /// What the program is to do.
        act: SurveyAct,
    },
    /// Tell what the host is like. No cell is made.
    Look {
        /// A number as of a cell, by which the answer is known.
        cell: CellId,
    },
    /// Let the tool of an armed cell go.
    Go {
        /// Which cell.
        cell: CellId,
    },
    /// Kill the tree. Unknown or ended cells are ignored: the end may be on its way.
    Kill {
        /// Which cell.
        cell: CellId,
        /// Why.
        reason: KillReason,
    },
}

/// Why the daemon asks for a kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum KillReason {
    /// Somebody cancelled the call.
    Cancelled,
    /// More output than allowed.
    OutputLimit,
}

/// The half of a plan that the launcher reads and validates.
#[derive(Debug, Serialize, Deserialize)]
pub struct Prepare<'a> {
    /// Limits of the attempt.
    pub limits: Limits,
    /// What the root is made of, in order; parents before children.
    #[serde(borrow)]
    pub image: Vec<ImageEntry<'a>>,
    /// What the caller adds.
    #[serde(borrow)]
    pub mounts: Vec<PlanMount<'a>>,
    /// Under whose ids the caller's mounts are opened.
    pub caller: CallerIds,
    /// Controls that are to be off. A launcher that was not started for it refuses any.
    pub ablated: ControlSet,
}

/// One thing in the root of a cell. Paths are absolute, without `.`, `..` or links on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageEntry<'a> {
    /// An empty directory, 0755.
    Dir {
        /// Where.
        inside: &'a str,
    },
    /// A symbolic link.
    Link {
        /// Where.
        inside: &'a str,
        /// To what.
        target: &'a str,
    },
    /// A file of our own making, 0444.
    File {
        /// Where.
        inside: &'a str,
        /// What it holds.
        content: &'a str,
    },
    /// A host directory or file, read-only. Opened without any privilege: only what everybody may read.
    Bind {
        /// On the host.
        host: &'a str,
        /// Inside.
        inside: &'a str,
        /// Leave it out where the host has no such path.
        optional: bool,
    },
    /// The same as on the host: a link if it is one there, a read-only bind if it is a directory, nothing if absent.
    Mirror {
        /// On the host and inside.
        path: &'a str,
    },
}

/// A host path that the caller adds, read-only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanMount<'a> {
    /// On the host, absolute.
    pub host: &'a str,
    /// Inside, absolute.
    pub inside: &'a str,
    /// The folder of the policy that allows it: what `host` leads to, links followed, must lie in it.
    pub within: &'a str,
}

/// The caller's ids, from its peer credentials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallerIds {
    /// User.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Supplementary groups.
    pub groups: Vec<u32>,
}

/// The half of a plan that only the cell's init reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Go {
    /// Program and arguments; looked up in PATH inside when the first has no slash.
    pub argv: Vec<String>,
    /// The whole environment.
    pub env: Vec<(String, String)>,
    /// Working directory inside.
    pub cwd: String,
}

/// Launcher to daemon.
#[derive(Debug, Serialize, Deserialize)]
pub enum FromLauncher {
    /// A cell is there and is being set up; what comes next is that it is armed, or refused. Not every cell is told of.
    Begun {
        /// Which cell.
        cell: CellId,
        /// What each of the 29 controls is asked for, in their order.
        requested: Vec<crate::Facts>,
    },
    /// The controls were seen to hold, and the tool's process waits for *go*. Descriptors: read ends of stdout and
    /// stderr. A cell that is not let go within [`ARMED_MAX_MS`] is killed.
    Armed {
        /// Which cell.
        cell: CellId,
        /// All 29.
        controls: Vec<ControlReport>,
    },
    /// What the host is like.
    Seen {
        /// The number that the question had.
        cell: CellId,
        /// The answer.
        host: HostFacts,
    },
    /// No tool ran. The cell's remains are gone if `tree_gone`.
    Refused {
        /// Which cell.
        cell: CellId,
        /// Why.
        fault: LaunchFault,
        /// Whether nothing of it is left.
        tree_gone: bool,
    },
    /// The main process ended, or was killed, and everything else with it.
    Ended {
        /// Which cell.
        cell: CellId,
        /// What was seen.
        report: EndReport,
    },
}

/// Why a cell could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum LaunchFault {
    /// The plan is not one that this launcher takes.
    BadPlan {
        /// What is wrong with it.
        detail: String,
    },
    /// A mount that the caller may not have.
    Mount {
        /// Which of the plan's mounts, from 0. The launcher keeps no tenant's paths, so the daemon names it.
        index: u32,
        /// What the kernel said, or the errno that fits: EPERM for a path that no cell may have.
        errno: i32,
        /// Why not.
        detail: String,
    },
    /// A required control is not there.
    Control {
        /// Which.
        id: crate::ControlId,
        /// What was seen instead.
        detail: String,
        /// What to do.
        remedy: String,
    },
    /// A step of the set-up failed in the kernel.
    Stage {
        /// What was being done.
        stage: String,
        /// The errno.
        errno: i32,
        /// The operation.
        detail: String,
    },
    /// It was asked to be killed before it was let go.
    Killed {
        /// Why.
        reason: KillReason,
    },
}

/// The end of an attempt whose tool was let go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndReport {
    /// Why it ended, by the launcher's own evidence.
    pub cause: EndCause,
    /// Limits reached, with how that was seen.
    pub limits_hit: Vec<(String, String)>,
    /// Figures (the byte counts are the daemon's to add).
    pub usage: PlanUsage,
    /// Whether every group of the cell was seen empty.
    pub tree_gone: bool,
}

/// [`Usage`] in a form that postcard can carry (no skipped fields).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "each is the field of `Usage` of the same name")]
pub struct PlanUsage {
    pub wall_us: Option<u64>,
    pub cpu_user_us: Option<u64>,
    pub cpu_system_us: Option<u64>,
    pub throttled_us: Option<u64>,
    pub memory_peak_bytes: Option<u64>,
    pub pids_peak: Option<u64>,
    pub oom_kills: Option<u64>,
    pub forks_refused: Option<u64>,
    pub left_running_killed: Option<u64>,
}

impl PlanUsage {
    /// The wire form, with the byte counts that the daemon took.
    #[must_use]
    pub fn into_usage(self, stdout_bytes: Option<u64>, stderr_bytes: Option<u64>) -> Usage {
        Usage {
            wall_us: self.wall_us,
            cpu_user_us: self.cpu_user_us,
            cpu_system_us: self.cpu_system_us,
            throttled_us: self.throttled_us,
            memory_peak_bytes: self.memory_peak_bytes,
            pids_peak: self.pids_peak,
            oom_kills: self.oom_kills,
            forks_refused: self.forks_refused,
            stdout_bytes,
            stderr_bytes,
            left_running_killed: self.left_running_killed,
        }
    }
}

/// [`crate::Verdict`] in numbers, before it gets its words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndCause {
    /// exit(2) with this code.
    Exited(i32),
    /// Killed by this signal, not by us.
    Signaled(i32),
    /// Our wall clock.
    WallLimit,
    /// Our processor clock.
    CpuLimit,
    /// Kernel, for memory.
    MemoryLimit,
    /// Kernel, for processes.
    PidsLimit,
    /// The daemon asked: too much output.
    OutputLimit,
    /// The daemon asked: cancelled.
    Cancelled,
    /// The tool could not be executed, after it was let go.
    StartFailed {
        /// What was being done.
        stage: String,
        /// The errno.
        errno: i32,
    },
    /// The cell's init vanished and no counter says why.
    Internal {
        /// What was seen.
        detail: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plan_usage_keeps_every_figure() {
        let usage =
            PlanUsage { wall_us: Some(1), oom_kills: Some(2), ..PlanUsage::default() }.into_usage(Some(3), None);
        assert_eq!(
            (usage.wall_us, usage.oom_kills, usage.stdout_bytes, usage.stderr_bytes),
            (Some(1), Some(2), Some(3), None)
        );
    }
}
