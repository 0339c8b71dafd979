use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::thread::JoinHandle;

use serde_json::{Value, json};
use toolcell_receipts::statement::{BuildDigest, Definition, Executor, Genesis, Intent, Peer, Submitter};
use toolcell_receipts::{PublicKey, UnixMicros, verify};
use toolcell_types::signing::SignerStatus;
use toolcell_types::{CallId, ImageRef, Limits, LogPosition, Sha256};

use super::*;
use crate::folder::tests::private_directory;

/// A signer on a thread, and the daemon's end of its socket.
struct Signer {
    socket: UnixStream,
    thread: JoinHandle<Result<(), SignerError>>,
}

impl Signer {
    fn start(directory: &tempfile::TempDir) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let state = OwnedFd::from(File::open(directory.path()).unwrap());
        let thread = std::thread::spawn(move || run(SignerConfig { state, socket: theirs.into(), is_ablation: false }));
        Self { socket: ours, thread }
    }

    fn ask(&mut self, request: &ToSigner) -> FromSigner {
        let body = postcard::to_stdvec(request).unwrap();
        self.send_bytes(&[&u32::try_from(body.len()).unwrap().to_le_bytes(), body.as_slice()].concat());
        let message = receive(&mut self.socket).unwrap().expect("the signer ended");
        postcard::from_bytes(&message).unwrap()
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).unwrap();
    }

    fn status(&mut self) -> SignerStatus {
        match self.ask(&ToSigner::Status) {
            FromSigner::Status(status) => status,
            other @ (FromSigner::Signed { .. } | FromSigner::Refused { .. }) => panic!("{other:?}"),
        }
    }

    fn sign(&mut self, payloads: &[&[u8]]) -> Result<Vec<Vec<u8>>, (u32, String)> {
        match self.ask(&ToSigner::Sign { payloads: payloads.iter().map(|payload| payload.to_vec()).collect() }) {
            FromSigner::Signed { signatures } => Ok(signatures),
            FromSigner::Refused { at, detail } => Err((at, detail)),
            FromSigner::Status(status) => panic!("{status:?}"),
        }
    }

    /// Closes the socket and waits for the end.
    fn end(self) -> Result<(), SignerError> {
        drop(self.socket);
        self.thread.join().unwrap()
    }

    /// The error of a signer that does not start.
    fn failure(self) -> SignerError {
        self.end().unwrap_err()
    }
}

fn executor() -> Executor {
    Executor {
        instance: "7f3a0b12".to_owned(),
        boot_id: "boot".to_owned(),
        toolcell_version: "0.1.0".to_owned(),
        kernel_version: "6.18.44".to_owned(),
        experiment: None,
        build: BuildDigest::GnuBuildId("00112233445566778899".to_owned()),
    }
}

fn definition(name: &str) -> Definition {
    Definition {
        request: Sha256([1; 32]),
        call_id: CallId::new(name).unwrap(),
        attempt: 1,
        tool: "python".to_owned(),
        tool_digest: Sha256([2; 32]),
        limits: Limits::default(),
        mounts: Vec::new(),
        labels: BTreeMap::new(),
        effect_channels: Vec::new(),
        policy: Sha256([3; 32]),
        image: ImageRef { name: "host".to_owned(), digest: None, pinned: false },
        submitter: Submitter {
            id: "uid:0".to_owned(),
            role: "operator".to_owned(),
            tenant: "uid:0".to_owned(),
            peer: Peer { uid: 0, gid: 0, pid: 1 },
        },
        ablated: toolcell_types::ControlSet::EMPTY,
        executor: executor(),
        invocation_id: "0198f0c2-7a51-7c3e-9d10-5b7a2f4e8c11".to_owned(),
        submitted_on: UnixMicros(1_796_042_467_101_877),
    }
}

/// The place after what the signer remembers.
fn place(status: &SignerStatus, genesis: Option<&[u8]>) -> LogPosition {
    LogPosition {
        origin: LogPosition::origin_of(&Sha256::from_hex(&status.keyid).unwrap()),
        index: status.next_index,
        previous: Sha256(status.last_leaf),
        genesis: genesis.map(dsse::leaf),
    }
}

fn genesis(status: &SignerStatus) -> Vec<u8> {
    let keyid = Sha256::from_hex(&status.keyid).unwrap();
    let genesis = Genesis { keyid, executor: executor(), made_on: UnixMicros(1) };
    genesis.draft().unwrap().finish(&place(status, None)).unwrap()
}

fn intent(name: &str, place: &LogPosition) -> Vec<u8> {
    Intent { definition: definition(name), planned: Vec::new() }.draft().unwrap().finish(place).unwrap()
}

