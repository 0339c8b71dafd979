//! A signer that remembers like the real one, payloads of one line, and a ledger in a directory of its own.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex};

use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::signing::{GROUP_MAX, SignerStatus};
use toolcell_types::{CallId, CallState, LogPosition, Sha256};

use crate::{
    Append, AttemptKey, BoxError, Committed, Header, Ledger, LedgerError, Opening, Payloads, Reader, Record, Sign,
    SignError, chain, location,
};

/// What outlives a crash of the ledger.
#[derive(Clone)]
pub(super) struct Signer(pub(super) Arc<Shared>);

pub(super) struct Shared {
    pub(super) memory: Mutex<Memory>,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Default)]
struct Gate {
    closed: bool,
    /// Somebody stands before it.
    waiting: bool,
}

#[derive(Clone)]
pub(super) struct Memory {
    pub(super) status: SignerStatus,
    pub(super) groups: Vec<usize>,
    /// Signs and remembers, but the answer is lost.
    pub(super) loses_answer: bool,
    /// The same for the group of that number, from 1.
    pub(super) loses_group: usize,
    /// Refuses.
    pub(super) refuses: bool,
}

impl Signer {
    pub(super) fn new() -> Self {
        let status = SignerStatus {
            keyid: Sha256([5; 32]).hex(),
            public_pem: "PEM".to_owned(),
            next_index: 0,
            last_leaf: [0; 32],
            last_group: Vec::new(),
        };
        let memory = Memory { status, groups: Vec::new(), loses_answer: false, loses_group: 0, refuses: false };
        Self(Arc::new(Shared { memory: Mutex::new(memory), gate: Mutex::default(), moved: Condvar::new() }))
    }

    pub(super) fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        self.0.memory.lock().unwrap()
    }

    /// A signer that remembers the same and goes its own way from here.
    pub(super) fn copy(&self) -> Self {
        let copy = Self::new();
        *copy.memory() = self.memory().clone();
        copy
    }

    /// Holds every signature back until it is opened again.
    pub(super) fn close(&self, closed: bool) {
        self.0.gate.lock().unwrap().closed = closed;
        self.0.moved.notify_all();
    }

    /// Waits until the writer stands before the closed gate with a group.
    pub(super) fn await_writer(&self) {
        let gate = self.0.gate.lock().unwrap();
        drop(self.0.moved.wait_while(gate, |gate| !gate.waiting).unwrap());
    }

    fn pass(&self) {
        let mut gate = self.0.gate.lock().unwrap();
        gate.waiting = gate.closed;
        self.0.moved.notify_all();
        let mut gate = self.0.moved.wait_while(gate, |gate| gate.closed).unwrap();
        gate.waiting = false;
    }
}

impl Sign for Signer {
    fn status(&mut self) -> Result<SignerStatus, SignError> {
        Ok(self.memory().status.clone())
    }

    fn sign(&mut self, payloads: &[Vec<u8>], meanwhile: &mut dyn FnMut()) -> Result<Vec<[u8; 64]>, SignError> {
        meanwhile();
        self.pass();
        let mut memory = self.memory();
        if memory.refuses {
            return Err(SignError::Refused { at: 0, detail: "because".to_owned() });
        }
        assert!((1..=GROUP_MAX).contains(&payloads.len()));
        memory.groups.push(payloads.len());
        memory.status.last_group.clear();
        let mut signatures = Vec::new();
        for payload in payloads {
            let text = std::str::from_utf8(payload).unwrap();
            let place = format!(" {} {}", memory.status.next_index, Sha256(memory.status.last_leaf).hex());
            assert!(text.ends_with(&place), "{text} does not stand at{place}");
            let leaf = chain::leaf(payload).0;
            let signature = [leaf, leaf].concat();
            memory.status.next_index += 1;
            memory.status.last_leaf = leaf;
            memory.status.last_group.push((payload.clone(), signature.clone()));
            signatures.push(signature.try_into().unwrap());
        }
        if memory.loses_answer || memory.groups.len() == memory.loses_group {
            let source = std::io::ErrorKind::BrokenPipe.into();
            return Err(SignError::Unreachable { source });
        }
        Ok(signatures)
    }
}

/// Payloads are lines: what, tenant, key, attempt, state, and the place.
pub(super) struct Lines {
    /// Blobs are lost: no answer can be made.
    pub(super) loses_blobs: bool,
}

fn line(words: &str, at: &LogPosition) -> Vec<u8> {
    format!("{words} {} {}", at.index, at.previous.hex()).into_bytes()
}

pub(super) fn header() -> Header {
    Header {
        actor: "uid:0".to_owned(),
        role: "operator".to_owned(),
        wall_us: 1_796_042_467_101_877,
        boot_us: Some(1),
        boot_id: "boot".to_owned(),
    }
}

impl Payloads for Lines {
    fn genesis(&mut self, position: &LogPosition) -> Result<(Header, Vec<u8>), BoxError> {
        assert_eq!(position.genesis, None);
        Ok((header(), line("genesis - - 0 -", position)))
    }

    fn verifies(&self, payload: &[u8], signature: &[u8; 64]) -> bool {
        let leaf = chain::leaf(payload).0;
        *signature == *[leaf, leaf].concat()
    }

    fn record(&self, payload: &[u8]) -> Result<(Header, Record), BoxError> {
        let words: Vec<&str> = std::str::from_utf8(payload)?.split(' ').collect();
        let key = AttemptKey { tenant: words[1].to_owned(), key: words[2].to_owned(), attempt: words[3].parse()? };
        let record = match words[0] {
            "genesis" => Record::Genesis,
            "intent" => intent_record(key, None),
            _ => Record::Outcome { key, state: CallState::parse(words[4]).ok_or("no state")? },
        };
        Ok((Header { boot_us: None, ..header() }, record))
    }

