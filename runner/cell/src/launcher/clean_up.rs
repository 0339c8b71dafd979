//! The launcher's own end: nothing of it stays.

use std::time::Duration;

use super::{Launcher, LauncherError};
use crate::live::{Alarm, Step};

/// Between two looks at what is still there.
const PAUSE: Duration = Duration::from_millis(1);

impl Launcher {
    /// Kills what lives, waits for it, removes groups, template and files.
    pub(super) fn clean_up(mut self) -> Result<(), LauncherError> {
        for live in self.cells.values_mut() {
            live.kill_tree();
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
        for _round in 0..500 {
            self.remains.retain_mut(|group| group.remove().is_err());
            if self.remains.is_empty() {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        self.shop.groups.close().map_err(|source| LauncherError::Groups { source })?;
        self.shop.dev.remove().map_err(|source| LauncherError::Call { what: "remove the template of /dev", source })?;
        for path in &self.unlink {
            match std::fs::remove_file(path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(source) => {
                    return Err(LauncherError::Call { what: "remove a file of the runtime directory", source });
                }
            }
        }
        Ok(())
    }
}
