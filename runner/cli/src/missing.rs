//! Which controls an instance lacks from its start on, and what would give it them.

use toolcell_daemon::UnavailableControl;
use toolcell_doctor::remedies::{self, Cause};
use toolcell_types::ControlId;

/// What needs a cgroup: an instance without one lacks them together.
pub(crate) const GROUPS: [ControlId; 4] =
    [ControlId::CgroupMemory, ControlId::CgroupCpu, ControlId::CgroupPids, ControlId::CpuClock];

/// What an instance lacks that has no cgroups, and with `no_ids` also why its cells have no ids of their own.
pub(crate) fn without_groups(is_root: bool, no_ids: Option<&str>) -> Vec<UnavailableControl> {
    let lacks = |id, Cause { why, remedy }| UnavailableControl { id, detail: why, remedy };
    let groups = GROUPS.into_iter().map(|id| lacks(id, remedies::no_groups(is_root)));
    groups.chain(no_ids.map(|why| lacks(ControlId::IdentityUnprivileged, remedies::no_ids(why)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_groups_four_controls_are_missing_and_without_a_range_the_identity_too() {
        let ids = |no_ids| without_groups(false, no_ids).into_iter().map(|one| one.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids(None), ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"]);
        assert_eq!(ids(Some("no range")).last(), Some(&"identity.unprivileged"));
    }
}
