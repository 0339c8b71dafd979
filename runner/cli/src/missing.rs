//! Which controls an instance lacks from its start on, and what would give it them.

use toolcell_daemon::UnavailableControl;
use toolcell_doctor::remedies::{self, Cause};
use toolcell_types::ControlId;

/// What needs a cgroup: an instance without one lacks them together.
pub(crate) const GROUPS: [ControlId; 4] =
    [ControlId::CgroupMemory, ControlId::CgroupCpu, ControlId::CgroupPids, ControlId::CpuClock];

/// What an instance lacks, by why its cells are in no groups, and why they have no ids of their own.
pub(crate) fn of_instance(is_root: bool, no_groups: Option<&str>, no_ids: Option<&str>) -> Vec<UnavailableControl> {
    let lacks = |id, Cause { why, remedy }| UnavailableControl { id, detail: why, remedy };
    let groups = no_groups.map(|why| {
        let host = toolcell_doctor::host_facts();
        GROUPS.map(|id| lacks(id, remedies::no_groups(why, is_root, &host)))
    });
    let identity = no_ids.map(|why| lacks(ControlId::IdentityUnprivileged, remedies::no_ids(why)));
    groups.into_iter().flatten().chain(identity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_missing_where_there_are_none_and_without_a_range_the_identity_too() {
        let ids = |no_groups, no_ids| {
            of_instance(false, no_groups, no_ids).into_iter().map(|one| one.id.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(ids(Some("no root"), None), ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"]);
        assert_eq!(ids(Some("no root"), Some("no range")).last(), Some(&"identity.unprivileged"));
        assert_eq!(ids(None, Some("no range")), ["identity.unprivileged"]);
        assert!(ids(None, None).is_empty());
    }
}
