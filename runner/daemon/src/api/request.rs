//! Reading what stands around a body: path, query, preferences, and the body within its bound.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{CONTENT_LENGTH, EXPECT, HeaderValue, TRANSFER_ENCODING};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Response};
use axum::middleware::Next;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use toolcell_types::{BODY_MAX_BYTES, CallId, ErrorCode, Problem};

use super::problem_response;
use crate::daemon::{Daemon, fault};
use crate::decode::Prefer;
use crate::identify::{Identity, Peer};
use crate::serve::patient::Follows;
use crate::shares::{Share, Short};

/// How long a body may take to come.
const BODY_PATIENCE: Duration = Duration::from_secs(30);
/// How long it may wait for others to make room.
const ROOM_PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a body that is too long which are read all the same, so that its sender hears why it is refused.
const DISCARDED_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Who asks; from the connection.
#[derive(Debug, Clone)]
pub(super) struct Asker {
    /// The credentials.
    pub(super) peer: Arc<Peer>,
    /// Name and role.
    pub(super) identity: Identity,
    /// What his connection follows.
    pub(super) follows: Arc<Follows>,
}

impl FromRequestParts<Arc<Daemon>> for Asker {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, daemon: &Arc<Daemon>) -> Result<Self, Self::Rejection> {
        match parts.extensions.get::<Arc<Peer>>() {
            Some(peer) => {
                let identity = Identity::of(peer, &daemon.operator_uids);
                let follows = parts.extensions.get::<Arc<Follows>>().cloned().unwrap_or_default();
                Ok(Self { peer: Arc::clone(peer), identity, follows })
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

/// For paths without a query: one that has one is refused, as everywhere.
#[derive(Debug)]
pub(super) struct NoQuery;

impl<S: Sync> FromRequestParts<S> for NoQuery {
    type Rejection = Response<Body>;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        Query::parse(parts.uri.query(), &[]).map(|_nothing| Self).map_err(problem_response)
    }
}

/// Refuses bodies in a form that is not read here: of the transfer codings (RFC 9112, 7) `chunked` alone is known, and
/// the HTTP library would give the bytes of another as if they were the body.
pub(super) async fn known_codings(request: Request, next: Next) -> Response<Body> {
    let is_known = |value: &HeaderValue| value.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked");
    let mut codings = request.headers().get_all(TRANSFER_ENCODING).iter();
    if codings.by_ref().take(1).all(is_known) && codings.next().is_none() {
        return next.run(request).await;
    }
    let mut discarded = 0_usize;
    let mut body = request.into_body();
    // Read all the same, so that its sender hears why it is refused; an end that does not come is not waited for.
    let discard = async {
        while let Some(Ok(frame)) = body.frame().await
            && discarded <= DISCARDED_MAX_BYTES
        {
            discarded = discarded.saturating_add(frame.data_ref().map_or(0, Bytes::len));
        }
    };
    drop(tokio::time::timeout(BODY_PATIENCE, discard).await);
    let detail = "the body has a transfer coding other than chunked";
    let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, "send it plain, with a length or chunked");
    problem.status = 501;
    problem_response(problem)
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

/// The body, at most [`BODY_MAX_BYTES`], within [`BODY_PATIENCE`]. Its share of the memory grows as it comes, so that
/// who announces much and sends nothing takes nothing from others.
///
/// # Errors
/// `INVALID_REQUEST`: with HTTP status 413 for one that is too long, 408 for one that does not come. `QUEUE_FULL` if
/// there is no memory for it.
pub(super) async fn body((headers, share): (&HeaderMap, Share), body: Body) -> Result<(Bytes, Share), Problem> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let is_too_long = announced.is_some_and(|length| length > BODY_MAX_BYTES);
    if is_too_long && headers.contains_key(EXPECT) {
        // The client waits for a word before it sends (RFC 9110, 10.1.1), and this is one.
        return Err(too_long());
    }
    let most = if is_too_long { 0 } else { BODY_MAX_BYTES };
    match tokio::time::timeout(BODY_PATIENCE, collect((body, most), share)).await {
        Ok(collected) => collected,
        Err(_elapsed) if is_too_long => Err(too_long()),
        Err(_elapsed) => {
            let detail = format!("the body did not come within {} s", BODY_PATIENCE.as_secs());
            let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, "send it again, at once");
            problem.status = 408;
            Err(problem)
        }
    }
}

