//! What a cell and the launcher say to each other: fixed-size records, one a packet, no text.
//!
//! Up: a stage failed, the cell is armed (everything but exec is done), the main process ended. Down: one byte.

use rustix::io::Errno;

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $text:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name { $($variant,)+ }

        impl $name {
            const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word for a person.
            pub(crate) fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }

            fn number(self) -> u8 {
                Self::ALL.iter().position(|item| *item == self).and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX)
            }

            fn from_number(number: u8) -> Option<Self> {
                Self::ALL.get(usize::from(number)).copied()
            }
        }
    };
}

numbered! {
    /// The steps of building a cell, in their order.
    Stage {
        Cgroups "cgroups",
        Namespaces "namespaces",
        Identity "identity",
        Mounts "mounts",
        Supervise "supervise",
        Stdio "stdio",
        Landlock "landlock",
        Limits "rlimits",
        Capabilities "capabilities",
        NoNewPrivs "no-new-privs",
        Go "go",
        Cwd "cwd",
        Seccomp "seccomp",
        Exec "exec",
    }
}

numbered! {
    /// What exactly was being done.
    Op {
        Join "write 0 to tasks",
        Unshare "unshare",
        WaitParent "wait for the launcher",
        SecureBits "prctl(PR_SET_SECUREBITS)",
        SetGroups "setgroups",
        SetGid "setresgid",
        SetUid "setresuid",
        DeathSignal "prctl(PR_SET_PDEATHSIG)",
        Dumpable "prctl(PR_SET_DUMPABLE)",
        HostName "sethostname",
        Subreaper "prctl(PR_SET_CHILD_SUBREAPER)",
        CloseFds "close_range",
        Setsid "setsid",
        Fork "clone3",
        NewTmpfs "make a tmpfs",
        NewProc "make a procfs",
        Attach "move_mount",
        MakeDir "mkdir",
        MakeFile "make a file",
        MakeLink "symlink",
        MountPoint "make the mount point",
        CallerPoint "make the caller's mount point",
        CallerAttach "mount what the caller named",
        Mask "mask a /proc path",
        ReadOnly "mount_setattr",
        Loosen "take mount flags off",
        Pivot "pivot_root",
        Detach "umount the old root",
        WorkingDir "chdir",
        UserLimit "write user.max_user_namespaces",
        Dup "dup2",
        OpenNull "open /dev/null",
        Ruleset "landlock_create_ruleset",
        Rule "landlock_add_rule",
        Restrict "landlock_restrict_self",
        Probe "try what must not work",
        Rlimit "setrlimit",
        CapSet "empty the capability sets",
        NoNewPrivs "prctl(PR_SET_NO_NEW_PRIVS)",
        ReadPlan "read the plan",
        Decode "decode the plan",
        KeepCaps "raise the ambient capabilities",
        Filter "seccomp",
        ListFds "list descriptors",
        Send "send to the launcher",
        Wait "waitid",
        Exec "execve",
    }
}

/// A step that failed inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StageError {
    /// Which stage.
    pub(crate) stage: Stage,
    /// Which operation.
    pub(crate) op: Op,
    /// The kernel's answer.
    pub(crate) errno: i32,
    /// Which item of a list, where there is one.
    pub(crate) index: u32,
}

impl StageError {
    pub(crate) fn new(stage: Stage, op: Op, errno: i32) -> Self {
        Self { stage, op, errno, index: 0 }
    }
}

/// Gives a failed call its place.
pub(crate) trait At<T> {
    /// Names the stage and the operation.
    fn at(self, stage: Stage, op: Op) -> Result<T, StageError>;

    /// Names the stage, the operation and the item.
    fn at_item(self, stage: Stage, op: Op, index: usize) -> Result<T, StageError>
    where
        Self: Sized,
    {
        self.at(stage, op).map_err(|error| StageError { index: u32::try_from(index).unwrap_or(u32::MAX), ..error })
    }
}

impl<T> At<T> for Result<T, Errno> {
    fn at(self, stage: Stage, op: Op) -> Result<T, StageError> {
        self.map_err(|errno| StageError::new(stage, op, errno.raw_os_error()))
    }
}

