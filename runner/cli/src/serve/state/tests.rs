//! The state folder. Changing owners needs root, which the test command has; without it these tests say so and fail.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use super::*;

const fn owner(id: u32) -> Owner {
    Owner { uid: id, gid: id }
}

const OWNERS: Owners = Owners { daemon: owner(70_000), signer: owner(70_001) };

fn folder() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("above/state");
    (parent, path)
}

fn open(path: &Path) -> Result<State, ServeError> {
    State::open(path, Duration::ZERO)
}

fn refused(result: Result<(), ServeError>, why: &str) {
    match result {
        Err(ServeError::Unsafe { why: got, .. }) => assert_eq!(got, why),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_new_folder_is_made_with_its_parts_and_their_owners() {
    let (_parent, path) = folder();
    let state = open(&path).unwrap();
    state.instance().unwrap();
    state.hand_over(OWNERS).unwrap();
    let look = |name: &str| {
        let seen = path.join(name).symlink_metadata().unwrap();
        (seen.uid(), seen.gid(), seen.permissions().mode() & 0o7777)
    };
    assert_eq!(look(""), (0, 70_000, 0o1770));
    assert_eq!(look("signer"), (70_001, 70_001, 0o700));
    assert_eq!(look("blobs"), (70_000, 70_000, 0o700));
    assert_eq!(look("images"), (70_000, 70_000, 0o700));
    assert_eq!(look("instance"), (0, 0, 0o600));
    assert!(state.signer_folder().is_ok());
}

#[test]
fn the_instance_keeps_its_name() {
    let (_parent, path) = folder();
    let first = open(&path).unwrap().instance().unwrap();
    assert_eq!(first.len(), 8);
    assert_eq!(open(&path).unwrap().instance().unwrap(), first);
}

#[test]
fn a_damaged_instance_name_is_refused() {
    let (_parent, path) = folder();
    let state = open(&path).unwrap();
    state.instance().unwrap();
    std::fs::write(path.join("instance"), "../../x").unwrap();
    refused(state.instance().map(drop), "does not hold a name");
}

#[test]
fn what_is_inside_follows_to_new_ids() {
    let (_parent, path) = folder();
    let state = open(&path).unwrap();
    state.instance().unwrap();
    state.hand_over(OWNERS).unwrap();
    std::fs::write(path.join("ledger.db"), "x").unwrap();
    std::fs::create_dir(path.join("blobs/ab")).unwrap();
    std::fs::write(path.join("blobs/ab/cd"), "x").unwrap();
    std::fs::write(path.join("signer/key.pem"), "x").unwrap();
    state.hand_over(Owners { daemon: owner(80_000), signer: owner(80_001) }).unwrap();
    for name in ["ledger.db", "blobs/ab", "blobs/ab/cd"] {
        assert_eq!(path.join(name).metadata().unwrap().uid(), 80_000, "{name}");
    }
    assert_eq!(path.join("signer/key.pem").metadata().unwrap().uid(), 80_001);
    assert_eq!(path.metadata().unwrap().gid(), 80_000);
}

#[test]
fn a_planted_link_is_refused_and_its_target_keeps_its_owner() {
    let (parent, path) = folder();
    let state = open(&path).unwrap();
    state.instance().unwrap();
    let victim = parent.path().join("victim");
    std::fs::write(&victim, "x").unwrap();
    symlink(&victim, path.join("ledger.db")).unwrap();
    refused(state.hand_over(OWNERS), "is neither a file nor a folder");
    std::fs::remove_file(path.join("ledger.db")).unwrap();
    std::fs::hard_link(&victim, path.join("ledger.db")).unwrap();
    refused(state.hand_over(OWNERS), "has more than one name");
    assert_eq!(victim.metadata().unwrap().uid(), 0);
    std::fs::remove_file(path.join("ledger.db")).unwrap();
    assert!(state.hand_over(OWNERS).is_ok());
}

#[test]
fn a_folder_of_other_files_is_left_alone() {
    let (_parent, path) = folder();
    std::fs::create_dir_all(&path).unwrap();
    std::fs::write(path.join("letter.txt"), "x").unwrap();
    refused(open(&path).map(drop), "holds other files and no toolcell state");
    std::fs::remove_file(path.join("letter.txt")).unwrap();
    assert!(open(&path).is_ok());
}

#[test]
fn a_trial_s_folder_in_it_is_no_other_file_and_is_given_to_nobody() {
    let (_parent, path) = folder();
    let trial = path.join(".toolcell-doctor-0123456789abcdef");
    std::fs::create_dir_all(&trial).unwrap();
    let state = open(&path).unwrap();
    state.instance().unwrap();
    state.hand_over(OWNERS).unwrap();
    assert_eq!(trial.metadata().unwrap().uid(), 0);
}

#[test]
fn a_folder_of_somebody_else_is_refused() {
    let (_parent, path) = folder();
    std::fs::create_dir_all(&path).unwrap();
    std::os::unix::fs::chown(&path, Some(70_005), None).unwrap();
    refused(open(&path).map(drop), "does not belong to the user who starts the daemon");
}

#[test]
fn a_folder_in_use_is_refused_until_it_is_let_go() {
    let (_parent, path) = folder();
    let first = open(&path).unwrap();
    assert!(matches!(open(&path), Err(ServeError::InUse { .. })));
    drop(first);
    assert!(open(&path).is_ok());
}
