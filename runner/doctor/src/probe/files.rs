//! Files: what may be read and written is, mounts are read-only and quiet, /dev and /proc hold nothing else, and no
//! descriptor came along.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use nix::libc;
use rustix::fs::StatVfsMountFlags;
use toolcell_types::ControlId;
use toolcell_types::doctor::{Side, Trial};

use super::{fails, works};

/// The writable mounts.
const SCRATCH: [&str; 2] = ["/tmp", "/dev/shm"];

fn mount_points() -> io::Result<Vec<String>> {
    let text = std::fs::read_to_string("/proc/self/mountinfo")?;
    Ok(text.lines().filter_map(|line| line.split(' ').nth(4)).map(str::to_owned).collect())
}

fn first_error<T>(mut results: impl Iterator<Item = io::Result<T>>) -> io::Result<()> {
    results.try_for_each(|result| result.map(drop))
}

/// A folder can be made in each scratch and on no other mount. mkdir(2) answers EROFS before it asks for rights.
pub(super) fn read_only() -> Trial {
    let make = |at: &str| {
        let path = Path::new(at).join(".survey");
        std::fs::create_dir(&path).and_then(|()| std::fs::remove_dir(&path))
    };
    let points = mount_points().unwrap_or_default();
    // In /proc nothing can be made anywhere (ENOENT); that it cannot be written is tried with proc.masked.
    let tried: Vec<&String> = points
        .iter()
        .filter(|at| !SCRATCH.contains(&at.as_str()) && !at.starts_with("/proc") && Path::new(at).is_dir())
        .collect();
    let odd = tried.iter().map(|at| (at, make(at))).find(|(_, made)| !is_errno(made, libc::EROFS));
    let got = match &odd {
        None => format!("EROFS on {} mounts", tried.len()),
        Some((at, made)) => format!("{at}: {}", super::word(made)),
    };
    let scratch = first_error(SCRATCH.iter().map(|at| make(at)));
    Trial {
        id: ControlId::RootReadonly,
        allowed: works("make a folder in /tmp and /dev/shm", &scratch),
        forbidden: Side::tried("make a folder on any other mount", got, odd.is_none() && !tried.is_empty()),
    }
}

fn is_errno<T>(result: &io::Result<T>, errno: i32) -> bool {
    result.as_ref().err().and_then(io::Error::raw_os_error) == Some(errno)
}

/// No mount honours set-id bits, and none but /dev and its nodes has devices.
pub(super) fn no_set_id() -> Trial {
    let points = mount_points().unwrap_or_default();
    let is_loud = |at: &&String| {
        let Ok(stat) = rustix::fs::statvfs(at.as_str()) else { return false };
        let has = |flag: StatVfsMountFlags| stat.f_flag.contains(flag);
        !has(StatVfsMountFlags::NOSUID) || (!has(StatVfsMountFlags::NODEV) && !at.starts_with("/dev"))
    };
    let loud: Vec<&String> = points.iter().filter(is_loud).collect();
    let got = if loud.is_empty() {
        format!("none of {}", points.len())
    } else {
        loud.iter().map(|at| at.as_str()).take(4).collect::<Vec<_>>().join(", ")
    };
    let null = OpenOptions::new().write(true).open("/dev/null");
    Trial {
        id: ControlId::MountsNosuidNodev,
        allowed: works("open /dev/null", &null),
        forbidden: Side::tried(
            "find a mount with set-id programs, or outside of /dev with nodes",
            got,
            loud.is_empty() && !points.is_empty(),
        ),
    }
}

/// Nodes that a cell has no use for and that lead to the kernel, to a terminal or to more mounts.
const FOREIGN_NODES: [&str; 7] =
    ["/dev/kmsg", "/dev/mem", "/dev/tty", "/dev/kvm", "/dev/fuse", "/dev/loop-control", "/dev/ptmx"];

/// The five nodes work, no other is there.
pub(super) fn devices() -> Trial {
    let mut byte = [0_u8; 1];
    let read = File::open("/dev/urandom").and_then(|mut node| node.read_exact(&mut byte));
    let found: Vec<&str> =
        FOREIGN_NODES.into_iter().filter(|path| Path::new(path).symlink_metadata().is_ok()).collect();
    let got = if found.is_empty() { "ENOENT for each".to_owned() } else { format!("there is {}", found.join(", ")) };
    Trial {
        id: ControlId::DevMinimal,
        allowed: works("read /dev/urandom", &read),
        forbidden: Side::tried("open /dev/kmsg, mem, tty, kvm, fuse, loop-control, ptmx", got, found.is_empty()),
    }
}

/// Files of /proc that tell about the machine or its keys, as far as this kernel has them.
const DANGEROUS: [&str; 4] = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/interrupts"];

/// One's own state can be read; the dangerous files cannot be opened, and not even one's own can be written: outside
/// of a cell everybody may write the name of his own process.
pub(super) fn masked() -> Trial {
    let open = |path: &&str| Path::new(path).symlink_metadata().is_ok() && File::open(path).is_ok();
    let opened: Vec<&str> = DANGEROUS.into_iter().filter(open).collect();
    let written = OpenOptions::new().write(true).open("/proc/self/comm").and_then(|mut comm| comm.write_all(b"survey"));
    let act = "open /proc/kcore, keys, timer_list, interrupts; write /proc/self/comm";
    let forbidden = if opened.is_empty() {
        fails(act, &written, &[libc::EROFS])
    } else {
        Side::tried(act, format!("{} can be opened", opened.join(", ")), false)
    };
    let read = std::fs::read_to_string("/proc/self/status");
    Trial { id: ControlId::ProcMasked, allowed: works("read /proc/self/status", &read), forbidden }
}

/// Only 0, 1 and 2 are open, besides the folder that is being listed.
pub(super) fn descriptors() -> Trial {
    let listed = std::fs::read_dir("/proc/self/fd").map(|entries| {
        let entries = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let is_listing = |path: &Path| std::fs::read_link(path).is_ok_and(|to| to.ends_with("fd"));
        let open = entries.filter(|path| !is_listing(path));
        open.filter_map(|path| path.file_name()?.to_str()?.parse::<u32>().ok()).collect::<Vec<_>>()
    });
    let open = listed.as_deref().unwrap_or_default();
    let more: Vec<String> = open.iter().filter(|number| **number > 2).map(ToString::to_string).collect();
    let got = if more.is_empty() { "there is none".to_owned() } else { more.join(", ") };
    let three = (0..=2).all(|number| open.contains(&number));
    Trial {
        id: ControlId::FdsClosed,
        allowed: Side::tried("have 0, 1 and 2", if three { "open" } else { "not all are open" }, three),
        forbidden: Side::tried("find another descriptor", got, listed.is_ok() && more.is_empty()),
    }
}
