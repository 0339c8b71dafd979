//! One compared control.

use toolcell_types::{ControlId, Facts, Verification};

use crate::record::{NOT_TRIED, Probes};

/// What was asked for and what was seen.
pub(super) struct Item {
    pub(super) id: ControlId,
    pub(super) holds: bool,
    pub(super) verification: Verification,
    pub(super) requested: Facts,
    pub(super) observed: Facts,
}

impl Item {
    /// With an act that was tried from inside as well: it must have failed with this errno. One that was not tried says
    /// nothing.
    fn tried(self, act: &str, errno: i32, expected: &[i32]) -> Self {
        let name = |errno: i32| if errno == 0 { "allowed".to_owned() } else { toolcell_types::names::errno(errno) };
        let first = expected.first().copied().map_or_else(String::new, name);
        let requested = self.requested.with(act, first);
        if errno == NOT_TRIED {
            return Self { requested, observed: self.observed.with(act, "not tried"), ..self };
        }
        Self {
            holds: self.holds && expected.contains(&errno),
            verification: Verification::Probed,
            requested,
            observed: self.observed.with(act, name(errno)),
            ..self
        }
    }

    pub(super) fn read_back(id: ControlId, holds: bool, requested: Facts, observed: Facts) -> Self {
        Self { id, holds, verification: Verification::ReadBack, requested, observed }
    }
}

/// What was tried from inside, added to what was read back.
pub(super) fn with_tries(item: Item, probes: &Probes) -> Item {
    use nix::libc::{ENETUNREACH, EPERM, EROFS};
    let acts: [(ControlId, &str, i32, &[i32]); 6] = [
        (ControlId::RootReadonly, "make_file", probes.root_errno, &[EROFS]),
        (ControlId::ProcMasked, "write_sysctl", probes.proc_errno, &[EROFS]),
        (ControlId::NamespaceNet, "route", probes.route_errno, &[ENETUNREACH]),
        (ControlId::Capabilities, "chroot", probes.capability_errno, &[EPERM]),
        (ControlId::Rlimits, "raise_hard_limit", probes.rlimit_errno, &[EPERM]),
        (ControlId::Seccomp, "unshare", probes.filter_errno, &[EPERM]),
    ];
    match acts.into_iter().find(|(id, ..)| *id == item.id) {
        Some((_, act, errno, expected)) => item.tried(act, errno, expected),
        None => item,
    }
}
