//! For tests: a daemon around a launcher and a signer of cardboard, with a real ledger in a folder of its own.
//!
//! The launcher runs nothing. What a cell does is the last argument of its program: `print:TEXT`, `exit:CODE`, `hang`
//! (until killed), `flood` (prints until killed), `mount`, `nowhere`, `control`, `broken` (refused before they wait for
//! *go*), `early` (killed before it started), `messy` (exits with 0, and nobody saw its tree gone). After `begun:` the cell
//! is first said to be being set up, and for `begun:slow` it stays so until it is killed.

use std::collections::HashMap;
use std::io::{IoSlice, IoSliceMut, Read as _, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ed25519_dalek::{Signer as _, SigningKey};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use toolcell_ledger::{Sign, SignError};
use toolcell_policy::Policy;
use toolcell_receipts::statement::{BuildDigest, Executor};
use toolcell_receipts::{PublicKey, dsse};
use toolcell_types::doctor::HostFacts;
use toolcell_types::plan::{
    EndCause, EndReport, FromLauncher, Go, KillReason, LaunchFault, PACKET_MAX_BYTES, PlanUsage, ToLauncher,
};
use toolcell_types::signing::SignerStatus;
use toolcell_types::{CellId, ControlId, ControlReport, ControlState, Facts, Limits, Verification};

use crate::calls::Calls;
use crate::clock::{Clock, SystemClock};
use crate::daemon::{About, Daemon, Memory};
use crate::launcher::Launcher;
use crate::run::{self, State};

/// What the cardboard saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Cells that were asked for.
    pub(crate) launches: AtomicUsize,
    /// Limits of the last of them.
    pub(crate) limits: Mutex<Option<Limits>>,
    /// Kills that were asked for.
    pub(crate) kills: Mutex<Vec<KillReason>>,
}

/// A signer that remembers, and signs with a key that everybody knows.
#[derive(Debug, Clone)]
pub(crate) struct PaperSigner(pub(crate) Arc<Mutex<SignerStatus>>);

fn paper_key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

impl PaperSigner {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(SignerStatus {
            keyid: PublicKey::of(&paper_key()).id().hex(),
            public_pem: PublicKey::of(&paper_key()).to_pem().unwrap(),
            next_index: 0,
            last_leaf: [0; 32],
            last_group: Vec::new(),
        })))
    }
}

impl Sign for PaperSigner {
    fn status(&mut self) -> Result<SignerStatus, SignError> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn sign(&mut self, payloads: &[Vec<u8>], meanwhile: &mut dyn FnMut()) -> Result<Vec<[u8; 64]>, SignError> {
        meanwhile();
        let mut status = self.0.lock().unwrap();
        status.next_index += u64::try_from(payloads.len()).unwrap();
        status.last_leaf = dsse::leaf(payloads.last().unwrap()).0;
        let sign = |payload: &Vec<u8>| paper_key().sign(&dsse::pae(payload)).to_bytes();
        let signatures: Vec<[u8; 64]> = payloads.iter().map(sign).collect();
        status.last_group = payloads.iter().cloned().zip(signatures.iter().map(|one| one.to_vec())).collect();
        Ok(signatures)
    }
}

/// A folder for a state. The temporary directory may lie on a file system that the ledger does not take.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::create_dir(folder.path().join("blobs")).unwrap();
    folder
}