/// A signer that has signed its genesis, which is returned.
fn begun(directory: &tempfile::TempDir) -> (Signer, Vec<u8>) {
    let mut signer = Signer::start(directory);
    let first = genesis(&signer.status());
    signer.sign(&[&first]).unwrap();
    (signer, first)
}

fn path(directory: &tempfile::TempDir, name: &str) -> PathBuf {
    directory.path().join(name)
}

fn chmod(path: &PathBuf, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_first_start_makes_a_key_that_nobody_else_can_read() {
    let directory = private_directory();
    let mut signer = Signer::start(&directory);
    let status = signer.status();
    assert_eq!((status.next_index, status.last_leaf, status.last_group.len()), (0, [0; 32], 0));
    for (name, mode) in [("key.pem", 0o600), ("memory.0", 0o600), ("memory.1", 0o600), ("public.pem", 0o644)] {
        assert_eq!(std::fs::metadata(path(&directory, name)).unwrap().mode() & 0o777, mode, "{name}");
    }
    let public = std::fs::read(path(&directory, "public.pem")).unwrap();
    assert_eq!(public, status.public_pem.as_bytes());
    assert_eq!(PublicKey::from_pem(&public).unwrap().id().hex(), status.keyid);
    let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 4, "{left:?}");
    signer.end().unwrap();
}

#[test]
fn what_is_signed_verifies_and_is_remembered_as_a_group() {
    let directory = private_directory();
    let (mut signer, first) = begun(&directory);
    let status = signer.status();
    let second = intent("a", &place(&status, Some(&first)));
    let after = LogPosition { index: 2, previous: dsse::leaf(&second), ..place(&status, Some(&first)) };
    let third = intent("b", &after);
    let signatures = signer.sign(&[&second, &third]).unwrap();
    let keyid = Sha256::from_hex(&status.keyid).unwrap();
    for (payload, signature) in [&second, &third].into_iter().zip(&signatures) {
        let envelope = dsse::envelope(payload, &signature.as_slice().try_into().unwrap(), &keyid);
        let bytes = serde_json::to_vec(&envelope).unwrap();
        let report = verify::verify(&bytes, status.public_pem.as_bytes(), None);
        assert!(report.holds(), "{report}");
    }
    let remembered = signer.status();
    assert_eq!((remembered.next_index, remembered.last_leaf), (3, dsse::leaf(&third).0));
    assert_eq!(remembered.last_group, [(second, signatures[0].clone()), (third, signatures[1].clone())]);
}

#[test]
fn a_restart_keeps_key_and_memory_and_still_signs_no_index_twice() {
    let directory = private_directory();
    let (mut signer, first) = begun(&directory);
    let at = place(&signer.status(), Some(&first));
    let second = intent("a", &at);
    signer.sign(&[&second]).unwrap();
    let before = signer.status();
    signer.end().unwrap();
    let mut signer = Signer::start(&directory);
    assert_eq!(signer.status(), before);
    let anew = SignerStatus { next_index: 0, last_leaf: [0; 32], ..before.clone() };
    for fork in [intent("b", &at), second.clone(), first.clone(), genesis(&anew)] {
        assert!(signer.sign(&[&fork]).is_err());
    }
    assert_eq!(signer.status(), before);
    let third = intent("b", &place(&before, Some(&first)));
    signer.sign(&[&third]).unwrap();
}

#[test]
fn only_what_follows_on_the_last_entry_is_signed() {
    let directory = private_directory();
    let (mut signer, first) = begun(&directory);
    let status = signer.status();
    let good = place(&status, Some(&first));
    let zero = Sha256([0; 32]);
    let places = [
        ("index", LogPosition { index: 2, ..good.clone() }),
        ("previous", LogPosition { previous: zero, ..good.clone() }),
        ("genesis", LogPosition { genesis: Some(zero), ..good.clone() }),
        ("origin", LogPosition { origin: "toolcell/0000000000000000".to_owned(), ..good.clone() }),
    ];
    for (member, at) in places {
        let (_, detail) = signer.sign(&[&intent("a", &at)]).unwrap_err();
        assert!(detail.starts_with(&format!("log.{member} is")), "{detail}");
    }
    assert_eq!(signer.status(), status);
    signer.sign(&[&intent("a", &good)]).unwrap();
}

