//! What the mount tree of a cell really is: writable places, flags, devices, masks.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use toolcell_types::{ControlId, Fact, Facts};

use super::Item;
use crate::devtree::Nodes;
use crate::mountinfo::Mount;
use crate::process::{Process, Read, at};
use crate::stages::{DEV_LINKS, DEV_NODES, DEV_SHM, MASKED_PROC, READ_ONLY_PROC, SCRATCH_MOUNTS};

pub(super) fn mount_items(process: &Process, mounts: &[Mount], nodes: Nodes) -> Read<Vec<Item>> {
    let points = |which: &dyn Fn(&Mount) -> bool| {
        let those = mounts.iter().filter(|mount| which(mount));
        those.map(|mount| mount.point.to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let lacking = |flag: &str| points(&|mount| !mount.has(flag));
    // Whether /proc is read-only is another control's, which looks at nothing else there.
    let writable = points(&|mount| !mount.has("ro") && mount.point != Path::new("/proc"));
    let scratch: Vec<String> = SCRATCH_MOUNTS.map(str::to_owned).to_vec();
    let as_set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    let with_devices: Vec<String> = match nodes {
        Nodes::Made => vec!["/dev".to_owned()],
        Nodes::Bound => DEV_NODES.iter().map(|node| node.path.to_owned()).collect(),
    };
    let (suid, devices) = (lacking("nosuid"), lacking("nodev"));
    let readonly = Item::read_back(
        ControlId::RootReadonly,
        as_set(&writable) == as_set(&scratch) && mounts.iter().any(|mount| mount.point == Path::new("/")),
        Facts::new().with("writable", Fact::List(scratch)),
        Facts::new().with("mounts", u64::try_from(mounts.len()).unwrap_or(0)).with("writable", Fact::List(writable)),
    );
    let flags = Item::read_back(
        ControlId::MountsNosuidNodev,
        suid.is_empty() && as_set(&devices) == as_set(&with_devices),
        Facts::new().with("suid_on", Fact::List(Vec::new())).with("devices_on", Fact::List(with_devices)),
        Facts::new().with("suid_on", Fact::List(suid)).with("devices_on", Fact::List(devices)),
    );
    Ok(vec![readonly, flags, dev_minimal(process)?, proc_masked(process, mounts)])
}

fn dev_minimal(process: &Process) -> Read<Item> {
    let mut wanted: Vec<String> =
        DEV_NODES.iter().map(|node| format!("{} {}:{}", node.name, node.major, node.minor)).collect();
    wanted.extend(DEV_LINKS.iter().map(|(name, target)| format!("{name} {target}")));
    wanted.push(format!("{DEV_SHM}/"));
    wanted.sort();
    let dir = process.root.join("root/dev");
    let mut seen = Vec::new();
    for entry in fs::read_dir(&dir).map_err(at(&dir))? {
        let entry = entry.map_err(at(&dir))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let stat = rustix::fs::lstat(&path).map_err(|errno| at(&path)(errno.into()))?;
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        seen.push(if kind.is_char_device() {
            format!("{name} {major}:{minor}")
        } else if kind.is_symlink() {
            format!("{name} {}", fs::read_link(&path).map_err(at(&path))?.to_string_lossy())
        } else if kind.is_dir() {
            format!("{name}/")
        } else {
            format!("{name} ?")
        });
    }
    seen.sort();
    let facts = |list: &[String]| {
        let names = list.iter().map(|item| item.split([' ', '/']).next().unwrap_or_default().to_owned()).collect();
        Facts::new().with("entries", Fact::List(names))
    };
    Ok(Item::read_back(ControlId::DevMinimal, seen == wanted, facts(&wanted), facts(&seen)))
}

fn proc_masked(process: &Process, mounts: &[Mount]) -> Item {
    let proc = process.root.join("root/proc");
    let there: Vec<&str> = MASKED_PROC.into_iter().filter(|name| proc.join(name).symlink_metadata().is_ok()).collect();
    let covered = |name: &&str| mounts.iter().any(|mount| mount.point == Path::new("/proc").join(name));
    let masked: Vec<String> = there.iter().copied().filter(|name| covered(name)).map(str::to_owned).collect();
    let fresh = mounts.iter().any(|mount| mount.point == Path::new("/proc") && mount.fs == "proc" && mount.has("ro"));
    let all: Vec<String> = there.into_iter().map(str::to_owned).collect();
    let list = |names: &[&str]| Fact::List(names.iter().map(|name| (*name).to_owned()).collect());
    Item::read_back(
        ControlId::ProcMasked,
        fresh && masked == all,
        Facts::new().with("masked", list(&MASKED_PROC)).with("read_only", list(&READ_ONLY_PROC)),
        Facts::new().with("masked", Fact::List(masked)).with("whole_read_only", fresh),
    )
}
