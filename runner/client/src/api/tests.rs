//! The client against a server that answers with fixed bytes.

use std::path::PathBuf;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixListener;
use tokio::sync::oneshot;
use toolcell_types::{ErrorCode, Problem};

use super::*;

/// A server for one connection: gives `response` to whatever comes, and hands over what came.
struct OneShot {
    _folder: tempfile::TempDir,
    socket: PathBuf,
    request: oneshot::Receiver<String>,
}

fn serve_once(response: impl Into<Vec<u8>>) -> OneShot {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    let (tell, request) = oneshot::channel();
    let response = response.into();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut seen = vec![0; 65_536];
        let length = stream.read(&mut seen).await.unwrap();
        seen.truncate(length);
        tell.send(String::from_utf8(seen).unwrap()).unwrap();
        stream.write_all(&response).await.unwrap();
    });
    OneShot { _folder: folder, socket, request }
}

fn reply(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn id() -> CallId {
    CallId::new("c-1").unwrap()
}

const RUNNING: &str = r#"{"call_id":"c-1","attempt":1,"state":"submitting",
    "intent":{"payload":"","payloadType":"application/vnd.in-toto+json","signatures":[]}}"#;

#[tokio::test]
async fn a_call_that_runs_is_told_from_one_that_is_over_by_its_state() {
    let server = serve_once(reply("202 Accepted", RUNNING));
    let status = Client::new(&server.socket).submit(Bytes::from_static(b"{}")).await.unwrap();
    assert!(matches!(status, CallStatus::Running(running) if running.call_id == id()));
    let request = server.request.await.unwrap();
    assert!(request.starts_with("POST /v1/calls HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("prefer: respond-async, follow\r\n") && request.ends_with("\r\n\r\n{}"), "{request}");
}

#[tokio::test]
async fn a_refusal_keeps_its_code_and_its_body() {
    let problem = Problem::new(ErrorCode::UnknownTool, "no tool \"x\"", "list the tools");
    let body = serde_json::to_string(&problem).unwrap();
    let server = serve_once(reply("404 Not Found", &body));
    let error = Client::new(&server.socket).call(Bytes::from_static(b"{}")).await.unwrap_err();
    assert_eq!(error.problem().map(|problem| problem.code), Some(ErrorCode::UnknownTool));
    assert_eq!(error.remedy(), "list the tools");
    assert!(matches!(error, ClientError::Refused { body: kept, .. } if kept == body.as_bytes()));
}

#[tokio::test]
async fn an_error_status_without_a_problem_document_is_a_protocol_error() {
    let server = serve_once(reply("502 Bad Gateway", "<html>"));
    let error = Client::new(&server.socket).tools().await.unwrap_err();
    assert!(matches!(error, ClientError::Status { status: 502, .. }), "{error:?}");
}

#[tokio::test]
async fn a_body_of_another_shape_is_a_protocol_error() {
    let server = serve_once(reply("200 OK", r#"{"tools":[],"policy":"sha256:zz"}"#));
    let error = Client::new(&server.socket).tools().await.unwrap_err();
    assert!(matches!(error, ClientError::Shape { .. }), "{error:?}");
}

#[tokio::test]
async fn a_daemon_that_dies_before_it_answers_is_a_transport_error() {
    let server = serve_once("");
    let error = Client::new(&server.socket).health().await.unwrap_err();
    assert!(matches!(error, ClientError::Transport { .. }), "{error:?}");
}

#[tokio::test]
async fn nobody_at_the_socket_is_told_from_a_broken_connection() {
    let folder = tempfile::tempdir().unwrap();
    let error = Client::new(folder.path().join("none")).health().await.unwrap_err();
    assert!(error.is_nobody_there(), "{error:?}");
}

#[tokio::test]
async fn a_followed_stream_gives_every_byte_and_then_ends() {
    let chunks = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n";
    let server = serve_once(chunks);
    let mut stream = Client::new(&server.socket).follow(&id(), Stream::Stderr).await.unwrap();
    let mut seen = Vec::new();
    while let Some(piece) = stream.next().await.unwrap() {
        seen.extend_from_slice(&piece);
    }
    assert_eq!(seen, b"abcd");
    assert!(server.request.await.unwrap().starts_with("GET /v1/calls/c-1/stderr?follow=1 HTTP/1.1\r\n"));
}

#[tokio::test]
async fn a_followed_stream_that_breaks_off_is_an_error_and_no_end() {
    let server = serve_once("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    let mut stream = Client::new(&server.socket).follow(&id(), Stream::Stdout).await.unwrap();
    assert_eq!(stream.next().await.unwrap().as_deref(), Some(b"abc".as_slice()));
    assert!(matches!(stream.next().await, Err(ClientError::Transport { .. })));
}

#[tokio::test]
async fn receipts_are_asked_for_by_index_and_limit() {
    let server = serve_once(reply("200 OK", r#"{"receipts":[],"last":null}"#));
    let page = Client::new(&server.socket).receipts(Some(7), Some(1)).await.unwrap();
    assert_eq!(page.last, None);
    assert!(server.request.await.unwrap().starts_with("GET /v1/receipts?after=7&limit=1 HTTP/1.1\r\n"));
}
