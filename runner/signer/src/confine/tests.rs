//! The very list that the signer has, in a process that is started for it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use super::*;
use crate::folder::Folder;
use crate::folder::tests::private_directory;
use crate::key::ReceiptKey;
use crate::memory::{Memory, Remembered};

/// What the child is to do.
const TOLD: &str = "TOOLCELL_CONFINED_ACT";
/// SIGSYS.
const BAD_CALL: i32 = 31;

/// Runs this test program once more, in which `in_a_child` does what it is told.
#[expect(clippy::disallowed_methods, reason = "a process of its own for what can end it")]
fn tell(act: &str) -> ExitStatus {
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "confine::tests::in_a_child", "--nocapture"]).env(TOLD, act);
    child.stdout(std::process::Stdio::null()).status().unwrap()
}

/// Does nothing unless it is told to.
#[test]
fn in_a_child() {
    let Ok(act) = std::env::var(TOLD) else { return };
    let directory = private_directory();
    if act != "without" {
        Calls::compile(CALLS).unwrap().leave_only().unwrap();
    }
    match act.as_str() {
        "without" => std::thread::spawn(|| ()).join().unwrap(),
        "works" => works(directory.path()),
        "thread" => std::thread::spawn(|| ()).join().unwrap(),
        "open" => drop(
            rustix::net::socketpair(
                rustix::net::AddressFamily::UNIX,
                rustix::net::SocketType::STREAM,
                rustix::net::SocketFlags::CLOEXEC,
                None,
            )
            .unwrap_err(),
        ),
        other => panic!("{other}"),
    }
}

/// The first start, a group that is signed, and a later start.
fn works(directory: &std::path::Path) {
    let folder = || Folder::new(std::fs::File::open(directory).unwrap().into()).unwrap();
    let key = ReceiptKey::generate().unwrap();
    let mut memory = Memory::create(&folder(), Remembered::nothing(key.id())).unwrap();
    key.save(&folder()).unwrap();
    key.publish(&folder()).unwrap();
    assert_eq!(key.sign(b"payload").len(), 64);
    memory.remember(Remembered::nothing(key.id())).unwrap();
    assert_eq!(ReceiptKey::load(&folder()).unwrap().unwrap().id(), key.id());
    assert!(Memory::load(&folder()).unwrap().is_some());
}

#[test]
fn what_the_signer_does_works_and_what_it_never_does_is_refused() {
    assert!(tell("without").success(), "the control");
    assert!(tell("open").success());
    let ended = tell("thread");
    assert_eq!(ended.signal(), Some(BAD_CALL), "it has one thread: {ended}");
}

#[test]
fn the_signer_works_under_its_list() {
    assert!(tell("works").success());
}
