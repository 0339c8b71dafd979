//! Who a cell's init and tool are on the host, and the maps that say so.

use crate::stages::{INIT_ID, TOOL_ID};

/// Most cells at once: two ids each of the range, and a bound on what one daemon can make us hold.
const CELLS_MAX: u32 = 1024;

/// Where the host ids of cells come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellIds {
    /// Two of a range per live cell, one for its init and one for its tool, which nobody else has.
    Range {
        /// First user id.
        uid: u32,
        /// First group id.
        gid: u32,
        /// For how many cells at once there are ids.
        cells: u32,
    },
    /// The launcher's own user and group, for want of others: cells differ from their user's processes by their
    /// namespaces alone.
    Own,
}

/// A user and a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

impl Id {
    fn both(id: u32) -> Self {
        Self { uid: id, gid: id }
    }
}

/// The two of one cell, on the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ids {
    pub(crate) init: Id,
    pub(crate) tool: Id,
    /// Whether both are the launcher's own.
    pub(crate) is_own: bool,
}

impl CellIds {
    /// How many cells there can be at once.
    pub(crate) fn cells(self) -> u32 {
        match self {
            Self::Range { cells, .. } => cells.min(CELLS_MAX),
            Self::Own => CELLS_MAX,
        }
    }

    /// Those of the cell in this slot.
    pub(crate) fn of(self, slot: u32) -> Ids {
        match self {
            Self::Range { uid, gid, .. } => {
                let id = |nth: u32| {
                    let offset = slot.saturating_mul(2).saturating_add(nth);
                    Id { uid: uid.saturating_add(offset), gid: gid.saturating_add(offset) }
                };
                Ids { init: id(0), tool: id(1), is_own: false }
            }
            Self::Own => {
                let own = own_id();
                Ids { init: own, tool: own, is_own: true }
            }
        }
    }
}

/// The launcher's.
pub(crate) fn own_id() -> Id {
    Id { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

impl Ids {
    /// User and group id of the init, inside. One id cannot have two names in a map.
    pub(crate) fn init_inside(self) -> u32 {
        if self.is_own { TOOL_ID } else { INIT_ID }
    }

    /// The init's ids as it names them itself: those of the map, or without a user namespace of its own the host's.
    pub(crate) fn init_as_seen(self, is_mapped: bool) -> Id {
        if is_mapped { Id::both(self.init_inside()) } else { self.init }
    }

    /// The tool's.
    pub(crate) fn tool_as_seen(self, is_mapped: bool) -> Id {
        if is_mapped { Id::both(TOOL_ID) } else { self.tool }
    }

    /// With the launcher's own user as the tool, which is root for root: no identity of its own.
    pub(crate) fn with_own_tool(self) -> Self {
        Self { tool: own_id(), ..self }
    }

    /// The lines of uid_map, then those of gid_map (user_namespaces(7)): inside, outside, count.
    pub(crate) fn maps(self) -> [Vec<String>; 2] {
        let lines = |of: fn(Id) -> u32| {
            let tool = format!("{TOOL_ID} {} 1", of(self.tool));
            if self.is_own { vec![tool] } else { vec![format!("{INIT_ID} {} 1", of(self.init)), tool] }
        };
        [lines(|id| id.uid), lines(|id| id.gid)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_live_cell_has_two_ids_of_its_own() {
        let range = CellIds::Range { uid: 1000, gid: 5000, cells: 3 };
        assert_eq!(range.cells(), 3);
        let ids: std::collections::BTreeSet<u32> =
            (0..3).flat_map(|slot| [range.of(slot).init.uid, range.of(slot).tool.uid]).collect();
        assert_eq!(ids, (1000..1006).collect());
        let [uids, gids] = range.of(1).maps();
        assert_eq!(
            (uids, gids),
            (
                vec!["65533 1002 1".into(), "65534 1003 1".into()],
                vec!["65533 5002 1".to_owned(), "65534 5003 1".to_owned()]
            )
        );
    }

    #[test]
    fn an_id_that_init_and_tool_share_has_one_name_inside() {
        let ids = CellIds::Own.of(7);
        assert_eq!(ids.init_inside(), TOOL_ID);
        assert_eq!(ids.maps()[0], [format!("{TOOL_ID} {} 1", rustix::process::geteuid().as_raw())]);
    }
}
