//! One call, its log of three entries and its answer, as test data and as the files in `tests-data`.
//!
//! The files are for other verifiers too. `TOOLCELL_BLESS=1 cargo test -p toolcell-receipts` writes them anew.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::Map;
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::{
    CallId, ControlId, ControlReport, ControlState, Effect, Envelope, Facts, ImageRef, Limits, LogPosition, MountMode,
    MountSpec, Sha256, Status, Usage, Verdict, Verification, json,
};

use crate::statement::{
    BuildDigest, Definition, EffectBasis, Executor, Genesis, Intent, Outcome, Peer, PlannedControl, Stream, Submitter,
};
use crate::{PublicKey, UnixMicros, control_items, dsse};

/// What the controller sent, with member order and spaces of its own.
pub(crate) const REQUEST: &str =
    "{ \"tool\": \"python\", \"call_id\": \"sum-1\",\n  \"args\": {\"code\": \"print(6*7)\"} }\n";
pub(crate) const STDOUT: &[u8] = b"42\n";

pub(crate) fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

pub(crate) fn pem() -> String {
    PublicKey::of(&key()).to_pem().unwrap()
}

pub(crate) fn request_digest() -> Sha256 {
    let value = json::parse_strict(REQUEST.as_bytes()).unwrap();
    Sha256(Hasher::digest(json::canonical(&value).unwrap()).into())
}

fn executor() -> Executor {
    Executor {
        instance: "7f3a0b12".to_owned(),
        boot_id: "8c1b7a4e-2c52-4f0b-9a61-6f0e2d1c9b55".to_owned(),
        toolcell_version: "0.1.0".to_owned(),
        kernel_version: "6.18.44".to_owned(),
        build: BuildDigest::GnuBuildId("9a3a45d01531a20e89ac6ae10b0b0beb0492acd7".to_owned()),
        experiment: None,
    }
}

pub(crate) fn definition() -> Definition {
    Definition {
        request: request_digest(),
        call_id: CallId::new("sum-1").unwrap(),
        attempt: 1,
        tool: "python".to_owned(),
        tool_digest: Sha256([0x11; 32]),
        limits: Limits::default(),
        mounts: vec![MountSpec { host: "/srv/data".to_owned(), inside: "/data".to_owned(), mode: MountMode::Ro }],
        labels: BTreeMap::from([("pipeline".to_owned(), "review \"17\"".to_owned())]),
        effect_channels: Vec::new(),
        policy: Sha256([0x22; 32]),
        image: ImageRef { name: "host".to_owned(), digest: None, pinned: false },
        submitter: Submitter {
            id: "uid:1000".to_owned(),
            role: "operator".to_owned(),
            tenant: "uid:1000".to_owned(),
            peer: Peer { uid: 1000, gid: 1000, pid: 4711 },
        },
        executor: executor(),
        ablated: toolcell_types::ControlSet::EMPTY,
        invocation_id: "0198f0c2-7a51-7c3e-9d10-5b7a2f4e8c11".to_owned(),
        submitted_on: UnixMicros(1_796_042_467_101_877),
    }
}

fn verification(id: ControlId) -> Verification {
    if matches!(id, ControlId::LandlockFs | ControlId::LandlockNet | ControlId::LandlockScope) {
        return Verification::Probed;
    }
    let configured = matches!(id, ControlId::OutputCap | ControlId::EnvironmentAllowlist);
    if configured { Verification::Configured } else { Verification::ReadBack }
}

pub(crate) fn reports() -> Vec<ControlReport> {
    let report = |id: ControlId| ControlReport {
        id,
        state: ControlState::Enforced,
        verification: verification(id),
        required: id.is_required_by_default(),
        requested: Facts::new(),
        observed: Facts::new().with("seen", true),
    };
    ControlId::ALL.into_iter().map(report).collect()
}

pub(crate) fn genesis() -> Genesis {
    Genesis { keyid: PublicKey::of(&key()).id(), executor: executor(), made_on: UnixMicros(1_796_042_400_000_000) }
}

pub(crate) fn intent() -> Intent {
    let plan = |id: ControlId| PlannedControl { id, required: id.is_required_by_default(), requested: Facts::new() };
    Intent { definition: definition(), planned: ControlId::ALL.into_iter().map(plan).collect() }
}

pub(crate) fn stream(all: &[u8]) -> Stream {
    let digest = Sha256(Hasher::digest(all).into());
    let size = u64::try_from(all.len()).unwrap();
    Stream { sha256: digest, size_bytes: size, kept: digest, kept_bytes: size, head_bytes: size, dropped_bytes: 0 }
}

pub(crate) fn outcome() -> Outcome {
    Outcome {
        definition: definition(),
        intent_index: 1,
        started_on: Some(UnixMicros(1_796_042_467_118_402)),
        finished_on: UnixMicros(1_796_042_467_140_000),
        controls: control_items(&reports()),
        status: Status::Ok,
        is_error: false,
        effect: Effect::None,
        effect_basis: EffectBasis::NoOpenChannel,
        tree_gone: true,
        verdict: Verdict::Exited { exit_code: 0 },
        limits_hit: Vec::new(),
        usage: Usage { wall_us: Some(21_598), stdout_bytes: Some(3), stderr_bytes: Some(0), ..Usage::default() },
        revision: Sha256(Hasher::digest([]).into()),
        data: Map::new(),
        error: None,
        stdout: stream(STDOUT),
        stderr: Stream::empty(),
    }
}

/// The place after these payloads.
pub(crate) fn after(payloads: &[&[u8]]) -> LogPosition {
    LogPosition {
        origin: LogPosition::origin_of(&PublicKey::of(&key()).id()),
        index: u64::try_from(payloads.len()).unwrap(),
        previous: payloads.last().map_or(Sha256([0; 32]), |payload| dsse::leaf(payload)),
        genesis: payloads.first().map(|payload| dsse::leaf(payload)),
    }
}

/// The three payloads of the log.
pub(crate) fn payloads() -> [Vec<u8>; 3] {
    let first = genesis().draft().unwrap().finish(&after(&[])).unwrap();
    let second = intent().draft().unwrap().finish(&after(&[&first])).unwrap();
    let third = outcome().draft().unwrap().finish(&after(&[&first, &second])).unwrap();
    [first, second, third]
}

pub(crate) fn sign(payload: &[u8]) -> Envelope {
    let signature = key().sign(&dsse::pae(payload)).to_bytes();
    dsse::envelope(payload, &signature, &PublicKey::of(&key()).id())
}

pub(crate) fn signed(payload: &[u8]) -> Vec<u8> {
    serde_json::to_vec(&sign(payload)).unwrap()
}

/// Compares bytes with a file of `tests-data`.
pub(crate) fn golden(name: &str, bytes: &[u8]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests-data").join(name);
    if std::env::var_os("TOOLCELL_BLESS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let kept = std::fs::read(&path).unwrap();
    assert!(kept == bytes, "{name} differs from what is made now: {}", String::from_utf8_lossy(bytes));
}
