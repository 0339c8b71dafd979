//! What a container has to be started with on this machine, in the words of `toolcell-doctor`.

pub use toolcell_doctor::container::{APPARMOR, GROUPS_V1, GROUPS_V2, SECCOMP, STATE, SYSTEM_PATHS};

/// The flag for groups on this machine.
#[must_use]
pub fn groups() -> &'static str {
    toolcell_doctor::container::groups(crate::cgroup::is_of_version_1())
}

/// All that root needs on this machine, for a message.
#[must_use]
pub fn all() -> String {
    toolcell_doctor::container::all(crate::cgroup::is_of_version_1(), has_apparmor())
}

/// Whether the machine's kernel has AppArmor on.
fn has_apparmor() -> bool {
    std::fs::read_to_string("/sys/module/apparmor/parameters/enabled").is_ok_and(|text| text.trim() == "Y")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_message_has_every_flag_and_those_of_one_version_alone() {
        let all = all();
        assert!([SECCOMP, SYSTEM_PATHS, STATE].iter().all(|flag| all.contains(flag)), "{all}");
        assert!(all.contains(GROUPS_V1) != all.contains(GROUPS_V2), "{all}");
    }

    fn parsed(text: &str) -> serde_json::Value {
        serde_json::from_str(text).unwrap()
    }

    fn strings(list: &serde_json::Value) -> BTreeSet<String> {
        list.as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    }

    /// Calls of the container's profile, those with conditions as well.
    fn of_profile() -> BTreeSet<String> {
        let profile = parsed(include_str!("../filters/container.json"));
        let groups = profile["syscalls"].as_array().unwrap();
        assert!(groups.iter().all(|group| group["action"] == "SCMP_ACT_ALLOW"), "it is a list of what is allowed");
        assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
        groups.iter().flat_map(|group| strings(&group["names"])).collect()
    }

    /// Calls of one of the filters of cells, whole, without conditions.
    fn of_filter(filter: &serde_json::Value) -> BTreeSet<String> {
        let rules = filter["filter"].as_array().unwrap().iter().filter(|rule| rule.get("args").is_none());
        rules.map(|rule| rule["syscall"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_profile_for_containers_takes_nothing_from_cells() {
        let (tool, init) = (include_str!("../filters/tool.json"), include_str!("../filters/init.json"));
        let (tool, init) = (parsed(tool), parsed(init));
        let refused = of_filter(&tool["refused"]);
        let allowed: BTreeSet<String> = of_filter(&tool["known"]).difference(&refused).cloned().collect();
        assert!(allowed.len() > 200);
        let allowed: BTreeSet<String> = allowed.union(&of_filter(&init["init"])).cloned().collect();
        let lost: Vec<String> = allowed.difference(&of_profile()).cloned().collect();
        assert_eq!(lost, Vec::<String>::new());
    }

    #[test]
    fn the_profile_adds_to_what_tools_may_call_only_what_makes_cells() {
        let tool = parsed(include_str!("../filters/tool.json"));
        let known: BTreeSet<String> =
            of_filter(&tool["known"]).difference(&of_filter(&tool["refused"])).cloned().collect();
        let added: Vec<String> = of_profile().difference(&known).cloned().collect();
        let wanted = "clone3 fsconfig fsmount fsopen inotify_add_watch mount mount_setattr move_mount open_tree pivot_root \
                      sethostname sync syncfs umount2 unshare";
        assert_eq!(added, wanted.split_whitespace().collect::<Vec<_>>());
    }
}
