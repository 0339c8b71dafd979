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

use toolcell_tests::{Instance, Need, OrdinaryUser, Setup, status_field};

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

/// What a remedy for that says. Under no_new_privs, as in a container for an ordinary user, neither a package nor a range
/// would help.
pub(crate) fn way_to_ids() -> &'static str {
    let is_confined = status_field(std::process::id(), "NoNewPrivs").as_deref() == Some("1");
    if is_confined {
        "start toolcell as root, or go without it"
    } else {
        "apt-get install uidmap; usermod --add-subuids"
    }
}

/// As an option's value.
pub(crate) fn accepted(user: &OrdinaryUser) -> String {
    missing(user).into_iter().collect::<Vec<_>>().join(",")
}

/// An instance of this user's that goes without what is missing.
pub(crate) fn start(user: &OrdinaryUser) -> Instance {
    Setup::default().user(user).flags(&["--accept-unavailable", &accepted(user)]).start()
}