impl<T> At<T> for Result<T, nix::errno::Errno> {
    fn at(self, stage: Stage, op: Op) -> Result<T, StageError> {
        self.map_err(|errno| StageError::new(stage, op, errno as i32))
    }
}

impl<T> At<T> for std::io::Result<T> {
    fn at(self, stage: Stage, op: Op) -> Result<T, StageError> {
        self.map_err(|error| StageError::new(stage, op, error.raw_os_error().unwrap_or(nix::libc::EIO)))
    }
}

/// What the tool's process found when it tried what must not work, and the allowed neighbour of each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Probes {
    /// ABI that the ruleset was made for.
    pub(crate) landlock_abi: u32,
    /// Errno of making a file that mode bits and mounts allow and Landlock does not; 0 if it was made.
    pub(crate) fs_errno: i32,
    /// Errno of binding a TCP port; 0 if bound.
    pub(crate) net_errno: i32,
    /// Errno of connecting to an abstract socket outside the domain; 0 if connected.
    pub(crate) abstract_errno: i32,
    /// Errno of signalling a process outside the domain; 0 if it could.
    pub(crate) signal_errno: i32,
    /// What user.max_user_namespaces reads as.
    pub(crate) max_user_namespaces: i32,
    /// Errno of making a user namespace; 0 if it was made.
    pub(crate) userns_errno: i32,
    /// Errno of making a file in the root; 0 if it was made. From here on [`NOT_TRIED`] where it was not tried.
    pub(crate) root_errno: i32,
    /// Errno of opening a file of /proc/sys for writing.
    pub(crate) proc_errno: i32,
    /// Errno of finding a route to another machine.
    pub(crate) route_errno: i32,
    /// Errno of an act that takes a capability.
    pub(crate) capability_errno: i32,
    /// Errno of raising a hard limit.
    pub(crate) rlimit_errno: i32,
    /// Errno of a system call that the filter refuses.
    pub(crate) filter_errno: i32,
}

impl Probes {
    /// Nothing was tried yet of what may be left untried.
    pub(crate) fn untried() -> Self {
        Self {
            root_errno: NOT_TRIED,
            proc_errno: NOT_TRIED,
            route_errno: NOT_TRIED,
            capability_errno: NOT_TRIED,
            rlimit_errno: NOT_TRIED,
            filter_errno: NOT_TRIED,
            ..Self::default()
        }
    }
}

/// In the place of an errno: the act was not tried, as its control is switched off or it could do harm without another.
pub(crate) const NOT_TRIED: i32 = -1;

/// How the main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MainEnd {
    /// exit(2).
    Exited(i32),
    /// A signal.
    Signaled(i32),
}

/// A record from inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Record {
    /// A step failed; the cell is of no use.
    Failed(StageError),
    /// The tool's process waits for the word to exec.
    Armed(Probes),
    /// The main process was reaped.
    Ended {
        /// How.
        end: MainEnd,
        /// When, CLOCK_MONOTONIC, microseconds.
        at_us: u64,
    },
}

/// Every record has this size, far below PIPE_BUF.
pub(crate) const RECORD_BYTES: usize = 56;
const NUMBERS: usize = RECORD_BYTES / 4 - 1;
const _: () = assert!(RECORD_BYTES < 512, "a record must be written in one piece");

/// The id maps are written.
pub(crate) const WORD_MAPPED: u8 = 1;
/// Exec now.
pub(crate) const WORD_GO: u8 = 2;

