//! The launcher's own end: nothing of it stays.

use std::time::Duration;

use super::opening::Opening;
use super::{Launcher, LauncherError};
use crate::live::{Alarm, Step};

/// Between two looks at what is still there.
const PAUSE: Duration = Duration::from_millis(1);
/// How often groups are tried again that are still busy.
const CLEAR_ROUNDS: u32 = 2000;

impl Launcher {
    /// Kills what lives, waits for it, removes groups, template and files.
    pub(super) fn clean_up(mut self) -> Result<(), LauncherError> {
        for live in self.cells.values_mut() {
            live.kill_tree();
        }
        // Those who open mounts would die with us, but a moment after.
        let openings = std::mem::take(&mut self.openings).into_values().map(Opening::into_opener);
        for opener in self.opener.take().into_iter().chain(openings) {
            self.bury(opener);
        }
        // Looked at in turn, not waited for by events: one of them may have come in the batch that ended the loop. A
        // cell that does not die is given up by itself after a while.
        while !self.cells.is_empty() {
            let mut over = Vec::new();
            for (cell, slot) in &self.slots {
                let step = self.cells.get_mut(slot).map(|live| live.on_alarm(Alarm::Round));
                if matches!(step, Some(Step::Over(_)) | None) {
                    over.push((*cell, *slot));
                }
            }
            for (cell, slot) in over {
                self.take_off(cell, slot);
            }
            std::thread::sleep(PAUSE);
        }
        for _round in 0..CLEAR_ROUNDS {
            self.clear_remains();
            self.reap_openers();
            if self.remains.is_empty() && self.stuck.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        // Each is tried whatever became of the others; the first that failed is the error.
        let groups = self.shop.groups.close().map_err(|source| LauncherError::Groups { source });
        let dev = self
            .shop
            .dev
            .remove()
            .map_err(|source| LauncherError::Call { what: "remove the template of /dev", source });
        let files = self.unlink.iter().map(|path| match std::fs::remove_file(path) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(LauncherError::Call { what: "remove a file of the runtime directory", source }),
        });
        let files: Vec<_> = files.collect();
        [groups, dev].into_iter().chain(files).collect()
    }
}