/// Reads to the end, keeping at most `most` bytes. What is too long, or has no room, is read on and thrown away, up to
/// [`DISCARDED_MAX_BYTES`]: a socket that is closed with bytes unread in it takes the refusal with it (unix(7),
/// ECONNRESET).
async fn collect((mut body, most): (Body, usize), mut share: Share) -> Result<(Bytes, Share), Problem> {
    let mut kept = BytesMut::new();
    let mut read = 0_usize;
    let mut refused = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let detail = format!("the body could not be read: {error}");
            Problem::new(ErrorCode::InvalidRequest, detail, "send it again, whole")
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        read = read.saturating_add(piece.len());
        if read > most && refused.is_none() {
            refused = Some(too_long());
        }
        if refused.is_none()
            && let Err(no_room) = share.grow_within(u64::try_from(piece.len()).unwrap_or(u64::MAX), ROOM_PATIENCE).await
        {
            refused = Some(short(no_room));
        }
        if refused.is_none() {
            kept.extend_from_slice(&piece);
        } else {
            kept = BytesMut::new();
            share.become_amount(0);
        }
        if read > DISCARDED_MAX_BYTES {
            break;
        }
    }
    refused.map_or_else(|| Ok((kept.freeze(), share)), Err)
}

/// There is no room for a body.
pub(super) fn short(short: Short) -> Problem {
    let (detail, remedy) = match short {
        Short::Own => ("requests of yours that have not started fill the memory that one user has for them", "yours"),
        Short::All => ("requests of everybody fill the memory that there is for them", "them"),
    };
    Problem::new(
        ErrorCode::QueueFull,
        detail,
        format!("send it again when some of {remedy} have started, or send less"),
    )
}

fn too_long() -> Problem {
    let detail = format!("the body is longer than {BODY_MAX_BYTES} bytes");
    let mut problem = Problem::new(ErrorCode::InvalidRequest, detail, "send less, for instance large input as a mount");
    problem.status = 413;
    problem
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::Memory;
    use crate::shares::{Bounds, Shares, Who};

    #[tokio::test]
    async fn a_body_of_exactly_the_bound_is_read_and_one_byte_more_is_not() {
        let read = |length: usize| async move { body_of(vec![b' '; length]).await.map(|(bytes, _share)| bytes) };
        assert_eq!(read(BODY_MAX_BYTES).await.unwrap().len(), BODY_MAX_BYTES);
        assert_eq!(read(BODY_MAX_BYTES + 1).await.unwrap_err().status, 413);
        assert_eq!(read(0).await.unwrap().len(), 0);
    }

    const WHO: Who = Who { uid: 1, is_operator: false };

    fn share() -> Share {
        Memory::default().bodies.take(WHO, 0).unwrap()
    }

    async fn body_of(bytes: Vec<u8>) -> Result<(Bytes, Share), Problem> {
        body((&HeaderMap::new(), share()), Body::from(bytes)).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_without_room_waits_and_is_refused_and_gives_back_what_it_had() {
        let bodies = Shares::new(Bounds { all: 100, per_user: 10, for_operators: 0 });
        let held = bodies.take(WHO, 8).unwrap();
        let send = async |length: usize| {
            let share = bodies.take(WHO, 0).unwrap();
            body((&HeaderMap::new(), share), Body::from(vec![b' '; length])).await
        };
        assert!(send(2).await.is_ok());
        let refused = send(3).await.unwrap_err();
        assert_eq!((refused.status, refused.code), (503, ErrorCode::QueueFull));
        drop(held);
        assert!(send(10).await.is_ok());
    }

    #[tokio::test]
    async fn a_body_that_is_announced_too_long_is_refused_whatever_comes() {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(BODY_MAX_BYTES + 1));
        assert_eq!(body((&headers, share()), Body::from("x")).await.unwrap_err().status, 413);
        headers.insert(EXPECT, HeaderValue::from_static("100-continue"));
        assert_eq!(body((&headers, share()), Body::from("x")).await.unwrap_err().status, 413);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let (_sender, silent) = http_body_util::channel::Channel::<Bytes>::new(1);
        assert_eq!(body((&HeaderMap::new(), share()), Body::new(silent)).await.unwrap_err().status, 408);
    }

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