    fn answer(&mut self, outcome: &Committed) -> Result<Vec<u8>, BoxError> {
        if self.loses_blobs { Err("the blob is gone".into()) } else { Ok(answer_of(outcome)) }
    }
}

pub(super) fn answer_of(outcome: &Committed) -> Vec<u8> {
    [b"answer to ".as_slice(), &outcome.payload, &outcome.signature].concat()
}

pub(super) fn key(name: &str, attempt: u32) -> AttemptKey {
    AttemptKey { tenant: "tenant".to_owned(), key: name.to_owned(), attempt }
}

fn intent_record(key: AttemptKey, identity: Option<Sha256>) -> Record {
    let call_id = CallId::new(&key.key).unwrap();
    let request = digest(&key.key);
    Record::Intent { key, call_id, tool: "python".to_owned(), request, identity, submitter: "uid:0".to_owned() }
}

pub(super) fn digest(text: &str) -> Sha256 {
    Sha256(Hasher::digest(text).into())
}

/// A ledger in a directory of its own, and the signer that outlives it.
pub(super) struct Bench {
    directory: tempfile::TempDir,
    pub(super) signer: Signer,
    pub(super) lines: Lines,
    /// What was heard of the checks so far.
    pub(super) progress: Vec<(u64, u64)>,
}

impl Bench {
    pub(super) fn new() -> Self {
        // A container's own file system is an overlay, which the ledger rightly refuses.
        let usual = std::env::temp_dir();
        let place = if location::check_file_system(&usual).is_ok() { usual } else { PathBuf::from("/dev/shm") };
        let directory = tempfile::tempdir_in(place).unwrap();
        Self { directory, signer: Signer::new(), lines: Lines { loses_blobs: false }, progress: Vec::new() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("ledger.db")
    }

    pub(super) fn open(&mut self) -> Result<Ledger, LedgerError> {
        let path = self.path();
        let (signer, progress) = (Box::new(self.signer.clone()), &mut |checked, of| self.progress.push((checked, of)));
        Ledger::open(Opening { path: &path, signer, payloads: &mut self.lines, progress })
    }

    pub(super) fn reader(&self) -> Reader {
        Reader::open(&self.path()).unwrap()
    }

    /// What a crash right now would leave: the files as they are.
    pub(super) fn crashed(&self) -> Self {
        let copy = Self { signer: self.signer.copy(), ..Self::new() };
        for suffix in ["", "-wal"] {
            let name = format!("ledger.db{suffix}");
            let to = copy.directory.path().join(&name);
            std::fs::copy(self.directory.path().join(&name), &to).unwrap();
        }
        copy
    }

    /// Does to the file what only its owner can, and leaves no other trace: the guards are back in their place.
    pub(super) fn tamper(&self, sql: &str) {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let guards: Vec<(String, String)> = connection
            .prepare("SELECT name,sql FROM sqlite_schema WHERE type='trigger'")
            .unwrap()
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let rules = "PRAGMA foreign_keys=0; PRAGMA ignore_check_constraints=1;";
        let (off, on): (String, String) =
            guards.iter().map(|(name, sql)| (format!("DROP TRIGGER {name};"), format!("{sql};"))).unzip();
        connection.execute_batch(&format!("{rules}{off}{sql};{on}")).unwrap();
    }

    /// The first bad index of what must not open.
    pub(super) fn index_of(&mut self) -> u64 {
        match self.open() {
            Err(LedgerError::Invalid { index, .. }) => index,
            other => panic!("expected an invalid ledger, got {other:?}"),
        }
    }
}

pub(super) type Waiting = Receiver<Result<Committed, LedgerError>>;

/// Appends and gives a handle to wait on.
pub(super) fn send(ledger: &Ledger, record: Record, payload: crate::PayloadFn, answers: bool) -> Waiting {
    let (heard, waiting) = channel();
    let answer: Option<crate::AnswerFn> = if answers {
        Some(Box::new(|_payload| Ok(Box::new(|outcome: &Committed| Ok(answer_of(outcome))))))
    } else {
        None
    };
    ledger.append(Append {
        header: header(),
        record,
        payload,
        answer,
        done: Box::new(move |result| heard.send(result).unwrap()),
    });
    waiting
}

pub(super) fn send_intent(ledger: &Ledger, key: &AttemptKey) -> Waiting {
    let words = format!("intent {} {} {} -", key.tenant, key.key, key.attempt);
    let record = intent_record(key.clone(), Some(digest("identity")));
    send(ledger, record, Box::new(move |at| Ok(line(&words, at))), false)
}

pub(super) fn send_outcome(ledger: &Ledger, key: &AttemptKey, state: CallState) -> Waiting {
    let words = format!("outcome {} {} {} {}", key.tenant, key.key, key.attempt, state.as_str());
    let record = Record::Outcome { key: key.clone(), state };
    send(ledger, record, Box::new(move |at| Ok(line(&words, at))), true)
}

pub(super) fn intent(ledger: &Ledger, name: &str, attempt: u32) -> Result<Committed, LedgerError> {
    send_intent(ledger, &key(name, attempt)).recv().unwrap()
}

pub(super) fn outcome(ledger: &Ledger, name: &str, state: CallState) -> Result<Committed, LedgerError> {
    send_outcome(ledger, &key(name, 1), state).recv().unwrap()
}

pub(super) fn mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}
