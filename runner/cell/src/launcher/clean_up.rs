//! The launcher's own end: nothing of it stays.

use super::source::{Part, Source};
use super::{Launcher, LauncherError};
use crate::live::Step;

impl Launcher {
    /// Kills what lives, waits for it, removes groups, template and files.
    pub(super) fn clean_up(mut self) -> Result<(), LauncherError> {
        for live in self.cells.values_mut() {
            live.kill_tree();
        }
        while !self.cells.is_empty() {
            for source in self.wait()? {
                if let Source::Cell(slot, part) = source {
                    let Some(live) = self.cells.get_mut(&slot) else { continue };
                    let step = match part {
                        Part::Records => Step::Wait,
                        Part::InitEnd => live.on_init_end(),
                        Part::Alarm(alarm) => live.on_alarm(alarm),
                    };
                    match step {
                        Step::Over(_) => {
                            let cell = self.slots.iter().find(|(_, known)| **known == slot).map(|(cell, _)| *cell);
                            if let Some(cell) = cell {
                                self.take_off(cell, slot);
                            }
                        }
                        Step::Wait | Step::Armed(..) => {}
                    }
                }
            }
        }
        for _round in 0..500 {
            self.remains.retain_mut(|group| group.remove().is_err());
            if self.remains.is_empty() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        self.shop.groups.remove().map_err(|source| LauncherError::Groups { source })?;
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
