use ed25519_dalek::Signer as _;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::PublicKey;
use crate::samples;

fn key() -> PublicKey {
    PublicKey::of(&samples::key())
}

/// Opens and verifies: what a receiver does.
fn holds(envelope: &[u8]) -> bool {
    open(envelope).is_ok_and(|opened| opened.signatures.iter().any(|one| key().verifies(&opened.payload, &one.sig)))
}

fn envelope_of(payload: &[u8]) -> Value {
    serde_json::to_value(samples::sign(payload)).unwrap()
}

#[test]
fn the_signed_bytes_are_those_of_the_dsse_specification() {
    assert_eq!(pae(b"hello world"), b"DSSEv1 28 application/vnd.in-toto+json 11 hello world");
    assert_eq!(pae(b""), b"DSSEv1 28 application/vnd.in-toto+json 0 ");
}

#[test]
fn a_leaf_is_the_rfc_6962_hash() {
    // The leaf of the empty string, from RFC 6962's reference implementations.
    assert_eq!(leaf(b"").hex(), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
}

#[test]
fn what_was_wrapped_opens_and_holds() {
    let payload = b"{\"a\":1}";
    let bytes = samples::signed(payload);
    let opened = open(&bytes).unwrap();
    assert_eq!(opened.payload, payload);
    assert_eq!(opened.signatures[0].keyid.as_deref(), Some(key().id().hex().as_str()));
    assert!(holds(&bytes));
}

#[test]
fn an_absent_keyid_unknown_members_and_url_safe_base64_are_accepted() {
    let payload: Vec<u8> = (0..=255).collect();
    let mut envelope = envelope_of(&payload);
    envelope["signatures"][0].as_object_mut().unwrap().remove("keyid");
    envelope["note"] = json!("something of somebody's own");
    envelope["payload"] = json!(URL_SAFE.encode(&payload));
    assert_ne!(URL_SAFE.encode(&payload), STANDARD.encode(&payload));
    assert!(holds(envelope.to_string().as_bytes()));
}

#[test]
fn one_good_signature_among_two_is_enough_and_none_among_two_is_not() {
    let payload = b"{}";
    let mut envelope = envelope_of(payload);
    let other = ed25519_dalek::SigningKey::from_bytes(&[9; 32]).sign(&pae(payload)).to_bytes();
    let others = json!({"keyid": "somebody else", "sig": STANDARD.encode(other)});
    let long = json!({"sig": STANDARD.encode([1; 70])});
    let ours = envelope["signatures"][0].clone();
    for signatures in [json!([others, ours]), json!([ours, others]), json!([long, ours])] {
        envelope["signatures"] = signatures;
        assert!(holds(envelope.to_string().as_bytes()));
    }
    envelope["signatures"] = json!([others, long]);
    assert!(!holds(envelope.to_string().as_bytes()));
}

#[test]
fn a_wrong_keyid_is_a_wrong_hint_and_decides_nothing() {
    let mut envelope = envelope_of(b"{}");
    envelope["signatures"][0]["keyid"] = json!("00");
    assert!(holds(envelope.to_string().as_bytes()));
}

#[test]
fn other_forms_do_not_open() {
    let good = envelope_of(b"{\"a\":1}");
    let text = good.to_string();
    let with = |at: &str, value: Value| {
        let mut changed = good.clone();
        *changed.pointer_mut(at).unwrap() = value;
        changed.to_string()
    };
    let sig = good["signatures"][0]["sig"].as_str().unwrap();
    let payload = good["payload"].as_str().unwrap();
    let many: Vec<Value> = vec![good["signatures"][0].clone(); SIGNATURES_MAX + 1];
    let bad = [
        ("empty", String::new()),
        ("an array", "[]".to_owned()),
        ("two values", format!("{text}{text}")),
        ("duplicate payload", text.replacen('{', "{\"payload\":\"e30=\",", 1)),
        ("duplicate sig", text.replacen("\"sig\"", "\"sig\":\"\",\"sig\"", 1)),
        ("a duplicate unknown member", text.replacen('{', "{\"x\":1,\"x\":1,", 1)),
        ("line feed in the payload", with("/payload", json!(format!("{payload}\n")))),
        ("line feed inside the payload", with("/payload", json!(payload.replacen('J', "\n", 1)))),
        ("exclamation mark in the payload", with("/payload", json!(format!("!{payload}")))),
        ("exclamation mark in the signature", with("/signatures/0/sig", json!(format!("{sig}!")))),
        ("space in the signature", with("/signatures/0/sig", json!(format!(" {sig}")))),
        ("no padding", with("/signatures/0/sig", json!(sig.trim_end_matches('=')))),
        ("bits behind the end", with("/payload", json!("e31="))),
        ("two alphabets at once", with("/payload", json!("-_+/"))),
        ("another payload type", with("/payloadType", json!("application/json"))),
        ("no payload type", text.replacen("payloadType", "payloadtype", 1)),
        ("a payload that is no string", with("/payload", json!(1))),
        ("no signatures", with("/signatures", json!([]))),
        ("too many signatures", with("/signatures", json!(many))),
        ("a signature that is no object", with("/signatures", json!(["x"]))),
        ("a keyid that is no string", with("/signatures/0/keyid", json!(null))),
        ("too much payload", with("/payload", json!(STANDARD.encode(vec![b' '; PAYLOAD_MAX_BYTES + 3])))),
    ];
    for (what, envelope) in bad {
        assert!(open(envelope.as_bytes()).is_err(), "{what}");
    }
    assert!(open(text.as_bytes()).is_ok());
}

/// The order of the base point, little endian.
const L: [u8; 32] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

#[test]
fn a_signature_whose_s_is_raised_by_the_group_order_does_not_hold() {
    let payload = b"{}";
    let mut signature = samples::key().sign(&pae(payload)).to_bytes();
    assert!(key().verifies(payload, &signature));
    let mut carry = 0_u16;
    for (byte, add) in signature[32..].iter_mut().zip(L) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        *byte = sum.to_le_bytes()[0];
        carry = sum >> 8;
    }
    assert_eq!(carry, 0);
    assert!(!key().verifies(payload, &signature));
}

