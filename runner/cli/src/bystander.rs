//! `toolcell bystander`: what stands outside of a cell for a probe, started by `ablate` and ended with its standard input.
//!
//! A *victim* has a secret in its environment and in its memory, sleeps, and counts SIGUSR1. Others hold System V objects
//! or a POSIX queue with the secret. What it has it says on standard output, `name value` a line, and `ready` at last.
//! Guarantees: all of it goes when standard input ends, so also when whoever started this is killed.

use std::ffi::CString;
use std::io::{self, BufRead as _};

use anyhow::Context as _;
use nix::mqueue::{MQ_OFlag, MqAttr, mq_close, mq_open, mq_send, mq_unlink};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::Mode;
use toolcell_lab::ablation::Instrument;
use toolcell_lab::ablation::outside::{SECRET_VARIABLE, SIGNALS};
use toolcell_sys::{MessageQueue, Semaphore, SharedSegment};

use crate::args::BystanderArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render;

/// Holds what it is told to hold until standard input ends.
pub(crate) fn bystander(args: &BystanderArgs) -> Result<Exit, Failure> {
    let fault = |error: anyhow::Error| Failure::plain(Exit::Failed, error);
    let secret = std::env::var(SECRET_VARIABLE).context("it has no secret").map_err(fault)?;
    // Rights are those that are asked for, whoever starts this.
    rustix::process::umask(rustix::fs::Mode::empty());
    let signals = count_signals().context("cannot count signals").map_err(fault)?;
    let mut held = Vec::new();
    for what in &args.what {
        let (line, object) = hold(*what, &secret).map_err(fault)?;
        held.push(object);
        render::out(line.as_bytes())?;
    }
    render::out(b"ready\n")?;
    let mut seen: u64 = 0;
    for line in io::stdin().lock().lines() {
        let line = line.context("cannot read what it is asked").map_err(fault)?;
        if line == SIGNALS {
            while matches!(signals.read_signal(), Ok(Some(_))) {
                seen = seen.saturating_add(1);
            }
            render::out(format!("{seen}\n").as_bytes())?;
        }
    }
    drop(held);
    Ok(Exit::Ok)
}

/// What is held: it goes when this is dropped.
#[derive(Debug)]
#[expect(dead_code, reason = "these are held, not used")]
enum Held {
    Memory(String),
    Segment(SharedSegment),
    Queue(MessageQueue),
    Semaphore(Semaphore),
    PosixQueue(PosixQueue),
}

fn hold(what: Instrument, secret: &str) -> anyhow::Result<(String, Held)> {
    let text = secret.as_bytes();
    let cannot = || format!("cannot make what {what} stands for");
    let (value, held) = match what {
        Instrument::Victim => {
            let copy = secret.to_owned();
            (format!("{:#x}", copy.as_ptr().addr()), Held::Memory(copy))
        }
        Instrument::Shm => {
            let segment = SharedSegment::make(text).with_context(cannot)?;
            (segment.id().to_string(), Held::Segment(segment))
        }
        Instrument::Msg => {
            let queue = MessageQueue::make(0).with_context(cannot)?;
            queue.send(text).with_context(cannot)?;
            (queue.id().to_string(), Held::Queue(queue))
        }
        Instrument::Sem => {
            let semaphore = Semaphore::make().with_context(cannot)?;
            (semaphore.id().to_string(), Held::Semaphore(semaphore))
        }
        Instrument::Mqueue => {
            let queue = PosixQueue::make(text).with_context(cannot)?;
            (queue.name.to_string_lossy().into_owned(), Held::PosixQueue(queue))
        }
        Instrument::Tcp
        | Instrument::Udp
        | Instrument::Abstract
        | Instrument::Socket
        | Instrument::OpenFile
        | Instrument::OwnFile
        | Instrument::Target
        | Instrument::OwnTarget
        | Instrument::Hostname => anyhow::bail!("{what} needs no process"),
    };
    let name = if what == Instrument::Victim { "address" } else { what.as_str() };
    Ok((format!("{name} {value}\n"), held))
}

/// SIGUSR1 waits until it is counted, and ends nobody.
fn count_signals() -> nix::Result<SignalFd> {
    let mut counted = SigSet::empty();
    counted.add(Signal::SIGUSR1);
    counted.thread_block()?;
    SignalFd::with_flags(&counted, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
}

/// A POSIX queue with one message, which goes with this (mq_overview(7)).
#[derive(Debug)]
struct PosixQueue {
    name: CString,
}

impl PosixQueue {
    fn make(text: &[u8]) -> anyhow::Result<Self> {
        let mut random = [0_u8; 16];
        getrandom::fill(&mut random).map_err(io::Error::other)?;
        let name = CString::new(format!("/toolcell-outside-{:032x}", u128::from_be_bytes(random)))?;
        let (flags, mode) = (MQ_OFlag::O_CREAT | MQ_OFlag::O_EXCL | MQ_OFlag::O_RDWR, Mode::from_bits_truncate(0o666));
        let opened = mq_open(name.as_c_str(), flags, mode, Some(&MqAttr::new(0, 1, 128, 0)))?;
        let queue = Self { name };
        mq_send(&opened, text, 0)?;
        mq_close(opened)?;
        Ok(queue)
    }
}

impl Drop for PosixQueue {
    fn drop(&mut self) {
        // ENOENT: somebody else has removed it.
        let _gone_already = mq_unlink(self.name.as_c_str());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_posix_queue_goes_with_what_stands_for_it() {
        let queue = PosixQueue::make(b"a text").unwrap();
        let name = queue.name.clone();
        let opened = mq_open(name.as_c_str(), MQ_OFlag::O_RDONLY, Mode::empty(), None).unwrap();
        let (mut text, mut priority) = ([0_u8; 128], 0);
        assert_eq!(nix::mqueue::mq_receive(&opened, &mut text, &mut priority), Ok(6));
        assert_eq!(&text[..6], b"a text");
        mq_close(opened).unwrap();
        drop(queue);
        assert!(mq_open(name.as_c_str(), MQ_OFlag::O_RDONLY, Mode::empty(), None).is_err());
    }

    #[test]
    fn a_victim_says_where_its_secret_lies_and_what_needs_no_process_is_refused() {
        let (line, _held) = hold(Instrument::Victim, "a secret").unwrap();
        assert!(line.starts_with("address 0x") && line.ends_with('\n'), "{line}");
        assert!(hold(Instrument::Tcp, "a secret").is_err());
    }
}
