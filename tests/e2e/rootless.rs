//! An instance that an ordinary user starts, with and without subordinate ids: the suite's core again, and what is
//! different: what is missing is refused or said, and nothing of the user's own is in a cell's reach.

mod calls;
mod deaths;
mod forbidden;
mod groups;
mod mounts;
mod posture;
mod verdicts;

use std::collections::BTreeSet;

use toolcell_tests::{Instance, Need, OrdinaryUser, Setup};

/// What no instance of an ordinary user has.
const GROUPS: [&str; 4] = ["cgroup.memory", "cgroup.cpu", "cgroup.pids", "cpu-clock"];
/// What one without subordinate ids does not have either.
const IDENTITY: &str = "identity.unprivileged";

/// Both kinds of user; where this is no root's, the one who runs this.
pub(crate) fn both_users() -> Vec<OrdinaryUser> {
    let with_ids = Need::Root.is_there().then(OrdinaryUser::with_ids);
    with_ids.into_iter().chain([OrdinaryUser::without_ids()]).collect()
}

/// The controls that are missing for this user.
pub(crate) fn missing(user: &OrdinaryUser) -> BTreeSet<&'static str> {
    let identity = user.range().is_none().then_some(IDENTITY);
    GROUPS.into_iter().chain(identity).collect()
}

/// As an option's value.
pub(crate) fn accepted(user: &OrdinaryUser) -> String {
    missing(user).into_iter().collect::<Vec<_>>().join(",")
}

/// An instance of this user's that goes without what is missing.
pub(crate) fn start(user: &OrdinaryUser) -> Instance {
    Setup::default().user(user).flags(&["--accept-unavailable", &accepted(user)]).start()
}
