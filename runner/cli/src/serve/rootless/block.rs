//! A part of the user's range that this instance has for itself, so that instances of one user side by side never give
//! the same id to two cells.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toolcell_cell::CellIds;

use super::leftovers;
use super::subids::{Range, SubIds};
use crate::serve::error::{ServeError, file};
use crate::serve::ids::try_lock;

/// Ids of one instance: two for each of the most cells that there can be.
const BLOCK: u32 = 2048;
/// How long what an earlier instance left may take to die.
const PATIENCE: Duration = Duration::from_secs(5);

/// Locked ids.
#[derive(Debug)]
pub(super) struct Block {
    users: Range,
    groups: Range,
    lock: OwnedFd,
    path: PathBuf,
}

/// The block that this instance had before if it can be had, else the first that is free and has no process. From the end
/// of the range, as containers of the same user take theirs from its beginning.
pub(super) fn lock(folder: &Path, ids: &SubIds, former: Option<u32>) -> Result<Option<Block>, ServeError> {
    file("make", folder, std::fs::create_dir_all(folder))?;
    let mut blocks = blocks(ids);
    blocks.sort_by_key(|(users, _)| Some(users.first) != former);
    for (users, groups) in blocks {
        let path = folder.join(users.first.to_string());
        let Some(lock) = try_lock(&path)? else { continue };
        if leftovers::are_gone(users, PATIENCE) {
            return Ok(Some(Block { users, groups, lock, path }));
        }
    }
    Ok(None)
}

/// Parts of equal size of both ranges, the last first; a range that is too small is one part.
fn blocks(ids: &SubIds) -> Vec<(Range, Range)> {
    let count = ids.users.count.min(ids.groups.count);
    let size = BLOCK.min(count / 2 * 2);
    let at = |range: Range, nth: u32| Range { first: range.first + range.count - (nth + 1) * size, count: size };
    (0..count.checked_div(size).unwrap_or(0)).map(|nth| (at(ids.users, nth), at(ids.groups, nth))).collect()
}

impl Block {
    /// The ids of cells in it.
    pub(super) fn cell_ids(&self) -> CellIds {
        CellIds::Range { uid: self.users.first, gid: self.groups.first, cells: self.users.count / 2 }
    }

    /// Its first user id, which names it.
    pub(super) fn uid(&self) -> u32 {
        self.users.first
    }

    pub(super) fn users(&self) -> Range {
        self.users
    }

    pub(super) fn groups(&self) -> Range {
        self.groups
    }

    /// Whether nothing runs under the ids that this instance had before. Without a word of them it has had none, or the
    /// user's own.
    pub(super) fn is_former_gone(&self, former: Option<u32>) -> bool {
        match former {
            Some(first) => first == self.users.first,
            None => leftovers::are_own_gone(),
        }
    }

    /// Takes away the lock's file, for a start that fails.
    pub(super) fn remove_lock(&self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::warn!(path = %self.path.display(), %error, "a lock file stays behind");
        }
    }

    pub(super) fn into_lock(self) -> (OwnedFd, PathBuf) {
        (self.lock, self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOBODY: SubIds =
        SubIds { users: Range { first: 3_000_000_000, count: 5000 }, groups: Range { first: 10, count: 9000 } };

    #[test]
    fn parts_are_taken_from_the_end_and_never_overlap() {
        let parts = blocks(&NOBODY);
        let firsts: Vec<(u32, u32)> = parts.iter().map(|(users, groups)| (users.first, groups.first)).collect();
        assert_eq!(firsts, [(3_000_002_952, 6962), (3_000_000_904, 4914)]);
        let small = SubIds { users: Range { first: 100, count: 7 }, ..NOBODY };
        assert_eq!(blocks(&small)[0].0, Range { first: 101, count: 6 });
    }

    #[test]
    fn instances_side_by_side_have_different_ids_and_a_start_again_has_those_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let take = |former| lock(folder.path(), &NOBODY, former).unwrap();
        let first = take(None).unwrap();
        let second = take(None).unwrap();
        assert_ne!(first.uid(), second.uid());
        assert!(take(None).is_none(), "there are no more than two");
        let former = second.uid();
        drop((first, second));
        assert_eq!(take(Some(former)).unwrap().uid(), former);
    }
}
