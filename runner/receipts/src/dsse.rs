//! DSSE v1: how a payload is bound to its type, wrapped, and opened again.
//!
//! Guarantees: [`open`] takes one JSON object without duplicate members, standard or URL-safe base64 with padding and
//! without any other character, and our one payload type. As DSSE demands, it ignores further members and keeps further
//! signatures. Does not: decide whether a signature is good, that is [`crate::PublicKey::verifies`].

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::json::{self, StrictJsonError};
use toolcell_types::{Envelope, PAYLOAD_MAX_BYTES, PAYLOAD_TYPE, Sha256, Signature};

/// Most signatures of one envelope; ours have one.
pub const SIGNATURES_MAX: usize = 16;

/// The bytes that are signed: payload type and payload, each behind its length (DSSE v1, PAE).
#[must_use]
pub fn pae(payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len());
    let mut out = Vec::with_capacity(head.len().saturating_add(payload.len()));
    out.extend_from_slice(head.as_bytes());
    out.extend_from_slice(payload);
    out
}

/// The leaf of an entry: SHA-256 over a zero byte and the payload (RFC 6962).
#[must_use]
pub fn leaf(payload: &[u8]) -> Sha256 {
    let mut hasher = Hasher::new();
    hasher.update([0_u8]);
    hasher.update(payload);
    Sha256(hasher.finalize().into())
}

/// An envelope with one signature.
#[must_use]
pub fn envelope(payload: &[u8], signature: &[u8; 64], keyid: &Sha256) -> Envelope {
    Envelope {
        payload: STANDARD.encode(payload),
        payload_type: PAYLOAD_TYPE.to_owned(),
        signatures: vec![Signature { keyid: keyid.hex(), sig: STANDARD.encode(signature) }],
    }
}

/// What an envelope holds. Nothing of it is verified yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The payload bytes.
    pub payload: Vec<u8>,
    /// At least one signature, at most [`SIGNATURES_MAX`].
    pub signatures: Vec<OpenedSignature>,
}

/// One signature of an envelope, of whatever kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedSignature {
    /// A hint at the key, never a decision; may be absent.
    pub keyid: Option<String>,
    /// The signature bytes.
    pub sig: Vec<u8>,
}

/// Why a text is no envelope of ours.
#[derive(Debug, thiserror::Error)]
pub enum DsseError {
    /// No strict JSON.
    #[error("the envelope is not strict JSON")]
    Json {
        /// What the parser said.
        source: StrictJsonError,
    },
    /// A member is missing or of another kind.
    #[error("{at} must be {expected}")]
    Shape {
        /// Which member.
        at: &'static str,
        /// What it has to be.
        expected: &'static str,
    },
    /// A member is no base64.
    #[error("{at} is not base64 with padding and nothing else")]
    Base64 {
        /// Which member.
        at: &'static str,
        /// What the decoder said.
        source: base64::DecodeError,
    },
    /// Another payload type.
    #[error("payloadType is {got:?}, expected {PAYLOAD_TYPE:?}")]
    PayloadType {
        /// What came, cut to 64 characters.
        got: String,
    },
    /// More payload than an entry may have.
    #[error("the payload is {got} bytes long, at most {PAYLOAD_MAX_BYTES} are taken")]
    TooLong {
        /// Its length.
        got: usize,
    },
}

/// Opens an envelope.
///
/// # Errors
/// [`DsseError`] names the member and what it should have been.
pub fn open(bytes: &[u8]) -> Result<Opened, DsseError> {
    let value = json::parse_strict(bytes).map_err(|source| DsseError::Json { source })?;
    let members = value.as_object().ok_or(DsseError::Shape { at: "the envelope", expected: "an object" })?;
    let payload_type = text(members, "payloadType")?;
    if payload_type != PAYLOAD_TYPE {
        return Err(DsseError::PayloadType { got: payload_type.chars().take(64).collect() });
    }
    let payload = decode("payload", text(members, "payload")?)?;
    if payload.len() > PAYLOAD_MAX_BYTES {
        return Err(DsseError::TooLong { got: payload.len() });
    }
    let expected = "an array of 1 to 16 signatures";
    let signatures = members
        .get("signatures")
        .and_then(Value::as_array)
        .filter(|list| (1..=SIGNATURES_MAX).contains(&list.len()))
        .ok_or(DsseError::Shape { at: "signatures", expected })?;
    Ok(Opened { payload, signatures: signatures.iter().map(signature).collect::<Result<_, _>>()? })
}

fn signature(item: &Value) -> Result<OpenedSignature, DsseError> {
    let members = item.as_object().ok_or(DsseError::Shape { at: "signatures[]", expected: "an object" })?;
    let keyid = match members.get("keyid") {
        None => None,
        Some(Value::String(hint)) => Some(hint.clone()),
        Some(_other) => return Err(DsseError::Shape { at: "keyid", expected: "a string, or absent" }),
    };
    Ok(OpenedSignature { keyid, sig: decode("sig", text(members, "sig")?)? })
}

fn text<'a>(members: &'a Map<String, Value>, at: &'static str) -> Result<&'a str, DsseError> {
    members.get(at).and_then(Value::as_str).ok_or(DsseError::Shape { at, expected: "a string" })
}

/// Standard or URL-safe alphabet, as DSSE says; never both in one text.
fn decode(at: &'static str, text: &str) -> Result<Vec<u8>, DsseError> {
    let url_safe = text.contains(['-', '_']);
    let decoded = if url_safe { URL_SAFE.decode(text) } else { STANDARD.decode(text) };
    decoded.map_err(|source| DsseError::Base64 { at, source })
}

#[cfg(test)]
mod tests;
