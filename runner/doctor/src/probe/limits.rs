//! Limits: what lies within works, what goes past is stopped where it should be.

use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use nix::libc;
use toolcell_types::doctor::{Side, Trial};
use toolcell_types::{ControlId, Limits};

use super::kernel::own_child;

const MIB: u64 = 1024 * 1024;

/// Takes memory and fills it, a MiB at a time, so that it is had and not only promised.
pub(super) fn hog(bytes: u64) -> u8 {
    let mut held = Vec::new();
    for _ in 0..bytes.div_ceil(MIB) {
        held.push(std::hint::black_box(vec![1_u8; 1 << 20]));
    }
    u8::from(held.is_empty())
}

/// Computes, in two threads, so that one gets its turn where others work too.
pub(super) fn spin(most: Duration) -> u8 {
    // A machine that has no thread for it is slower, and no less bounded.
    let beside = std::thread::Builder::new().spawn(move || turn(most));
    let code = turn(most);
    drop(beside.map(std::thread::JoinHandle::join));
    code
}

fn turn(most: Duration) -> u8 {
    let begin = Instant::now();
    let mut turns = 0_u64;
    while begin.elapsed() < most {
        turns = std::hint::black_box(turns.wrapping_add(1));
    }
    0
}

fn end(status: &io::Result<ExitStatus>) -> String {
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("exit {code}"),
            (None, Some(libc::SIGKILL)) => "killed (SIGKILL)".to_owned(),
            (None, Some(signal)) => format!("signal {signal}"),
            (None, None) => "no end".to_owned(),
        },
        Err(_) => super::word(status),
    }
}

/// Children that take a quarter of the memory, and twice of it.
pub(super) fn memory(limits: &Limits) -> Trial {
    let take = |bytes: u64| own_child(&["hog", &bytes.to_string()]).status();
    let (little, much) = (limits.memory_bytes / 4, limits.memory_bytes * 2);
    let (few, many) = (take(little), take(much));
    let is_killed = many.as_ref().is_ok_and(|status| status.signal() == Some(libc::SIGKILL));
    Trial {
        id: ControlId::CgroupMemory,
        allowed: Side::tried(
            format!("fill {} MiB in a child", little / MIB),
            end(&few),
            few.as_ref().is_ok_and(ExitStatus::success),
        ),
        forbidden: Side::tried(
            format!("fill {} MiB of {}", much / MIB, limits.memory_bytes / MIB),
            end(&many),
            is_killed,
        ),
    }
}

/// Threads until there are no more: they count as processes do.
pub(super) fn processes(limits: &Limits) -> Trial {
    let (first, count, error) = threads(limits.pids);
    let got = match &error {
        Some(error) => format!("{count} more, then {}", super::word::<()>(&Err(copy(error)))),
        None => format!("{count} more"),
    };
    let is_stopped = error.as_ref().and_then(io::Error::raw_os_error) == Some(libc::EAGAIN);
    let below = u64::try_from(count).is_ok_and(|count| count < limits.pids);
    Trial {
        id: ControlId::CgroupPids,
        allowed: Side::tried("start a thread", if first { "it runs" } else { "it does not" }, first),
        forbidden: Side::tried(format!("start more than {} processes in all", limits.pids), got, is_stopped && below),
    }
}

fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| io::ErrorKind::Other.into(), io::Error::from_raw_os_error)
}

/// Whether the first ran, how many there were, and what stopped the next; at most twice the limit.
fn threads(limit: u64) -> (bool, usize, Option<io::Error>) {
    let mut waiting = Vec::new();
    let (hello, heard) = channel();
    let mut stopped = None;
    for _ in 0..limit.saturating_mul(2) {
        let (release, wait) = channel::<()>();
        let hello = hello.clone();
        let started = std::thread::Builder::new().stack_size(64 << 10).spawn(move || {
            // Whoever listens may have heard enough; the end of the channel is the word to end.
            let _heard = hello.send(());
            let _released = wait.recv();
        });
        match started {
            Ok(thread) => waiting.push((release, thread)),
            Err(error) => {
                stopped = Some(error);
                break;
            }
        }
    }
    let first = heard.recv_timeout(Duration::from_secs(10)).is_ok();
    let count = waiting.len();
    for (release, thread) in waiting {
        drop(release);
        // A thread of ours does not panic; its end is waited for so that the next trial has its place.
        drop(thread.join());
    }
    (first, count, stopped)
}

/// Open files until there are no more.
pub(super) fn open_files(limits: &Limits) -> Trial {
    let mut open = Vec::new();
    let mut stopped: io::Result<()> = Ok(());
    for _ in 0..limits.open_files.saturating_mul(2) {
        match File::open("/dev/null") {
            Ok(file) => open.push(file),
            Err(error) => {
                stopped = Err(error);
                break;
            }
        }
    }
    let count = open.len();
    drop(open);
    let is_stopped = stopped.as_ref().err().and_then(io::Error::raw_os_error) == Some(libc::EMFILE);
    let below = u64::try_from(count).is_ok_and(|count| count <= limits.open_files);
    Trial {
        id: ControlId::Rlimits,
        allowed: Side::tried("open a file", format!("{count} are open"), count > 0),
        forbidden: Side::tried(
            format!("open more than {} files", limits.open_files),
            super::word(&stopped),
            is_stopped && below,
        ),
    }
}

/// Fills the scratch.
pub(super) fn scratch(limits: &Limits) -> Trial {
    const FILE: &str = "/tmp/.survey-fill";
    let block = [7_u8; 4096];
    let mut written = 0_u64;
    let filled = File::create(FILE).and_then(|mut file| {
        while written < limits.tmp_bytes * 2 {
            file.write_all(&block)?;
            written += 4096;
        }
        Ok(())
    });
    let removed = std::fs::remove_file(FILE);
    let is_full = filled.as_ref().err().and_then(io::Error::raw_os_error) == Some(libc::ENOSPC);
    Trial {
        id: ControlId::TmpQuota,
        allowed: Side::tried("write a block to /tmp", format!("{written} bytes"), written > 0 && removed.is_ok()),
        forbidden: Side::tried(
            format!("write more than {} KiB to /tmp", limits.tmp_bytes / 1024),
            super::word(&filled),
            is_full && written <= limits.tmp_bytes,
        ),
    }
}
