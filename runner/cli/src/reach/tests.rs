//! When a running daemon will do.

use super::*;

fn wanted() -> Wanted {
    Wanted {
        build: "gnu-build-id:aa".to_owned(),
        policy_folder: None,
        checked_folder: None,
        policy: digest(b"x"),
        accept: Vec::new(),
        is_explicit: false,
    }
}

fn health() -> Health {
    Health {
        status: "ok".to_owned(),
        version: "0".to_owned(),
        build: "gnu-build-id:aa".to_owned(),
        instance: "00000000".to_owned(),
        live_calls: 0,
        ends_when_idle: true,
        ablation: false,
        accept_unavailable: Vec::new(),
        policy: digest(b"x"),
    }
}

fn misfit(wanted: &Wanted, health: &Health) -> Option<(&'static str, bool)> {
    wanted.differs_from(health).map(|misfit| (misfit.what, misfit.is_ours))
}

#[test]
fn a_daemon_as_it_is_wanted_will_do() {
    assert_eq!(misfit(&wanted(), &health()), None);
}

#[test]
fn a_daemon_of_our_own_must_be_just_as_wanted() {
    let other = Health { build: "gnu-build-id:bb".to_owned(), ..health() };
    assert_eq!(misfit(&wanted(), &other), Some(("is of another build", true)));
    let other = Health { policy: digest(b"y"), ..health() };
    assert_eq!(misfit(&wanted(), &other), Some(("has another policy", true)));
    let weaker = Health { accept_unavailable: vec![ControlId::Seccomp], ..health() };
    assert_eq!(misfit(&wanted(), &weaker), Some(("accepts other controls as unavailable", true)));
    let asked = Wanted { accept: vec![ControlId::Seccomp], is_explicit: true, ..wanted() };
    assert_eq!(misfit(&asked, &weaker), None);
}

#[test]
fn a_daemon_that_an_operator_serves_is_as_he_wants_it() {
    let served = Health { ends_when_idle: false, policy: digest(b"y"), ..health() };
    assert_eq!(misfit(&wanted(), &served), None);
    let asked = Wanted { is_explicit: true, ..wanted() };
    assert_eq!(misfit(&asked, &served), Some(("has another policy", false)));
    let other = Health { build: "sha256:bb".to_owned(), ..served };
    assert_eq!(misfit(&wanted(), &other), Some(("is of another build", false)));
}

#[test]
fn the_built_in_policy_has_the_digest_that_the_daemon_tells() {
    assert_eq!(digest(Policy::BUILTIN_TOOLS.as_bytes()), Policy::builtin().unwrap().digest());
}
