//! Which controls an instance lacks from its start on, and what would give it them.

use toolcell_daemon::UnavailableControl;
use toolcell_types::ControlId;

/// What an instance lacks, by why its cells are in no groups, and why they have no ids of their own. Root's have both.
pub(crate) fn of_instance(no_groups: Option<&str>, no_ids: Option<&str>) -> Vec<UnavailableControl> {
    const GROUPS: [ControlId; 4] =
        [ControlId::CgroupMemory, ControlId::CgroupCpu, ControlId::CgroupPids, ControlId::CpuClock];
    let group = |why: &str, id| UnavailableControl {
        id,
        detail: format!("it needs a cgroup, and {why}"),
        remedy: "start toolcell as root, or give its user a cgroup".to_owned(),
    };
    let identity = no_ids.map(|why| UnavailableControl {
        id: ControlId::IdentityUnprivileged,
        detail: format!("the tool would run under your own user id: {why}"),
        remedy: "give cells ids of their own, as root: apt-get install uidmap; usermod --add-subuids 100000-165535 \
                 --add-subgids 100000-165535 YOUR_NAME (any range that nobody else has in /etc/subuid)"
            .to_owned(),
    });
    let groups = no_groups.into_iter().flat_map(|why| GROUPS.map(|id| group(why, id)));
    groups.chain(identity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_groups_are_missing_where_there_are_none_and_without_a_range_the_identity_too() {
        let ids = |no_groups, no_ids| {
            of_instance(no_groups, no_ids).into_iter().map(|one| one.id.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(ids(Some("no root"), None), ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"]);
        assert_eq!(ids(Some("no root"), Some("no range")).last(), Some(&"identity.unprivileged"));
        assert_eq!(ids(None, Some("no range")), ["identity.unprivileged"]);
        assert!(ids(None, None).is_empty());
    }
}
