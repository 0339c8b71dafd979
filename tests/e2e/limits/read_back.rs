//! Limits that were asked for and are not to be had: seen when they are written and read back, and then nothing runs.

use std::path::PathBuf;

use serde_json::json;
use toolcell_tests::{Instance, Need, Request, Setup, cgroup_roots, needs};
use toolcell_types::ErrorCode;

use super::{observed, used_us, well};

/// An instance below a group of ours whose share is three tenths of a processor.
struct Below {
    instance: Option<Instance>,
    group: PathBuf,
    is_unified: bool,
}

impl Below {
    fn start() -> Self {
        let root = cgroup_roots().into_iter().find(|root| root.has("cpu")).unwrap();
        let name = format!("toolcell-tests-{}", std::process::id());
        let instance = Setup::default().flags(&["--cgroup-parent", &format!("/{name}/cells")]).start();
        let group = root.path.join(&name);
        let (file, text) = if root.is_unified() { ("cpu.max", "30000 100000") } else { ("cpu.cfs_quota_us", "30000") };
        std::fs::write(group.join(file), text).unwrap();
        Self { instance: Some(instance), group, is_unified: root.is_unified() }
    }

    fn instance(&self) -> &Instance {
        self.instance.as_ref().unwrap()
    }
}

impl Drop for Below {
    /// The instance removes what it made; what it could not is ours, in every hierarchy.
    fn drop(&mut self) {
        drop(self.instance.take());
        let name = self.group.file_name().unwrap();
        for root in cgroup_roots() {
            drop(std::fs::remove_dir(root.path.join(name)));
        }
    }
}

#[test]
fn a_share_that_a_group_above_does_not_have_is_refused_or_is_the_smaller_of_both() {
    needs!(Need::Root);
    let below = Below::start();
    let instance = below.instance();
    let burn = |cpu_millis: u64| {
        let limits = json!({ "cpu_millis": cpu_millis, "wall_ms": 120_000 });
        Request::program("burns", &["300"]).limits(limits)
    };
    well(&instance.call(&burn(200)));
    if below.is_unified {
        // Version 2 takes it, and each group on the way up holds by itself: the share can only be smaller.
        let more = instance.call(&burn(1000));
        well(&more);
        assert_eq!(observed(&more, "cgroup.cpu")["cpu.max"], "100000 100000");
        let (used, wall) = (used_us(&more), more.usage.wall_us.unwrap());
        assert!(used <= super::processor::most_us(300, wall), "{used} µs within {wall} µs");
        return;
    }
    // Version 1 does not take it (EINVAL).
    let refused = instance.post(&burn(1000)).problem(ErrorCode::ControlUnavailable);
    assert!(refused.detail.contains("cgroup.cpu") && refused.detail.contains("cpu.cfs_quota_us"), "{refused:?}");
    assert!(!refused.remedy.is_empty(), "{refused:?}");
    assert_eq!(instance.cell_groups(), Vec::<PathBuf>::new());
    well(&instance.call(&burn(300)));
}

#[test]
fn what_the_report_says_is_what_the_kernel_has_rounded_to_pages() {
    needs!(Need::Root);
    let instance = super::instance();
    let answer = instance.call(&Request::exec(&["true"]).limits(json!({ "memory_bytes": 10_000_001 })));
    well(&answer);
    let facts = observed(&answer, "cgroup.memory");
    let file = if facts["version"] == 1 { "memory.limit_in_bytes" } else { "memory.max" };
    assert_eq!(facts[file], 9_998_336, "{facts}");
}