impl Record {
    /// The bytes of it.
    pub(crate) fn encode(self) -> [u8; RECORD_BYTES] {
        let numbers = |some: &[i32]| {
            let mut all = [0; NUMBERS];
            all.iter_mut().zip(some).for_each(|(slot, number)| *slot = *number);
            all
        };
        let (kind, head, numbers): (u8, [u8; 3], [i32; NUMBERS]) = match self {
            Self::Failed(error) => {
                let index = i32::try_from(error.index).unwrap_or(i32::MAX);
                (1, [error.stage.number(), error.op.number(), 0], numbers(&[error.errno, index]))
            }
            Self::Armed(probes) => {
                let abi = i32::try_from(probes.landlock_abi).unwrap_or(i32::MAX);
                let found = [
                    abi,
                    probes.fs_errno,
                    probes.net_errno,
                    probes.abstract_errno,
                    probes.signal_errno,
                    probes.max_user_namespaces,
                    probes.userns_errno,
                    probes.root_errno,
                    probes.proc_errno,
                    probes.route_errno,
                    probes.capability_errno,
                    probes.rlimit_errno,
                    probes.filter_errno,
                ];
                (2, [0; 3], found)
            }
            Self::Ended { end, at_us } => {
                let (how, code) = match end {
                    MainEnd::Exited(code) => (1, code),
                    MainEnd::Signaled(signal) => (2, signal),
                };
                let high = i32::try_from(at_us >> 31).unwrap_or(i32::MAX);
                let low = i32::try_from(at_us & 0x7fff_ffff).unwrap_or(i32::MAX);
                (3, [how, 0, 0], numbers(&[code, high, low]))
            }
        };
        let mut bytes = [0_u8; RECORD_BYTES];
        let words = std::iter::once([kind, head[0], head[1], head[2]]).chain(numbers.map(i32::to_le_bytes));
        for (slot, word) in bytes.chunks_exact_mut(4).zip(words) {
            slot.copy_from_slice(&word);
        }
        bytes
    }

    /// Reads a record; `None` if it is none.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != RECORD_BYTES {
            return None;
        }
        let mut words = bytes.chunks_exact(4).filter_map(|word| <[u8; 4]>::try_from(word).ok());
        let [kind, first, second, _] = words.next()?;
        let mut numbers = words.map(i32::from_le_bytes);
        let mut next = || numbers.next();
        match kind {
            1 => Some(Self::Failed(StageError {
                stage: Stage::from_number(first)?,
                op: Op::from_number(second)?,
                errno: next()?,
                index: u32::try_from(next()?).ok()?,
            })),
            2 => Some(Self::Armed(Probes {
                landlock_abi: u32::try_from(next()?).ok()?,
                fs_errno: next()?,
                net_errno: next()?,
                abstract_errno: next()?,
                signal_errno: next()?,
                max_user_namespaces: next()?,
                userns_errno: next()?,
                root_errno: next()?,
                proc_errno: next()?,
                route_errno: next()?,
                capability_errno: next()?,
                rlimit_errno: next()?,
                filter_errno: next()?,
            })),
            3 => {
                let code = next()?;
                let high = u64::try_from(next()?).ok()?;
                let low = u64::try_from(next()?).ok()?;
                let end = match first {
                    1 => MainEnd::Exited(code),
                    2 => MainEnd::Signaled(code),
                    _ => return None,
                };
                Some(Self::Ended { end, at_us: (high << 31) | low })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_survive_the_way_up() {
        let records = [
            Record::Failed(StageError { stage: Stage::Exec, op: Op::Exec, errno: 2, index: 7 }),
            Record::Armed(Probes { landlock_abi: 7, fs_errno: 13, userns_errno: 28, ..Probes::default() }),
            Record::Armed(Probes { root_errno: 30, filter_errno: NOT_TRIED, ..Probes::default() }),
            Record::Ended { end: MainEnd::Exited(137), at_us: u64::from(u32::MAX) * 1000 },
            Record::Ended { end: MainEnd::Signaled(9), at_us: 1 },
        ];
        for record in records {
            assert_eq!(Record::decode(&record.encode()), Some(record));
        }
    }

    #[test]
    fn anything_else_is_no_record() {
        assert_eq!(Record::decode(&[]), None);
        assert_eq!(Record::decode(&[0; RECORD_BYTES]), None);
        assert_eq!(Record::decode(&[1; RECORD_BYTES - 1]), None);
        let mut unknown_stage = Record::Failed(StageError::new(Stage::Exec, Op::Exec, 1)).encode();
        unknown_stage[1] = 200;
        assert_eq!(Record::decode(&unknown_stage), None);
    }
}
