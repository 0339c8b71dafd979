//! The range of 65,536 host ids that this instance has for itself.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::{ServeError, file};

/// Ids in a range.
const RANGE: u32 = 65_536;
/// More instances than this on one machine are a mistake.
const RANGES_MAX: u32 = 1024;

/// A range that nobody else on this machine uses, as long as its descriptor lives.
#[derive(Debug)]
pub(super) struct Ids {
    /// The first id.
    pub(super) base: u32,
    /// The lock.
    pub(super) lock: OwnedFd,
    /// The lock's file.
    pub(super) path: PathBuf,
}

/// Locks the first free range from `from` on.
pub(super) fn lock(folder: &Path, from: u32) -> Result<Ids, ServeError> {
    let map = |name: &'static str| file("read", name, std::fs::read_to_string(name));
    let maps = [map("/proc/self/uid_map")?, map("/proc/self/gid_map")?];
    file("make", folder, std::fs::create_dir_all(folder))?;
    lock_within(folder, from, &maps)
}

fn lock_within(folder: &Path, from: u32, maps: &[String; 2]) -> Result<Ids, ServeError> {
    let bases = (0..RANGES_MAX).map_while(|n| n.checked_mul(RANGE)?.checked_add(from));
    for base in bases {
        if !maps.iter().all(|map| is_mapped(map, base)) {
            continue;
        }
        let path = folder.join(base.to_string());
        if let Some(lock) = try_lock(&path)? {
            return Ok(Ids { base, lock, path });
        }
    }
    Err(ServeError::NoIds { from })
}

/// Whether one line of the map (user_namespaces(7)) holds the whole range. The last id of all, -1, is nobody's.
fn is_mapped(map: &str, base: u32) -> bool {
    let first = u64::from(base);
    let end = first + u64::from(RANGE);
    end < u64::from(u32::MAX)
        && map.lines().any(|line| {
            let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
            matches!(numbers.as_slice(), [inside, _, count] if *inside <= first && end <= inside.saturating_add(*count))
        })
}

/// None if somebody has it. The file may be removed by its owner between our open and our lock; then it is made anew.
pub(super) fn try_lock(path: &Path) -> Result<Option<OwnedFd>, ServeError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    loop {
        let lock = file("open", path, rustix::fs::open(path, flags, Mode::from_raw_mode(0o600)))?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            Err(errno) => return file("lock", path, Err(errno)),
        }
        let locked = file("look at", path, rustix::fs::fstat(&lock))?;
        match rustix::fs::lstat(path) {
            Ok(named) if (named.st_dev, named.st_ino) == (locked.st_dev, locked.st_ino) => return Ok(Some(lock)),
            Ok(_) | Err(Errno::NOENT) => drop(File::from(lock)),
            Err(errno) => return file("look at", path, Err(errno)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> [String; 2] {
        ["0 0 4294967295".to_owned(), "         0          0 4294967295\n".to_owned()]
    }

    #[test]
    fn two_instances_have_two_ranges_and_a_range_is_free_again_after() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock_within(folder.path(), 1_879_048_192, &whole()).unwrap();
        let second = lock_within(folder.path(), 1_879_048_192, &whole()).unwrap();
        assert_eq!((first.base, second.base), (1_879_048_192, 1_879_113_728));
        drop(first);
        assert_eq!(lock_within(folder.path(), 1_879_048_192, &whole()).unwrap().base, 1_879_048_192);
    }

    #[test]
    fn a_lock_file_that_was_removed_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock_within(folder.path(), 100_000, &whole()).unwrap();
        std::fs::remove_file(&first.path).unwrap();
        let second = lock_within(folder.path(), 100_000, &whole()).unwrap();
        assert!(second.path.exists());
    }

    #[test]
    fn a_range_outside_the_id_map_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let maps = ["0 100000 65536".to_owned(), whole()[0].clone()];
        assert!(matches!(lock_within(folder.path(), 65_536, &maps), Err(ServeError::NoIds { from: 65_536 })));
        let maps = ["0 0 1\n1 200000 300000".to_owned(), whole()[0].clone()];
        assert_eq!(lock_within(folder.path(), 65_536, &maps).unwrap().base, 65_536);
    }

    #[test]
    fn the_last_ids_of_all_are_not_taken() {
        assert!(!is_mapped("0 0 4294967295", u32::MAX - RANGE + 1));
        assert!(is_mapped("0 0 4294967295", u32::MAX - 2 * RANGE));
    }
}