#[test]
fn a_payload_that_is_not_of_this_kind_of_instance_is_refused() {
    let directory = private_directory();
    let (mut signer, first) = begun(&directory);
    let status = signer.status();
    let good = intent("a", &place(&status, Some(&first)));
    let value: Value = serde_json::from_slice(&good).unwrap();
    let with = |pointer: &str, to: Value| {
        let mut changed = value.clone();
        *changed.pointer_mut(pointer).unwrap() = to;
        changed.to_string().into_bytes()
    };
    let text = String::from_utf8(good.clone()).unwrap();
    let bad = [
        ("mode", with("/predicate/controls/mode", json!("ablation"))),
        ("executor", with("/predicate/runDetails/executor/id", json!("urn:toolcell:executor:ablation:v1"))),
        ("ablation mode", {
            let mut changed = value.clone();
            *changed.pointer_mut("/predicate/controls/mode").unwrap() = json!("ablation");
            *changed.pointer_mut("/predicate/runDetails/executor/id").unwrap() =
                json!("urn:toolcell:executor:ablation:v1");
            changed.pointer_mut("/predicate/controls").unwrap()["ablation"] =
                json!({"experiment": "e", "ablated": ["seccomp"]});
            changed.to_string().into_bytes()
        }),
        ("predicate", with("/predicateType", json!("https://slsa.dev/provenance/v1"))),
        ("genesis again", with("/predicateType", json!("urn:toolcell:attestation:executor-event:v1"))),
        ("statement", with("/_type", json!("https://in-toto.io/Statement/v0.1"))),
        ("enrolled", with("/predicate/enrolled", json!(true))),
        ("subject", with("/subject", json!([]))),
        ("index as text", with("/predicate/log/index", json!("1"))),
        ("duplicate", text.replacen('{', "{\"_type\":\"x\",", 1).into_bytes()),
        ("no JSON", b"hello".to_vec()),
        ("empty", Vec::new()),
        ("too long", [text.as_bytes(), vec![b' '; 60_001].as_slice()].concat()),
    ];
    for (what, payload) in bad {
        assert!(signer.sign(&[&payload]).is_err(), "{what}");
    }
    assert_eq!(signer.status(), status);
    signer.sign(&[&good]).unwrap();
}

#[test]
fn the_first_entry_is_a_genesis_of_this_key_and_nothing_else() {
    let directory = private_directory();
    let mut signer = Signer::start(&directory);
    let status = signer.status();
    let mut changed: Value = serde_json::from_slice(&genesis(&status)).unwrap();
    *changed.pointer_mut("/predicate/event").unwrap() = json!("boot");
    let other = SignerStatus { keyid: Sha256([9; 32]).hex(), ..status.clone() };
    let at_zero = LogPosition { index: 1, genesis: Some(Sha256([0; 32])), ..place(&status, None) };
    let mut moved: Value = serde_json::from_slice(&intent("a", &at_zero)).unwrap();
    *moved.pointer_mut("/predicate/log/index").unwrap() = json!(0);
    for bad in [changed.to_string().into_bytes(), genesis(&other), moved.to_string().into_bytes()] {
        assert!(signer.sign(&[&bad]).is_err());
    }
    signer.sign(&[&genesis(&status)]).unwrap();
}

#[test]
fn a_group_is_signed_as_a_whole_or_not_at_all() {
    let directory = private_directory();
    let (mut signer, first) = begun(&directory);
    let status = signer.status();
    let second = intent("a", &place(&status, Some(&first)));
    let (at, _) = signer.sign(&[&second, &second]).unwrap_err();
    assert_eq!(at, 1);
    assert_eq!(signer.status(), status);
    assert!(signer.sign(&[]).is_err());
    // A million empty payloads fit a message; only the first few are ever kept.
    for (payload, count) in [(second.as_slice(), GROUP_MAX + 1), (&[], 1_000_000), (&[], 2)] {
        assert_eq!(signer.sign(&vec![payload; count]).unwrap_err().0, 0);
    }
    signer.sign(&[&second]).unwrap();
}

#[test]
fn files_and_directories_that_others_can_use_are_refused() {
    for name in ["key.pem", "memory.0", "memory.1"] {
        let directory = private_directory();
        begun(&directory).0.end().unwrap();
        for mode in [0o640, 0o604, 0o620, 0o602, 0o610] {
            chmod(&path(&directory, name), mode);
            let error = Signer::start(&directory).failure();
            assert!(matches!(&error, SignerError::FileMode { name: found, .. } if *found == name), "{error}");
        }
        chmod(&path(&directory, name), 0o600);
        Signer::start(&directory).end().unwrap();
        let moved = path(&directory, "moved");
        std::fs::rename(path(&directory, name), &moved).unwrap();
        std::os::unix::fs::symlink(&moved, path(&directory, name)).unwrap();
        assert!(matches!(Signer::start(&directory).failure(), SignerError::File { .. }), "{name} as a link");
        std::fs::remove_file(path(&directory, name)).unwrap();
        std::fs::hard_link(&moved, path(&directory, name)).unwrap();
        assert!(matches!(Signer::start(&directory).failure(), SignerError::FileMode { .. }), "{name} twice");
    }
    let directory = private_directory();
    chmod(&directory.path().to_path_buf(), 0o750);
    assert!(matches!(Signer::start(&directory).failure(), SignerError::FileMode { name: ".", .. }));
}

