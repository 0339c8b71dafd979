//! Which limits really hold: groups, rlimits, the scratch's quota.

use std::collections::BTreeSet;

use toolcell_types::{ControlId, Fact, Facts, Limits};

use super::{Expected, Item};
use crate::cgroup::ReadBack;
use crate::process::{Process, Read, at};
use crate::stages::{SCRATCH_MOUNTS, wanted_rlimits};

pub(super) fn group_items(process: &Process, expected: &Expected<'_>) -> Read<Vec<Item>> {
    if expected.group.is_absent() {
        return Ok(no_groups(expected.limits));
    }
    let inside = expected.group.is_in(&process.text("cgroup")?);
    let limits = expected.limits;
    let item = |id, backs: Vec<ReadBack>| {
        let facts = |of: fn(&ReadBack) -> &Fact| {
            backs.iter().fold(Facts::new(), |facts, back| facts.with(back.name, of(back).clone()))
        };
        let agree = backs.iter().all(ReadBack::agrees);
        let observed = facts(|back| &back.got).with("member", inside).with("version", expected.group.version());
        let observed = about_swap(id, expected.group.counts_swap(), observed);
        Item::read_back(id, inside && agree, facts(|back| &back.wanted), observed)
    };
    Ok(vec![
        item(ControlId::CgroupMemory, expected.group.memory_limits(limits)?),
        item(ControlId::CgroupCpu, expected.group.cpu_limits(limits)?),
        item(ControlId::CgroupPids, expected.group.pids_limits(limits)?),
    ])
}

/// Where there is no file for a limit of swap, that is said.
fn about_swap(id: ControlId, is_counted: bool, observed: Facts) -> Facts {
    if id == ControlId::CgroupMemory && !is_counted {
        return observed.with("swap", "not counted by this kernel");
    }
    observed
}

/// What was asked for, and that nothing keeps it.
fn no_groups(limits: &Limits) -> Vec<Item> {
    let none = |id, name: &str, wanted: u64| {
        Item::read_back(id, false, Facts::new().with(name, wanted), Facts::new().with("group", "none"))
    };
    vec![
        none(ControlId::CgroupMemory, "memory_bytes", limits.memory_bytes),
        none(ControlId::CgroupCpu, "cpu_millis", limits.cpu_millis),
        none(ControlId::CgroupPids, "pids", limits.pids),
    ]
}

pub(super) fn rlimits(process: &Process, expected: &Expected<'_>) -> Read<Item> {
    let text = process.text("limits")?;
    let (mut requested, mut observed, mut holds) = (Facts::new(), Facts::new(), true);
    for wanted in wanted_rlimits(expected.limits, expected.group.is_absent()) {
        let line = text.lines().find_map(|line| line.strip_prefix(wanted.label)).unwrap_or_default();
        let mut fields = line.split_whitespace().map(|field| field.parse::<u64>().ok());
        let (soft, hard) = (fields.next().flatten(), fields.next().flatten());
        holds = holds && soft == Some(wanted.soft) && hard == Some(wanted.hard);
        let name = wanted.label.trim_start_matches("Max ").replace(' ', "_");
        requested = requested.with(&name, wanted.soft);
        observed = observed.with(&name, soft.map_or(Fact::from("?"), Fact::from));
    }
    Ok(Item::read_back(ControlId::Rlimits, holds, requested, observed))
}

pub(super) fn tmp_quota(process: &Process, limits: &Limits) -> Read<Item> {
    let mut devices = BTreeSet::new();
    let (mut bytes, mut inodes) = (0, 0);
    for mount in SCRATCH_MOUNTS {
        let path = process.root.join("root").join(mount.trim_start_matches('/'));
        let stat = rustix::fs::stat(&path).map_err(|errno| at(&path)(errno.into()))?;
        let _new = devices.insert(stat.st_dev);
        let fs = rustix::fs::statfs(&path).map_err(|errno| at(&path)(errno.into()))?;
        bytes = fs.f_blocks.saturating_mul(u64::try_from(fs.f_bsize).unwrap_or(0));
        inodes = fs.f_files;
    }
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let wanted = limits.tmp_bytes.div_ceil(page) * page;
    Ok(Item::read_back(
        ControlId::TmpQuota,
        devices.len() == 1 && bytes == wanted && inodes == limits.tmp_inodes,
        Facts::new().with("bytes", wanted).with("inodes", limits.tmp_inodes),
        Facts::new()
            .with("bytes", bytes)
            .with("inodes", inodes)
            .with("file_systems", u64::try_from(devices.len()).unwrap_or(0)),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn swap_that_nobody_counts_stands_in_the_report_of_memory_alone() {
        let facts = || Facts::new().with("memory.max", 1_u64);
        assert_eq!(about_swap(ControlId::CgroupMemory, true, facts()), facts());
        assert_eq!(about_swap(ControlId::CgroupCpu, false, facts()), facts());
        let told = facts().with("swap", "not counted by this kernel");
        assert_eq!(about_swap(ControlId::CgroupMemory, false, facts()), told);
    }
}
