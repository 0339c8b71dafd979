//! The 29 controls of a cell and how each is reported: asked for, seen, and how it was seen.

mod set;

use serde::{Deserialize, Serialize};

pub use self::set::ControlSet;
use crate::Facts;

macro_rules! controls {
    ($($variant:ident $name:literal $doc:literal,)+) => {
        /// One enforced restriction of a cell.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ControlId { $(#[doc = $doc] #[serde(rename = $name)] $variant,)+ }

        impl ControlId {
            /// All of them, in the order of every report.
            pub const ALL: [Self; 29] = [$(Self::$variant,)+];

            /// The name on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }

            /// One line for a person.
            #[must_use]
            pub fn purpose(self) -> &'static str {
                match self { $(Self::$variant => $doc,)+ }
            }
        }
    };
}

controls! {
    NamespaceUser "namespace.user" "a user namespace of its own, in which the cell's two ids map to host ids that own nothing",
    NamespaceMount "namespace.mount" "a mount tree of its own, built from nothing",
    NamespacePid "namespace.pid" "process ids of its own: no process outside is visible or can be signalled",
    NamespaceNet "namespace.net" "a network of its own with no interface up",
    NamespaceIpc "namespace.ipc" "System V IPC and POSIX queues of its own",
    NamespaceUts "namespace.uts" "a host name of its own",
    NamespaceCgroup "namespace.cgroup" "a cgroup view that starts at the cell",
    RootReadonly "root.readonly" "every mount read-only but the scratch",
    MountsNosuidNodev "mounts.nosuid-nodev" "no set-id programs and no device nodes on any mount",
    DevMinimal "dev.minimal" "a /dev of null, zero, full, random, urandom and the descriptor links",
    ProcMasked "proc.masked" "a fresh /proc whose dangerous parts are masked or read-only",
    LandlockFs "landlock.fs" "file access by an allow list, besides the mounts",
    LandlockNet "landlock.net" "no TCP bind or connect, besides the network namespace",
    LandlockScope "landlock.scope" "no signal and no abstract socket to the outside, besides the namespaces",
    Capabilities "capabilities" "all five capability sets empty",
    NoNewPrivs "no-new-privs" "execve gains nothing (PR_SET_NO_NEW_PRIVS)",
    Seccomp "seccomp" "system calls by an allow list",
    IdentityUnprivileged "identity.unprivileged" "user and group ids that nobody else has, no supplementary group",
    UsernsNested "userns.nested" "no user namespace can be made inside",
    FdsClosed "fds.closed" "only descriptors 0, 1 and 2 survive into the tool",
    EnvironmentAllowlist "environment.allowlist" "an environment from nothing",
    CgroupMemory "cgroup.memory" "memory of the whole tree, swap included",
    CgroupCpu "cgroup.cpu" "processor share of the whole tree",
    CgroupPids "cgroup.pids" "processes and threads of the whole tree",
    Rlimits "rlimits" "file size, descriptors, core dumps and the like per process",
    TmpQuota "tmp.quota" "size and inodes of the scratch",
    OutputCap "output.cap" "output kept and output allowed",
    WallClock "wall-clock" "the tree is killed when the wall clock runs out",
    CpuClock "cpu-clock" "the tree is killed when its processor time runs out",
}

impl ControlId {
    /// Second lines to namespaces that older kernels lack; all else is required.
    #[must_use]
    pub fn is_required_by_default(self) -> bool {
        !matches!(self, Self::LandlockNet | Self::LandlockScope)
    }

    /// The control of that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|id| id.as_str() == name)
    }
}

impl std::fmt::Display for ControlId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether a control holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlState {
    /// In force, and seen to be.
    Enforced,
    /// Switched off in ablation mode.
    Ablated,
    /// Not in force; the call ran because the operator accepted that, or because it is a second line.
    Unavailable,
}

/// How it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verification {
    /// The forbidden thing was tried from inside before exec and failed.
    Probed,
    /// Read back from the kernel for that very cell.
    ReadBack,
    /// Done by our own code; the kernel has no word about it.
    Configured,
}

/// One control of one cell, as the launcher reports it to the daemon and the daemon to the controller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlReport {
    /// Which control.
    pub id: ControlId,
    /// Whether it holds.
    pub state: ControlState,
    /// How that was seen.
    pub verification: Verification,
    /// Whether the call would have been refused without it.
    pub required: bool,
    /// What was asked for.
    pub requested: Facts,
    /// What was seen.
    pub observed: Facts,
}

impl ControlReport {
    /// The item as it stands in answers and receipts.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "id": self.id, "state": self.state, "verification": self.verification, "required": self.required,
            "requested": self.requested.to_json(), "observed": self.observed.to_json(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_parse_back() {
        for id in ControlId::ALL {
            assert_eq!(ControlId::parse(id.as_str()), Some(id));
            assert_eq!(serde_json::to_value(id).unwrap(), id.as_str());
        }
        assert_eq!(ControlId::parse("seccom"), None);
    }
}