#[test]
fn a_signature_over_the_bare_payload_or_another_type_does_not_hold() {
    let payload = b"{}";
    let other = b"DSSEv1 16 application/json 2 {}";
    for message in [payload.as_slice(), other.as_slice()] {
        let signature = samples::key().sign(message).to_bytes();
        assert!(!key().verifies(payload, &signature));
    }
}

#[test]
fn every_changed_character_of_type_and_signature_breaks_the_envelope() {
    let text = envelope_of(b"{\"a\":1}").to_string();
    let region = |member: &str, length: usize| {
        let start = text.find(&format!("\"{member}\":\"")).unwrap() + member.len() + 4;
        start..start + length
    };
    for at in region("payloadType", PAYLOAD_TYPE.len()).chain(region("sig", 88)) {
        let mut changed = text.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        assert!(!holds(&changed), "byte {at}");
    }
    assert!(holds(text.as_bytes()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_payload_comes_back_and_verifies(payload in proptest::collection::vec(any::<u8>(), 0..300)) {
        let bytes = samples::signed(&payload);
        prop_assert_eq!(&open(&bytes).unwrap().payload, &payload);
        prop_assert!(holds(&bytes));
    }

    #[test]
    fn any_flipped_bit_of_the_payload_breaks_the_signature(at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let payload = samples::payloads()[2].clone();
        let signature = samples::key().sign(&pae(&payload)).to_bytes();
        let mut changed = payload.clone();
        let at = at.index(changed.len());
        changed[at] ^= 1 << bit;
        prop_assert!(!key().verifies(&changed, &signature));
    }

    #[test]
    fn any_flipped_bit_of_the_signature_breaks_it(at in 0_usize..64, bit in 0_u8..8) {
        let payload = b"[]";
        let mut signature = samples::key().sign(&pae(payload)).to_bytes();
        signature[at] ^= 1 << bit;
        prop_assert!(!key().verifies(payload, &signature));
    }

    #[test]
    fn any_changed_character_of_the_envelope_means_the_same_or_breaks_it(
        at in any::<prop::sample::Index>(), to in 0x20_u8..0x7f,
    ) {
        let payload = b"{\"a\":1}";
        let mut bytes = samples::signed(payload);
        let at = at.index(bytes.len());
        bytes[at] = to;
        // A changed keyid or member name may still hold; a changed payload never does.
        prop_assert!(!holds(&bytes) || open(&bytes).unwrap().payload == payload);
    }

    #[test]
    fn no_bytes_make_open_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let opened = open(&bytes);
        prop_assert!(opened.is_err());
    }
}
