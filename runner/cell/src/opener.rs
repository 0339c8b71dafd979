//! Opening a caller's host paths in a child of their own.
//!
//! A file system that does not answer (a network or user-space one whose server hangs) stops whoever touches it. The
//! launcher must not be that process, as it owns everybody's clocks. So a child opens the paths under the caller's ids
//! and hands the trees over; one that takes too long is killed, and if it cannot even be killed, left. One that has
//! answered is asked again, one plan at a time: it holds nothing but its socket, and no cell is ever a copy of it.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use serde::{Deserialize, Serialize};
use toolcell_sys::Child;
use toolcell_types::plan::{CallerIds, LaunchFault, MOUNTS_MAX, PACKET_MAX_BYTES, PlanMount};
use zeroize::Zeroize as _;

use crate::clock::Timer;
use crate::hostpaths::{Denied, Deputy, HostPaths, Tree};
use crate::ids::CellIds;
use crate::readback::describe;
use crate::wiped::Wiped;

/// How long the paths of one plan may take to open, microseconds.
const PATIENCE_US: u64 = 5_000_000;
/// Largest answer of the child, in bytes.
const ANSWER_MAX_BYTES: usize = 4096;
/// Name of the child's process.
const NAME: &std::ffi::CStr = c"toolcell-opener";
/// Longest text of a failure, in characters.
const DETAIL_MAX: usize = 500;

/// What the child is asked, as it reads it.
#[derive(Debug, Deserialize)]
struct Wanted<'a> {
    /// Slot of the cell, which says for whose eyes the trees are.
    slot: u32,
    #[serde(borrow)]
    mounts: Vec<PlanMount<'a>>,
    caller: CallerIds,
}

/// The same as it is written: nothing of it is copied on the way.
#[derive(Debug, Serialize)]
struct Asked<'a> {
    slot: u32,
    mounts: &'a [PlanMount<'a>],
    caller: &'a CallerIds,
}

/// What every opener knows, the same for all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    pub(crate) denied: &'a Denied,
    pub(crate) deputy: Deputy,
    pub(crate) ids: CellIds,
}

/// What the child says; the trees come as descriptors, in order.
#[derive(Debug, Serialize, Deserialize)]
enum Opened {
    /// This one is next; what comes with no later word is the one that does not answer.
    Trying { index: u32 },
    /// Whether each is a directory.
    Trees(Vec<bool>),
    /// One cannot be had.
    Failed { index: u32, errno: i32, detail: String },
}

/// A child that opens.
#[derive(Debug)]
pub(crate) struct Opener {
    child: Child,
    socket: OwnedFd,
    timer: Timer,
    /// Whose paths they are.
    uid: u32,
    /// Which is being opened.
    trying: u32,
}

impl Opener {
    /// Starts the child.
    pub(crate) fn start(rules: Rules<'_>) -> Result<Self, LaunchFault> {
        let failed = |errno: Errno| stage(errno.raw_os_error(), "start opening the mounts");
        let (socket, inner) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).map_err(failed)?;
        let timer = Timer::new().map_err(failed)?;
        let launcher = rustix::process::getpid();
        let child = toolcell_sys::clone_process(0, None, || serve(&inner, rules, launcher))
            .map_err(|error| stage(error.errno(), "start opening the mounts"))?;
        Ok(Self { child, socket, timer, uid: 0, trying: 0 })
    }

    /// Asks for the mounts of a plan; only of one that has answered all it was asked.
    pub(crate) fn ask(&mut self, slot: u32, mounts: &[PlanMount<'_>], caller: &CallerIds) -> Result<(), LaunchFault> {
        let what = "ask for the mounts";
        // As large as it can get at once: a vector that grows leaves copies behind, and the next cell is a copy of this
        // memory.
        let encoded = postcard::to_extend(&Asked { slot, mounts, caller }, Vec::with_capacity(PACKET_MAX_BYTES));
        let bytes = Wiped::new(encoded.map_err(|_none| stage(nix::libc::EPROTO, what))?);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = rustix::net::send(&self.socket, &bytes, flags);
        drop(bytes);
        let _whole = sent.map_err(|errno| stage(errno.raw_os_error(), what))?;
        self.timer.start(PATIENCE_US).map_err(|errno| stage(errno.raw_os_error(), what))?;
        self.uid = caller.uid;
        self.trying = 0;
        Ok(())
    }

    /// What to poll: the answer, and the end of patience.
    pub(crate) fn sources(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.timer.as_fd()]
    }

    /// The child, to be killed and reaped, and whose paths it opens.
    pub(crate) fn into_child(self) -> (Child, u32) {
        (self.child, self.uid)
    }

    /// Takes in what was said; none if the answer is still to come.
    pub(crate) fn take(&mut self) -> Option<Result<Vec<Tree>, LaunchFault>> {
        loop {
            match self.receive() {
                Ok(None) => return None,
                Ok(Some((Opened::Trying { index }, _))) => self.trying = index,
                Ok(Some((Opened::Failed { index, errno, detail }, _))) => {
                    return Some(Err(LaunchFault::Mount { index, errno, detail }));
                }
                Ok(Some((Opened::Trees(kinds), trees))) if kinds.len() == trees.len() => {
                    let trees = trees.into_iter().zip(kinds);
                    return Some(Ok(trees.map(|(tree, is_dir)| Tree { tree, is_dir }).collect()));
                }
                Ok(Some((Opened::Trees(_), _))) => return Some(Err(stage(nix::libc::EPROTO, "hear of the mounts"))),
                Err(fault) => return Some(Err(fault)),
            }
        }
    }

    /// The fault of a plan whose paths did not answer in time.
    pub(crate) fn too_late(&self) -> LaunchFault {
        let detail = format!("its file system did not answer within {} s", PATIENCE_US / 1_000_000);
        LaunchFault::Mount { index: self.trying, errno: nix::libc::ETIMEDOUT, detail }
    }

    fn receive(&self) -> Result<Option<(Opened, Vec<OwnedFd>)>, LaunchFault> {
        let mut bytes = [0_u8; ANSWER_MAX_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOUNTS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let received = match recvmsg(&self.socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, flags) {
            Ok(received) => received,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(errno) => return Err(stage(errno.raw_os_error(), "hear of the mounts")),
        };
        let mut trees = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                trees.extend(rights);
            }
        }
        let said = postcard::from_bytes(bytes.get(..received.bytes).unwrap_or_default());
        bytes.zeroize();
        said.map(|opened| Some((opened, trees))).map_err(|_nonsense| stage(nix::libc::EPROTO, "hear of the mounts"))
    }
}

