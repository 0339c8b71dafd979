//! Reading what stands around a body: path, query, preferences, and the body within its bound.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::extract::rejection::PathRejection;
use axum::http::header::CONTENT_LENGTH;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use toolcell_types::{BODY_MAX_BYTES, CallId, ErrorCode, Problem};

use super::problem_response;
use crate::daemon::{Daemon, fault};
use crate::decode::Prefer;
use crate::identify::{Identity, Peer};

/// How long a body may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(30);

/// Who asks; from the connection.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    /// The credentials.
    pub(super) peer: Arc<Peer>,
    /// Name and role.
    pub(super) identity: Identity,
}

impl FromRequestParts<Arc<Daemon>> for Asker {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, daemon: &Arc<Daemon>) -> Result<Self, Self::Rejection> {
        match parts.extensions.get::<Arc<Peer>>() {
            Some(peer) => {
                let identity = Identity::of(peer, &daemon.operator_uids);
                Ok(Self { peer: Arc::clone(peer), identity })
            }
            // Each connection is given its credentials before its first request is read.
            None => Err(problem_response(fault("a request came without credentials", &std::fmt::Error))),
        }
    }
}

/// The call that a path names.
#[derive(Debug)]
pub(super) struct NamedCall(pub(super) CallId);

impl FromRequestParts<Arc<Daemon>> for NamedCall {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, daemon: &Arc<Daemon>) -> Result<Self, Self::Rejection> {
        let text: Result<axum::extract::Path<String>, PathRejection> =
            axum::extract::Path::from_request_parts(parts, daemon).await;
        let remedy = "name the call as it was submitted";
        let refuse = |detail: String| problem_response(Problem::new(ErrorCode::InvalidRequest, detail, remedy));
        let axum::extract::Path(text) = text.map_err(|rejection| refuse(rejection.body_text()))?;
        CallId::new(&text).map(Self).map_err(|bad| refuse(bad.to_string()))
    }
}

/// The query of a path, each name at most once.
#[derive(Debug)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Splits a query into known names and values. Values are numbers here, so that nothing needs decoding.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for a name that is unknown or comes twice.
    pub(super) fn parse(query: Option<&str>, known: &[&str]) -> Result<Self, Problem> {
        let mut members: Vec<(String, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                return Err(bad_query(format!("{:?} is not known", shorten(name)), known));
            }
            if members.iter().any(|(other, _)| other == name) {
                return Err(bad_query(format!("{name} comes twice"), known));
            }
            members.push((name.to_owned(), value.to_owned()));
        }
        Ok(Self(members))
    }

    /// A whole number; none if it is not stated.
    ///
    /// # Errors
    /// `INVALID_REQUEST` if it is no number within the bounds.
    pub(super) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some((_, value)) = self.0.iter().find(|(other, _)| other == name) else { return Ok(None) };
        match value.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) && !value.starts_with('+') => Ok(Some(number)),
            _no_such_number => {
                let detail = format!("{name} must be a whole number from {least} to {most}, got {:?}", shorten(value));
                Err(Problem::new(ErrorCode::InvalidRequest, detail, "correct the query"))
            }
        }
    }

    /// Whether `name=1` is stated.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for another value than 0 and 1.
    pub(super) fn flag(&self, name: &str) -> Result<bool, Problem> {
        Ok(self.number(name, 0, 1)? == Some(1))
    }
}

fn bad_query(detail: String, known: &[&str]) -> Problem {
    let known = if known.is_empty() { "nothing".to_owned() } else { known.join(", ") };
    Problem::new(ErrorCode::InvalidRequest, format!("in the query {detail}"), format!("known here: {known}"))
}

fn shorten(text: &str) -> String {
    text.chars().take(64).collect()
}

/// The preferences of RFC 7240 that are known here; others are ignored, as it demands.
pub(super) fn preferences(headers: &HeaderMap) -> Prefer {
    let stated = |wanted: &str| {
        headers
            .get_all("prefer")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .any(|value| value.split(',').any(|one| one.trim().eq_ignore_ascii_case(wanted)))
    };
    if stated("respond-async") { Prefer::RespondAsync { follow: stated("follow") } } else { Prefer::Wait }
}

/// The body, at most [`BODY_MAX_BYTES`], within [`BODY_PATIENCE`].
///
/// # Errors
/// `INVALID_REQUEST`: with HTTP status 413 for one that is too long, 408 for one that does not come.
pub(super) async fn body(headers: &HeaderMap, body: Body) -> Result<Bytes, Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|length| length > BODY_MAX_BYTES) {
        return Err(too_long());
    }
    let collected = tokio::time::timeout(BODY_PATIENCE, Limited::new(body, BODY_MAX_BYTES).collect()).await;
    match collected {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(error)) => {
            let detail = format!("the body could not be read: {error}");
            Err(Problem::new(ErrorCode::InvalidRequest, detail, "send it again, whole"))
        }
        Err(_elapsed) => {
            let detail = format!("the body did not come within {} s", BODY_PATIENCE.as_secs());
            let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, "send it again, at once");
            problem.status = 408;
            Err(problem)
        }
    }
}

fn too_long() -> Problem {
    let detail = format!("the body is longer than {BODY_MAX_BYTES} bytes");
    let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, "send less, for instance large input as a mount");
    problem.status = 413;
    problem
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_query_takes_known_names_once() {
        let query = Query::parse(Some("after=3&limit=10"), &["after", "limit"]).unwrap();
        assert_eq!(query.number("after", 0, 10).unwrap(), Some(3));
        assert_eq!(query.number("other", 0, 10).unwrap(), None);
        assert!(Query::parse(None, &[]).is_ok() && Query::parse(Some(""), &[]).is_ok());
        for bad in ["afte=3", "after=3&after=4", "x"] {
            assert_eq!(Query::parse(Some(bad), &["after"]).unwrap_err().status, 400, "{bad}");
        }
    }

    #[test]
    fn a_number_in_a_query_has_bounds() {
        for bad in ["after=", "after=x", "after=-1", "after=+1", "after=1.0", "after=11", "after=%31"] {
            let query = Query::parse(Some(bad), &["after"]).unwrap();
            assert!(query.number("after", 0, 10).is_err(), "{bad}");
        }
        assert!(Query::parse(Some("follow=1"), &["follow"]).unwrap().flag("follow").unwrap());
        assert!(!Query::parse(Some("follow=0"), &["follow"]).unwrap().flag("follow").unwrap());
        assert!(Query::parse(Some("follow=yes"), &["follow"]).unwrap().flag("follow").is_err());
    }

    #[test]
    fn preferences_are_read_from_every_header_and_others_are_ignored() {
        let with = |values: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("prefer", HeaderValue::from_static(value));
            }
            preferences(&headers)
        };
        assert_eq!(with(&[]), Prefer::Wait);
        assert_eq!(with(&["wait=10, follow"]), Prefer::Wait);
        assert_eq!(with(&["respond-async"]), Prefer::RespondAsync { follow: false });
        assert_eq!(with(&["Respond-Async, follow"]), Prefer::RespondAsync { follow: true });
        assert_eq!(with(&["respond-async", "handling=lenient,follow"]), Prefer::RespondAsync { follow: true });
    }
}