/// A daemon on that folder.
pub(crate) fn daemon(folder: &Path, signer: PaperSigner) -> (Daemon, Arc<Seen>) {
    let executor = Executor {
        instance: "cardboard".to_owned(),
        boot_id: "this boot".to_owned(),
        toolcell_version: "0".to_owned(),
        kernel_version: "0".to_owned(),
        build: BuildDigest::GnuBuildId("00".repeat(20)),
        experiment: None,
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let State { log, blobs } = run::open(folder, (signer, &executor, &clock), &mut |_, _| ()).unwrap();
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    let seen = Arc::new(Seen::default());
    let watched = Arc::clone(&seen);
    std::thread::spawn(move || {
        PaperLauncher {
            socket: theirs,
            seen: watched,
            armed: HashMap::new(),
            hanging: HashMap::new(),
            slow: Vec::new(),
        }
        .run()
    });
    let daemon = Daemon {
        policy: Policy::builtin().unwrap(),
        log,
        blobs,
        launcher: Launcher::connect(ours).unwrap(),
        calls: Arc::new(Calls::default()),
        memory: Memory::default(),
        clock,
        executor,
        about: About { version: "0".to_owned(), build: "0".to_owned(), idle_exit: None },
        operator_uids: vec![500],
        accept_unavailable: Vec::new(),
        unavailable: Vec::new(),
        is_root: true,
        surveys: crate::survey::Surveys::default(),
    };
    (daemon, seen)
}

struct PaperLauncher {
    socket: OwnedFd,
    seen: Arc<Seen>,
    /// Cells that wait for *go*, with what they are to do.
    armed: HashMap<CellId, (String, Vec<std::io::PipeWriter>)>,
    hanging: HashMap<CellId, Vec<std::io::PipeWriter>>,
    /// Cells that are never done with being set up.
    slow: Vec<CellId>,
}

impl PaperLauncher {
    fn run(mut self) {
        while let Some((bytes, mut descriptors)) = self.take() {
            match postcard::from_bytes(&bytes).unwrap() {
                ToLauncher::Arm { cell, prepare, .. } => {
                    self.seen.launches.fetch_add(1, Ordering::SeqCst);
                    *self.seen.limits.lock().unwrap() = Some(prepare.limits);
                    let mut go = Vec::new();
                    std::fs::File::from(descriptors.remove(0)).read_to_end(&mut go).unwrap();
                    let go: Go = postcard::from_bytes(&go).unwrap();
                    self.arm(cell, go.argv.last().unwrap());
                }
                ToLauncher::Look { cell } => {
                    let host = HostFacts { machine: "cardboard".to_owned(), ..HostFacts::default() };
                    self.send(&FromLauncher::Seen { cell, host }, &[]);
                }
                ToLauncher::Survey { cell, .. } => {
                    self.seen.launches.fetch_add(1, Ordering::SeqCst);
                    self.arm(cell, "broken");
                }
                ToLauncher::Go { cell } => {
                    if let Some((what, writers)) = self.armed.remove(&cell) {
                        self.act(cell, &what, writers);
                    }
                }
                ToLauncher::Kill { cell, reason } => {
                    self.seen.kills.lock().unwrap().push(reason);
                    let cause = match reason {
                        KillReason::Cancelled => EndCause::Cancelled,
                        KillReason::OutputLimit => EndCause::OutputLimit,
                    };
                    if self.armed.remove(&cell).is_some() || self.slow.contains(&cell) {
                        self.slow.retain(|one| *one != cell);
                        let fault = LaunchFault::Killed { reason };
                        self.send(&FromLauncher::Refused { cell, fault, tree_gone: true }, &[]);
                    } else if self.hanging.remove(&cell).is_some() {
                        self.end(cell, cause, true);
                    }
                }
            }
        }
    }

    fn arm(&mut self, cell: CellId, what: &str) {
        let text = |text: &str| text.to_owned();
        let what = match what.strip_prefix("begun:") {
            Some(rest) => {
                let requested = ControlId::ALL.map(|_id| Facts::new().with("asked", 1_u64));
                self.send(&FromLauncher::Begun { cell, requested: requested.to_vec() }, &[]);
                rest
            }
            None => what,
        };
        let fault = match what {
            "slow" => return self.slow.push(cell),
            "mount" => LaunchFault::Mount { index: 0, errno: 13, detail: text("not yours") },
            "nowhere" => LaunchFault::Mount { index: 0, errno: 2, detail: text("not there") },
            "control" => {
                let (detail, remedy) = (text("not seen"), text("use another kernel"));
                LaunchFault::Control { id: ControlId::Seccomp, detail, remedy }
            }
            "broken" => LaunchFault::Stage { stage: text("mounts"), errno: 12, detail: text("pivot_root") },
            _later => {
                let writers = self.pipes(cell);
                self.armed.insert(cell, (text(what), writers));
                return;
            }
        };
        self.send(&FromLauncher::Refused { cell, fault, tree_gone: true }, &[]);
    }

    fn act(&mut self, cell: CellId, what: &str, mut writers: Vec<std::io::PipeWriter>) {
        match what.split_once(':').unwrap_or((what, "")) {
            ("print", words) => {
                writers[0].write_all(words.as_bytes()).unwrap();
                drop(writers);
                self.end(cell, EndCause::Exited(0), true);
            }
            ("exit", code) => {
                drop(writers);
                self.end(cell, EndCause::Exited(code.parse().unwrap()), true);
            }
            ("messy", _) => {
                drop(writers);
                self.end(cell, EndCause::Exited(0), false);
            }
            ("flood", _) => {
                let mut stdout = writers[0].try_clone().unwrap();
                // Ends with the pipe.
                std::thread::spawn(move || while stdout.write_all(&[b'x'; 4096]).is_ok() {});
                self.hanging.insert(cell, writers);
            }
            ("hang", _) => {
                self.hanging.insert(cell, writers);
            }
            ("early", _) => {
                let fault = LaunchFault::Killed { reason: KillReason::Cancelled };
                self.send(&FromLauncher::Refused { cell, fault, tree_gone: true }, &[]);
            }
            other => panic!("the cardboard cannot do {other:?}"),
        }
    }

    fn pipes(&self, cell: CellId) -> Vec<std::io::PipeWriter> {
        let [(out, out_writer), (err, err_writer)] = [std::io::pipe().unwrap(), std::io::pipe().unwrap()];
        let controls = ControlId::ALL.map(|id| ControlReport {
            id,
            state: ControlState::Enforced,
            verification: Verification::ReadBack,
            required: true,
            requested: Facts::new().with("asked", 1_u64),
            observed: Facts::new(),
        });
        let armed = FromLauncher::Armed { cell, controls: controls.to_vec() };
        self.send(&armed, &[&out.into(), &err.into()]);
        vec![out_writer, err_writer]
    }

    fn end(&self, cell: CellId, cause: EndCause, tree_gone: bool) {
        let report = EndReport { cause, limits_hit: Vec::new(), usage: PlanUsage::default(), tree_gone };
        self.send(&FromLauncher::Ended { cell, report }, &[]);
    }

    fn send(&self, message: &FromLauncher, descriptors: &[&OwnedFd]) {
        let bytes = postcard::to_stdvec(message).unwrap();
        let fds: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(&fds)));
        // The test may be over.
        let _sent = sendmsg(&self.socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL);
    }

    fn take(&self) -> Option<(Vec<u8>, Vec<OwnedFd>)> {
        let mut buffer = vec![0; PACKET_MAX_BYTES];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut parts = [IoSliceMut::new(&mut buffer)];
        let received = recvmsg(&self.socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).ok()?;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        buffer.truncate(received.bytes);
        (received.bytes > 0).then_some((buffer, descriptors))
    }
}
