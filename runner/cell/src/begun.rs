//! What the daemon may hear of a cell before it is armed: what its controls are asked for. So it signs the intent while
//! the cell is still being set up.
//!
//! Only of a cell like one that was seen to hold all its controls in the same slot, which gives it its ids, and with the
//! same limits: what it is asked for is then the same, and nothing speaks for it not to hold this time. It is compared
//! again when the cell is armed. A control that does not hold in spite of it ends a call whose intent is signed; one that
//! never holds on this machine is a refusal every time.

use std::collections::BTreeMap;
use std::rc::Rc;

use toolcell_types::plan::LaunchFault;
use toolcell_types::{ControlReport, Facts, Limits};

/// Slots of which that is remembered: the lowest, which calls one after the other use. With more cells at once there is
/// no idle processor that could sign meanwhile.
const SLOTS: u32 = 8;

/// What the controls of a cell are asked for, in their order.
pub(crate) type Requested = Rc<[Facts]>;

/// What cells of each slot were asked for. No tenant's data: limits and our own settings.
#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<u32, (Limits, Requested)>);

impl Known {
    /// What a cell in this slot with these limits will be asked for, if that is known.
    pub(crate) fn of(&self, slot: u32, limits: &Limits) -> Option<Requested> {
        let (known, requested) = self.0.get(&slot)?;
        (known == limits).then(|| Rc::clone(requested))
    }

    /// A cell in this slot holds.
    pub(crate) fn learn(&mut self, slot: u32, limits: Limits, controls: &[ControlReport]) {
        if slot < SLOTS && self.of(slot, &limits).is_none() {
            let requested = controls.iter().map(|control| control.requested.clone()).collect();
            let _before = self.0.insert(slot, (limits, requested));
        }
    }

    /// One does not: the next ones have to show it first.
    pub(crate) fn forget(&mut self) {
        self.0.clear();
    }
}

/// Whether what was told is what the cell was asked for.
///
/// # Errors
/// [`LaunchFault::Stage`]: it is not, so that the intent is wrong and nothing may be let go.
pub(crate) fn compare(told: &[Facts], controls: &[ControlReport]) -> Result<(), LaunchFault> {
    if controls.iter().map(|control| &control.requested).eq(told) {
        return Ok(());
    }
    Err(LaunchFault::Stage {
        stage: "read-back".to_owned(),
        errno: nix::libc::EPROTO,
        detail: "the controls are asked for something else than was told".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use toolcell_types::{ControlId, ControlState, Verification};

    use super::*;

    fn controls(bytes: u64) -> Vec<ControlReport> {
        let control = |id| ControlReport {
            id,
            state: ControlState::Enforced,
            verification: Verification::ReadBack,
            required: true,
            requested: Facts::new().with("bytes", bytes),
            observed: Facts::new(),
        };
        ControlId::ALL.into_iter().map(control).collect()
    }

    #[test]
    fn a_cell_is_known_by_slot_and_limits_and_not_after_one_that_did_not_hold() {
        let (mut known, limits) = (Known::default(), Limits::default());
        assert!(known.of(0, &limits).is_none(), "nothing was seen yet");
        known.learn(0, limits, &controls(1));
        assert_eq!(known.of(0, &limits).unwrap().len(), ControlId::ALL.len());
        assert!(known.of(1, &limits).is_none(), "another's ids");
        assert!(known.of(0, &Limits { pids: limits.pids + 1, ..limits }).is_none());
        known.learn(SLOTS, limits, &controls(1));
        assert!(known.of(SLOTS, &limits).is_none(), "so many are not remembered");
        known.forget();
        assert!(known.of(0, &limits).is_none());
    }

    #[test]
    fn what_was_told_is_compared_with_what_was_asked_for() {
        let told: Vec<Facts> = controls(1).into_iter().map(|control| control.requested).collect();
        assert_eq!(compare(&told, &controls(1)), Ok(()));
        assert!(compare(&told, &controls(2)).is_err());
        assert!(compare(&told[1..], &controls(1)).is_err());
    }
}
