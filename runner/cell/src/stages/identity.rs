//! Who the init and the tool are, and that neither can become anybody else.

use rustix::process::DumpableBehavior;
use rustix::thread::CapabilitiesSecureBits;
use toolcell_types::{ControlId, ControlSet};

use crate::ids::{Id, Ids};
use crate::record::{At as _, Op, Probes, Stage, StageError};

/// Takes the init's ids, keeps the capabilities of the new user namespace, cannot be read or traced by the tool. Without
/// a user namespace of its own the ids are those that it would have outside.
pub(super) fn become_init(ids: Ids, is_mapped: bool) -> Result<(), StageError> {
    rustix::thread::set_capabilities_secure_bits(CapabilitiesSecureBits::NO_SETUID_FIXUP)
        .at(Stage::Identity, Op::SecureBits)?;
    // With one id for all, groups cannot be dropped: the kernel takes a group map from an ordinary user only once that
    // is forbidden (user_namespaces(7)). The identity is reported as unavailable then.
    if !ids.is_own {
        nix::unistd::setgroups(&[]).at(Stage::Identity, Op::SetGroups)?;
    }
    take_ids(ids.init_as_seen(is_mapped))?;
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).at(Stage::Identity, Op::Dumpable)
}

/// Takes the tool's ids, and locks every way by which a change of ids could give something back.
pub(super) fn become_tool(ids: Ids, off: ControlSet) -> Result<(), StageError> {
    let mut locked = CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    if off.has(ControlId::Capabilities) {
        // They are kept, which is done by raising ambient ones.
        locked &= !(CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED);
    }
    rustix::thread::set_capabilities_secure_bits(locked).at(Stage::Identity, Op::SecureBits)?;
    take_ids(ids.tool_as_seen(!off.has(ControlId::NamespaceUser)))
}

fn take_ids(id: Id) -> Result<(), StageError> {
    let (user, group) = (nix::unistd::Uid::from_raw(id.uid), nix::unistd::Gid::from_raw(id.gid));
    nix::unistd::setresgid(group, group, group).at(Stage::Identity, Op::SetGid)?;
    nix::unistd::setresuid(user, user, user).at(Stage::Identity, Op::SetUid)
}

/// Lets the launcher look at this process through /proc, if it is not root: it owns the user namespace above this one.
/// Nobody else in the cell can use that: the init has no privilege left. The exec of the tool does the same.
pub(super) fn be_readable() -> Result<(), StageError> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::Dumpable).at(Stage::Identity, Op::Dumpable)
}

/// Reads back that no user namespace may be made in here, and tries to make one while all capabilities are there.
pub(super) fn probe_nested_user_namespace(probes: &mut Probes, off: ControlSet) -> Result<(), StageError> {
    let text = std::fs::read_to_string("/proc/sys/user/max_user_namespaces").at(Stage::Identity, Op::UserLimit)?;
    probes.max_user_namespaces = text.trim().parse().unwrap_or(-1);
    if off.has(ControlId::UsernsNested) || off.has(ControlId::NamespaceUser) {
        // It would not fail, and this process would be in it.
        return Ok(());
    }
    probes.userns_errno = match nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWUSER) {
        Ok(()) => 0,
        Err(errno) => errno as i32,
    };
    Ok(())
}
