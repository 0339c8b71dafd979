//! From bytes to a request: strict JSON, known members only, every value of its kind and within its bounds.
//!
//! [`decode`] guarantees that what it returns is exactly what its digest names, and that every text in it can be
//! handed to the kernel (no NUL, below the size that execve takes). It knows no policy and no tool: whether a call may
//! run is decided by [`crate::Policy::decide`]. All findings are reported together, in the order of the contract.

use serde_json::{Map, Value};
use sha2::Digest as _;
use toolcell_types::{BODY_MAX_BYTES, CallId, CallRequest, Problem, Sha256, json};

use crate::malformed::Malformed;
use crate::{bounds, members, refusal};

/// Members that do not belong to what is asked for: two requests equal without them are *the same request*.
const NOT_IDENTITY: [&str; 5] = ["call_id", "key", "deadline_ms", "labels", "salt"];

/// A request that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The request, read from the value whose canonical form is `canonical`.
    pub request: CallRequest,
    /// The RFC 8785 form of the body.
    pub canonical: Vec<u8>,
    /// SHA-256 of `canonical`: the receipt's subject, which the controller can compute beforehand.
    pub digest: Sha256,
    /// SHA-256 of the canonical form without `call_id`, `key`, `deadline_ms`, `labels` and `salt`.
    pub identity: Sha256,
}

/// Whether requests may have controls switched off: decided when an instance is started, and by nothing later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ablation {
    /// `ablate` is refused.
    Refused,
    /// `ablate` is taken.
    Taken,
}

/// Reads the body of `POST /v1/calls`.
///
/// # Errors
/// A [`Problem`] with code `INVALID_REQUEST` (or `ABLATION_REFUSED`) and every finding; its remedy says what to send
/// instead. It carries the `call_id` where that much could be read.
pub fn decode(body: &[u8]) -> Result<Decoded, Problem> {
    decode_in(Ablation::Refused, body)
}

/// As [`decode`], for an instance that does, or does not, switch controls off.
///
/// # Errors
/// As [`decode`].
pub fn decode_in(ablation: Ablation, body: &[u8]) -> Result<Decoded, Problem> {
    let value = json::parse_strict(body).map_err(|source| refuse(source.into(), Vec::new(), None))?;
    let call_id = value.get("call_id").and_then(Value::as_str).and_then(|text| CallId::new(text).ok());
    let Named { canonical, identity, members } =
        name(value).map_err(|wrong| refuse(wrong, Vec::new(), call_id.as_ref()))?;
    let mut found = Vec::new();
    let request = match members::read(members, ablation, &mut found) {
        Ok(request) => request,
        Err(first) => return Err(refuse(first, found, call_id.as_ref())),
    };
    bounds::check(&request, ablation, &mut found);
    let mut found = found.into_iter();
    match found.next() {
        Some(first) => Err(refuse(first, found, call_id.as_ref())),
        None => Ok(Decoded { request, digest: sha256(&canonical), identity, canonical }),
    }
}

/// Checks what holds for every request, whatever the policy and whoever made it.
///
/// # Errors
/// As [`decode`].
pub(crate) fn check(request: &CallRequest) -> Result<(), Problem> {
    let mut found = Vec::new();
    // Who decides about a request has had it decoded, which refused what is to be refused.
    bounds::check(request, Ablation::Taken, &mut found);
    let mut found = found.into_iter();
    found.next().map_or(Ok(()), |first| Err(refuse(first, found, Some(&request.call_id))))
}

/// A request that has its names and is not yet understood.
struct Named {
    canonical: Vec<u8>,
    identity: Sha256,
    members: Map<String, Value>,
}

fn name(mut value: Value) -> Result<Named, Malformed> {
    let canonical = json::canonical(&value)?;
    if canonical.len() > BODY_MAX_BYTES {
        return Err(json::StrictJsonError::TooLong { got: canonical.len(), most: BODY_MAX_BYTES }.into());
    }
    let set_aside: Vec<_> = match value.as_object_mut() {
        Some(same) => NOT_IDENTITY.into_iter().filter_map(|name| same.remove_entry(name)).collect(),
        None => Vec::new(),
    };
    let identity = sha256(&json::canonical(&value)?);
    let Value::Object(mut members) = value else {
        return Err(Malformed::value("the request", "an object", members::kind(&value)));
    };
    members.extend(set_aside);
    Ok(Named { canonical, identity, members })
}

/// The refusal of a request that could not be understood.
pub(crate) fn refuse(first: Malformed, rest: impl IntoIterator<Item = Malformed>, call_id: Option<&CallId>) -> Problem {
    let mut problem = refusal::problem(first.into(), rest.into_iter().map(Into::into));
    problem.call_id = call_id.map(ToString::to_string);
    problem
}

pub(crate) fn sha256(bytes: &[u8]) -> Sha256 {
    Sha256(sha2::Sha256::digest(bytes).into())
}

#[cfg(test)]
mod tests;
