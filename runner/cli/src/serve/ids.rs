//! The range of host ids that this instance has for itself: 65,536 of the machine's, or less where the machine's id map, as
//! in a container, does not hold so many to spare.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::error::{ServeError, file};

/// First of the ids where nobody says another: no distribution and no subuid range of shadow(5) puts anybody there by
/// default.
const BASE: u32 = 1_879_048_192;
/// Ids in a range.
const RANGE: u32 = 65_536;
/// More instances than this on one machine are a mistake.
const RANGES_MAX: u32 = 1024;
/// Ids of a range where the map is small: what one instance uses at most.
const SMALL_RANGE: u32 = super::tenure::IDS_USED;
/// Of a small map those below are the distribution's own and people's (Debian policy, 9.2.2).
const SMALL_FROM: u32 = 20_000;
/// The ids from here on are no ordinary ones (65534 is nobody, 65535 is -1 in 16 bits).
const SMALL_TO: u32 = 65_534;

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

/// Locks the first free range from the named id on. Only where none is named may it be a small one.
pub(super) fn lock(folder: &Path, named: Option<u32>) -> Result<Ids, ServeError> {
    let map = |name: &'static str| file("read", name, std::fs::read_to_string(name));
    let maps = [map("/proc/self/uid_map")?, map("/proc/self/gid_map")?];
    file("make", folder, std::fs::create_dir_all(folder))?;
    lock_within(folder, named, &maps)
}

fn lock_within(folder: &Path, named: Option<u32>, maps: &[String; 2]) -> Result<Ids, ServeError> {
    let from = named.unwrap_or(BASE);
    let large = (0..RANGES_MAX).map_while(|n| n.checked_mul(RANGE)?.checked_add(from));
    let large: Vec<u32> = large.filter(|base| maps.iter().all(|map| is_mapped(map, *base, RANGE))).collect();
    // From the end, as users are numbered from the beginning.
    let small = (SMALL_FROM..SMALL_TO - SMALL_RANGE).rev().step_by(usize::try_from(SMALL_RANGE).unwrap_or(usize::MAX));
    let small = small.filter(|base| {
        named.is_none() && large.is_empty() && maps.iter().all(|map| is_mapped(map, *base, SMALL_RANGE))
    });
    for base in large.iter().copied().chain(small) {
        let path = folder.join(base.to_string());
        if let Some(lock) = try_lock(&path)? {
            return Ok(Ids { base, lock, path });
        }
    }
    Err(ServeError::NoIds { from, is_outside: named.is_some() && large.is_empty() })
}

/// Whether one line of the map (user_namespaces(7)) holds the whole range. The last id of all, -1, is nobody's.
fn is_mapped(map: &str, base: u32, count: u32) -> bool {
    let first = u64::from(base);
    let end = first + u64::from(count);
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
        let first = lock_within(folder.path(), None, &whole()).unwrap();
        let second = lock_within(folder.path(), Some(BASE), &whole()).unwrap();
        assert_eq!((first.base, second.base), (1_879_048_192, 1_879_113_728));
        drop(first);
        assert_eq!(lock_within(folder.path(), None, &whole()).unwrap().base, 1_879_048_192);
    }

    #[test]
    fn a_lock_file_that_was_removed_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        let first = lock_within(folder.path(), Some(100_000), &whole()).unwrap();
        std::fs::remove_file(&first.path).unwrap();
        let second = lock_within(folder.path(), Some(100_000), &whole()).unwrap();
        assert!(second.path.exists());
    }

    #[test]
    fn a_range_outside_the_id_map_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let maps = ["0 100000 20000".to_owned(), whole()[0].clone()];
        let refused = lock_within(folder.path(), Some(65_536), &maps);
        assert!(matches!(refused, Err(ServeError::NoIds { from: 65_536, is_outside: true })), "{refused:?}");
        let maps = ["0 0 1\n1 200000 300000".to_owned(), whole()[0].clone()];
        assert_eq!(lock_within(folder.path(), Some(65_536), &maps).unwrap().base, 65_536);
    }

    #[test]
    fn a_container_s_small_map_gives_small_ranges_from_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let maps = ["0 100000 65536".to_owned(), "0 100000 65536".to_owned()];
        let mut ranges = Vec::new();
        while let Ok(ids) = lock_within(folder.path(), None, &maps) {
            ranges.push(ids);
        }
        assert!(ranges.len() >= 10, "{}", ranges.len());
        assert!(ranges.iter().all(|ids| ids.base >= SMALL_FROM && ids.base + SMALL_RANGE < SMALL_TO));
        assert!(ranges.windows(2).all(|two| two[0].base - two[1].base == SMALL_RANGE), "and none overlap");
    }

    #[test]
    fn a_range_that_was_named_is_not_replaced_by_a_small_one() {
        let folder = tempfile::tempdir().unwrap();
        for named in [65_536, BASE, u32::MAX - RANGE + 1, u32::MAX] {
            let maps = ["0 100000 65536".to_owned(), "0 100000 65536".to_owned()];
            let refused = lock_within(folder.path(), Some(named), &maps).unwrap_err();
            assert!(matches!(refused, ServeError::NoIds { is_outside: true, .. }), "{named}: {refused}");
            assert!(refused.remedy().contains("leave --uid-base out"), "{}", refused.remedy());
        }
        assert!(lock_within(folder.path(), Some(u32::MAX), &whole()).is_err());
    }

    #[test]
    fn the_last_ids_of_all_are_not_taken() {
        assert!(!is_mapped("0 0 4294967295", u32::MAX - RANGE + 1, RANGE));
        assert!(is_mapped("0 0 4294967295", u32::MAX - 2 * RANGE, RANGE));
    }
}
