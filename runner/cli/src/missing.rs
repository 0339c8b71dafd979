//! Which controls an instance lacks from its start on, and what would give it them.

use toolcell_daemon::UnavailableControl;
use toolcell_types::ControlId;

/// What an instance lacks that an ordinary user has started, and with `no_ids` also why its cells have no ids of their own.
pub(crate) fn without_root(no_ids: Option<&str>) -> Vec<UnavailableControl> {
    const GROUPS: [ControlId; 4] =
        [ControlId::CgroupMemory, ControlId::CgroupCpu, ControlId::CgroupPids, ControlId::CpuClock];
    let group = |id| UnavailableControl {
        id,
        detail: "it needs a cgroup, and without root this instance has none".to_owned(),
        remedy: "start toolcell as root".to_owned(),
    };
    let identity = no_ids.map(|why| UnavailableControl {
        id: ControlId::IdentityUnprivileged,
        detail: format!("the tool would run under your own user id: {why}"),
        remedy: "give cells ids of their own, as root: apt-get install uidmap; usermod --add-subuids 100000-165535 \
                 --add-subgids 100000-165535 YOUR_NAME (any range that nobody else has in /etc/subuid)"
            .to_owned(),
    });
    GROUPS.into_iter().map(group).chain(identity).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_root_the_groups_are_missing_and_without_a_range_the_identity_too() {
        let ids = |no_ids| without_root(no_ids).into_iter().map(|one| one.id.as_str()).collect::<Vec<_>>();
        assert_eq!(ids(None), ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"]);
        assert_eq!(ids(Some("no range")).last(), Some(&"identity.unprivileged"));
    }
}
