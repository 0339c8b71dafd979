//! The very list that the daemon has, in a process that is started for it.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, socket};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

use super::*;

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
    let directory = tempfile::tempdir().unwrap();
    if act != "without" {
        Calls::compile(CALLS).unwrap().leave_only().unwrap();
    }
    let refused = || assert_eq!(socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap_err(), Errno::NOSYS);
    match act.as_str() {
        "without" => drop(socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap()),
        "works" => {
            refused();
            works(directory.path());
        }
        "signal" => assert_eq!(rustix::process::test_kill_process(rustix::process::getpid()), Err(Errno::NOSYS)),
        "exec" => drop(spawn_something()),
        "mount" => drop(rustix::mount::unmount("/nowhere", rustix::mount::UnmountFlags::empty())),
        "privilege" => {
            let none = CapabilitySet::empty();
            let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
            set_capabilities(None, sets).unwrap_err();
        }
        other => panic!("{other}"),
    }
    // Without the rest of the test program, which looks at more than a part does.
    std::io::stdout().flush().unwrap();
}

#[expect(clippy::disallowed_methods, reason = "to see that it does not work")]
fn spawn_something() -> std::io::Result<ExitStatus> {
    std::process::Command::new("/bin/true").status()
}

/// What the daemon does all day: its threads, its ledger, files, timers, signals, sockets.
fn works(directory: &std::path::Path) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let hangup = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        let path = directory.to_owned();
        tokio::task::spawn_blocking(move || keeps(&path)).await.unwrap();
        drop(hangup);
    });
    let memory = toolcell_sys::sealed_memory("toolcell", b"argv").unwrap();
    drop(memory);
}

fn keeps(directory: &std::path::Path) {
    let blobs = toolcell_ledger::Blobs::open(directory).unwrap();
    let digest = blobs.put(b"kept").unwrap();
    assert_eq!(blobs.read(&digest, 4).unwrap(), b"kept");
    let path = directory.join("ledger.db");
    let ledger = rusqlite::Connection::open(&path).unwrap();
    ledger.pragma_update(None, "journal_mode", "wal").unwrap();
    ledger.execute_batch("CREATE TABLE t(x) STRICT").unwrap_err();
    ledger.execute_batch("CREATE TABLE t(x BLOB); BEGIN; INSERT INTO t VALUES (zeroblob(4000000)); COMMIT").unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    let length: u32 = reader.query_row("SELECT length(x) FROM t", [], |row| row.get(0)).unwrap();
    assert_eq!(length, 4_000_000);
    ledger.execute_batch("DELETE FROM t; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

#[test]
fn what_the_daemon_does_works_and_what_it_never_does_is_refused() {
    assert!(tell("without").success(), "the control");
    assert!(tell("works").success());
    assert!(tell("signal").success());
}

#[test]
fn what_only_an_intruder_does_ends_the_process() {
    for act in ["exec", "mount", "privilege"] {
        let ended = tell(act);
        assert_eq!(ended.signal(), Some(BAD_CALL), "{act}: {ended}");
    }
}

#[test]
fn plain_files_of_the_state_can_be_used_and_nothing_else() {
    let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (inside, outside) = (directory.path().to_owned(), other.path().join("x"));
    std::fs::write(&outside, "x").unwrap();
    // Of the thread that is restricted nothing else is asked.
    let restricted = std::thread::spawn(move || {
        toolcell_confinement::restrict(inside.to_str().unwrap(), rights()).unwrap();
        std::fs::write(inside.join("new-1"), "x").unwrap();
        std::fs::rename(inside.join("new-1"), inside.join("x")).unwrap();
        assert_eq!(std::fs::read(inside.join("x")).unwrap(), b"x");
        std::fs::remove_file(inside.join("x")).unwrap();
        let refused = [
            std::fs::read(&outside).map(drop),
            std::fs::write(&outside, "y"),
            std::fs::create_dir(inside.join("folder")),
            std::os::unix::fs::symlink("/", inside.join("link")),
            std::os::unix::net::UnixListener::bind(inside.join("socket")).map(drop),
            rustix::fs::mknodat(rustix::fs::CWD, inside.join("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
                .map_err(Into::into),
        ];
        for (number, result) in refused.into_iter().enumerate() {
            assert_eq!(result.unwrap_err().kind(), std::io::ErrorKind::PermissionDenied, "act {number}");
        }
    });
    restricted.join().unwrap();
    assert_eq!(std::fs::read(other.path().join("x")).unwrap(), b"x");
    std::fs::create_dir(directory.path().join("folder")).unwrap();
}
