//! From the bytes of a request to a request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use toolcell_policy::request::{self, Ablation, Decoded};
use toolcell_types::{CallRequest, Problem, Sha256};

use crate::identify::Peer;
use crate::shares::Share;

/// How the answer is to come (RFC 7240).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Prefer {
    /// With the outcome.
    Wait,
    /// With the intent; the outcome is fetched.
    RespondAsync {
        /// Whether a follower of both output streams is on its way.
        follow: bool,
    },
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct RawCall {
    /// The body, within its bound.
    pub(crate) body: Bytes,
    /// Its share of the memory that bodies have.
    pub(crate) share: Share,
    /// Who is at the other end.
    pub(crate) peer: Arc<Peer>,
    /// How the answer is to come.
    pub(crate) prefer: Prefer,
    /// When its head was read (monotonic): `deadline_ms` counts from here.
    pub(crate) received: Duration,
}

/// A request that was understood.
#[derive(Debug)]
pub(crate) struct DecodedCall {
    decoded: Decoded,
    peer: Arc<Peer>,
    prefer: Prefer,
    received: Duration,
    /// For as long as what came of the body is there.
    _share: Share,
}

impl DecodedCall {
    /// What is asked for.
    pub(crate) fn request(&self) -> &CallRequest {
        &self.decoded.request
    }

    /// SHA-256 of the request's canonical form.
    pub(crate) fn digest(&self) -> Sha256 {
        self.decoded.digest
    }

    /// The same for two requests that are the same.
    pub(crate) fn identity(&self) -> Sha256 {
        self.decoded.identity
    }

    /// Who is at the other end.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// How the answer is to come.
    pub(crate) fn prefer(&self) -> Prefer {
        self.prefer
    }

    /// What is left of `deadline_ms`, in milliseconds; none if there is no deadline.
    pub(crate) fn left_ms(&self, now: Duration) -> Option<u64> {
        let deadline = self.decoded.request.deadline_ms?;
        let spent = u64::try_from(now.saturating_sub(self.received).as_millis()).unwrap_or(u64::MAX);
        Some(deadline.saturating_sub(spent))
    }
}

/// Reads the body, strictly.
///
/// # Errors
/// The refusal, with every finding.
pub(crate) fn decode(ablation: Ablation, raw: RawCall) -> Result<DecodedCall, Problem> {
    let decoded = request::decode_in(ablation, &raw.body)?;
    Ok(DecodedCall { decoded, peer: raw.peer, prefer: raw.prefer, received: raw.received, _share: raw.share })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::Memory;
    use crate::shares::Who;

    fn decoded(body: &'static str) -> Result<DecodedCall, Problem> {
        let peer = Arc::new(Peer { uid: 1, gid: 1, pid: 1, groups: Vec::new() });
        let received = Duration::from_millis(1000);
        let who = Who { uid: 1, is_operator: false };
        let share = Memory::default().bodies.take(who, 0).unwrap();
        decode(
            Ablation::Refused,
            RawCall { body: Bytes::from_static(body.as_bytes()), share, peer, prefer: Prefer::Wait, received },
        )
    }

    #[test]
    fn a_deadline_runs_from_when_the_request_was_received() {
        let call = decoded(r#"{"call_id":"a","tool":"python","args":{},"deadline_ms":500}"#).unwrap();
        assert_eq!(call.left_ms(Duration::from_millis(1200)), Some(300));
        assert_eq!(call.left_ms(Duration::from_millis(9000)), Some(0));
        let call = decoded(r#"{"call_id":"a","tool":"python","args":{}}"#).unwrap();
        assert_eq!(call.left_ms(Duration::from_millis(9000)), None);
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for body in ["", "{", "[]", r#"{"call_id":"a"}"#, r#"{"call_id":"a","tool":"x","args":{},"kee":1}"#] {
            assert_eq!(decoded(body).unwrap_err().status, 400, "{body}");
        }
    }
}
