//! A survey is asked for: what the host is like, and cells for a program of the launcher's own.

use std::os::fd::OwnedFd;

use toolcell_types::doctor::SurveyAct;
use toolcell_types::plan::{CallerIds, FromLauncher, Prepare};
use toolcell_types::{CellId, ControlSet};

use super::{Launcher, LauncherError, bad_plan};
use crate::ids::own_id;
use crate::readback::Terms;
use crate::survey::{self, Outside};

impl Launcher {
    pub(super) fn on_look(&mut self, cell: CellId) -> Result<(), LauncherError> {
        let message = FromLauncher::Seen { cell, host: toolcell_doctor::host_facts() };
        self.link.send(&message, Vec::new()).map_err(|source| LauncherError::Link { source })
    }

    pub(super) fn on_survey(&mut self, cell: CellId, act: SurveyAct, fds: &[OwnedFd]) -> Result<(), LauncherError> {
        if !fds.is_empty() {
            return self.refuse(cell, bad_plan("a survey comes without descriptors"));
        }
        let slot = match self.free_slot(cell) {
            Ok(slot) => slot,
            Err(fault) => return self.refuse(cell, fault),
        };
        // That of an earlier probe goes with its successor or with the next step of the same survey.
        self.outside_cells = (act == SurveyAct::Probe).then(|| Outside::prepare(&self.runtime));
        let passed = match survey::passed(act, self.outside_cells.as_ref()) {
            Ok(passed) => passed,
            Err(fault) => return self.refuse(cell, fault),
        };
        let own = own_id();
        let caller = CallerIds { uid: own.uid, gid: own.gid, groups: Vec::new() };
        let (limits, image) = (act.limits(), survey::ROOT.to_vec());
        let prepare = Prepare { limits, image, mounts: Vec::new(), caller, ablated: ControlSet::EMPTY };
        let terms = Terms { is_survey: true, ..self.terms() };
        self.begin_and_raise((cell, slot), &prepare, passed, terms)
    }
}