/// The fault of a plan of somebody of whose paths too many do not answer already.
pub(crate) fn too_many(stuck: usize) -> LaunchFault {
    let detail = format!("{stuck} earlier mounts still wait for a file system that does not answer");
    LaunchFault::Mount { index: 0, errno: nix::libc::EBUSY, detail }
}

/// Kills and reaps; `false` if it does not die now, to be asked again.
pub(crate) fn is_gone(child: &Child) -> bool {
    match pidfd_send_signal(&child.pidfd, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH) => {}
        Err(errno) => tracing::warn!(error = %errno, "cannot kill a child that opens mounts"),
    }
    let status = waitid(WaitId::PidFd(child.pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    matches!(status, Ok(Some(_)) | Err(Errno::CHILD))
}

fn stage(errno: i32, what: &str) -> LaunchFault {
    LaunchFault::Stage { stage: "mounts".to_owned(), errno, detail: what.to_owned() }
}

/// The child's whole life: one plan after the other, until the launcher closes the socket or is gone.
fn serve(socket: &OwnedFd, rules: Rules<'_>, launcher: rustix::process::Pid) -> i32 {
    if toolcell_sys::close_except(&[socket.as_raw_fd()]).is_err() || toolcell_sys::parent_death_signal().is_err() {
        return 1;
    }
    // For who looks at processes; that it has the launcher's name instead does no harm.
    if let Err(errno) = rustix::thread::set_name(NAME) {
        tracing::debug!(error = %errno, "no name for the opener of mounts");
    }
    let mut packet = vec![0_u8; PACKET_MAX_BYTES];
    loop {
        let got = rustix::io::retry_on_intr(|| rustix::net::recv(socket, &mut *packet, RecvFlags::empty()));
        let Ok((filled @ 1.., _)) = got else { return 0 };
        let Some(bytes) = packet.get_mut(..filled) else { return 1 };
        let is_answered = postcard::from_bytes(bytes).is_ok_and(|wanted| open(socket, &wanted, rules, launcher));
        bytes.zeroize();
        if !is_answered {
            return 1;
        }
    }
}

/// Opens one plan's mounts and answers; `false` if that is not possible.
fn open(socket: &OwnedFd, wanted: &Wanted<'_>, rules: Rules<'_>, launcher: rustix::process::Pid) -> bool {
    let paths = HostPaths::new(rules.deputy, rules.ids.of(wanted.slot)).tied_to(Some(launcher));
    let mut trees = Vec::with_capacity(wanted.mounts.len());
    let mut answer = Opened::Trees(Vec::new());
    for (index, mount) in (0_u32..).zip(&wanted.mounts) {
        let trying = postcard::to_allocvec(&Opened::Trying { index });
        let told = trying.map(|bytes| rustix::net::send(socket, &bytes, SendFlags::NOSIGNAL));
        if !matches!(told, Ok(Ok(_))) {
            return false;
        }
        match paths.open_for_caller(mount, &wanted.caller, rules.denied) {
            Ok(tree) => trees.push(tree),
            Err(error) => {
                let detail = describe(&error).chars().take(DETAIL_MAX).collect();
                answer = Opened::Failed { index, errno: error.errno(), detail };
                trees.clear();
                break;
            }
        }
    }
    if let Opened::Trees(kinds) = &mut answer {
        kinds.extend(trees.iter().map(|tree| tree.is_dir));
    }
    let Ok(bytes) = postcard::to_allocvec(&answer) else { return false };
    let borrowed: Vec<BorrowedFd<'_>> = trees.iter().map(|tree| tree.tree.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOUNTS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&borrowed)) {
        return false;
    }
    sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).is_ok()
}