#[test]
fn a_newest_memory_that_is_torn_counts_for_nothing_and_the_one_before_holds() {
    let directory = private_directory();
    let (mut signer, first) = begun(&directory);
    let before = signer.status();
    signer.sign(&[&intent("a", &place(&before, Some(&first)))]).unwrap();
    signer.end().unwrap();
    // Sequences 1, 2 and 3: the newest lies in the first file.
    let newest = path(&directory, "memory.0");
    let mut torn = std::fs::read(&newest).unwrap();
    torn[200] ^= 1;
    std::fs::write(&newest, &torn).unwrap();
    let mut signer = Signer::start(&directory);
    assert_eq!(signer.status(), before);
    signer.end().unwrap();
    std::fs::write(path(&directory, "memory.1"), b"").unwrap();
    assert!(matches!(Signer::start(&directory).failure(), SignerError::Memory { .. }));
}

#[test]
fn a_key_without_its_memory_and_a_memory_without_its_key_are_refused() {
    let directory = private_directory();
    begun(&directory).0.end().unwrap();
    let other = private_directory();
    begun(&other).0.end().unwrap();
    std::fs::copy(path(&other, "key.pem"), path(&directory, "key.pem")).unwrap();
    assert!(matches!(Signer::start(&directory).failure(), SignerError::Memory { what: "that of another key" }));
    std::fs::remove_file(path(&directory, "key.pem")).unwrap();
    assert!(matches!(Signer::start(&directory).failure(), SignerError::KeyLost { entries: 1 }));
    for name in ["memory.0", "memory.1"] {
        std::fs::remove_file(path(&other, name)).unwrap();
    }
    assert!(matches!(Signer::start(&other).failure(), SignerError::Memory { what: "gone" }));
    std::fs::write(path(&other, "key.pem"), b"no key").unwrap();
    assert!(matches!(Signer::start(&other).failure(), SignerError::Key { .. }));
}

#[test]
fn a_first_start_that_was_interrupted_anywhere_is_done_again() {
    for left in [&["key.pem.new"][..], &["memory.0.new"], &["memory.0"], &["memory.0", "memory.1", "key.pem.new"]] {
        let directory = private_directory();
        for name in left {
            std::fs::write(path(&directory, name), b"half").unwrap();
            chmod(&path(&directory, name), 0o600);
        }
        let (signer, _) = begun(&directory);
        signer.end().unwrap();
    }
    let directory = private_directory();
    Signer::start(&directory).end().unwrap();
    std::fs::remove_file(path(&directory, "key.pem")).unwrap();
    begun(&directory).0.end().unwrap();
}

#[test]
fn the_key_file_is_plain_pkcs8_and_says_nothing_when_printed() {
    let directory = private_directory();
    let folder = Folder::new(OwnedFd::from(File::open(directory.path()).unwrap())).unwrap();
    let key = ReceiptKey::generate().unwrap();
    key.save(&folder).unwrap();
    let pem = std::fs::read_to_string(path(&directory, "key.pem")).unwrap();
    assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEI"), "{}", pem.len());
    assert_eq!(format!("{key:?}"), format!("ReceiptKey({})", key.id().hex()));
    assert!(key.save(&folder).is_err(), "a key is never overwritten");
    let again = ReceiptKey::load(&folder).unwrap().unwrap();
    assert_eq!(again.sign(b"x"), key.sign(b"x"));
}

#[test]
fn messages_of_another_form_end_the_signer() {
    let directory = private_directory();
    let too_long = u32::try_from(MESSAGE_MAX_BYTES + 1).unwrap().to_le_bytes().to_vec();
    let cases: [(&str, Vec<u8>); 5] = [
        ("too long", too_long),
        ("unknown", [1_u32.to_le_bytes().as_slice(), &[9]].concat()),
        ("something behind", [2_u32.to_le_bytes().as_slice(), &[0, 0]].concat()),
        ("cut off in its length", vec![1, 0]),
        ("cut off", [5_u32.to_le_bytes().as_slice(), &[1]].concat()),
    ];
    for (what, bytes) in cases {
        let mut signer = Signer::start(&directory);
        signer.status();
        signer.send_bytes(&bytes);
        assert!(signer.end().is_err(), "{what}");
    }
    Signer::start(&directory).end().unwrap();
}
