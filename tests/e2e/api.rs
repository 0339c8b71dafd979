//! The HTTP door: every path of the contract, and what is not one.

use base64::Engine as _;
use serde_json::{Value, json};
use toolcell_tests::{Connection, Instance, Need, Request, Running, needs};
use toolcell_types::{
    Answer, CallState, CallsPage, ErrorCode, KeysPage, ReceiptsPage, RunningCall, ToolsPage, Verdict,
};

#[test]
fn tools_are_listed_with_schema_limits_and_digest() {
    needs!(Need::Root);
    let instance = Instance::start();
    let page: ToolsPage = instance.get("/v1/tools").json();
    let names: Vec<&str> = page.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["exec", "python"]);
    for tool in &page.tools {
        assert_eq!((tool.permission.as_str(), tool.effect_class.as_str()), ("allow", "read"), "{}", tool.name);
        assert!(!tool.description.is_empty() && tool.input_schema["type"] == "object");
        assert_eq!(tool.limits, toolcell_types::Limits::default(), "{}", tool.name);
    }
    assert_eq!(page.tools[0].max_limits.wall_ms, 3_600_000);
    assert_eq!((page.tools[0].max_limits.memory_bytes, page.tools[0].max_limits.pids), (4 << 30, 1024));
    assert_eq!(page.policy, instance.health().policy);
}

#[test]
fn python_runs_what_it_is_given() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::tool("python", json!({ "code": "print(6*7)" })));
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), "42\n");
    assert_eq!((answer.tool.as_str(), answer.attempt, answer.image.pinned), ("python", 1, false));
    assert_eq!((answer.image.name.as_str(), &answer.image.digest), ("host", &None));
}

#[test]
fn calls_are_listed_newest_first() {
    needs!(Need::Root);
    let instance = Instance::start();
    let requests = [Request::shell("true"), Request::shell("false"), Request::tool("python", json!({ "code": "1" }))];
    for request in &requests {
        drop(instance.call(request));
    }
    let page: CallsPage = instance.get("/v1/calls").json();
    let listed: Vec<String> = page.calls.iter().map(|call| call.call_id.to_string()).collect();
    let submitted: Vec<String> = requests.iter().rev().map(Request::call_id).collect();
    assert_eq!(listed, submitted);
    let states: Vec<CallState> = page.calls.iter().map(|call| call.state).collect();
    assert_eq!(states, [CallState::Complete, CallState::Failed, CallState::Complete]);
    let page: CallsPage = instance.get("/v1/calls?limit=1").json();
    assert_eq!(page.calls.len(), 1);
}

#[test]
fn receipts_are_paged_without_gaps() {
    needs!(Need::Root);
    let instance = Instance::start();
    for _ in 0..3 {
        drop(instance.call(&Request::exec(&["true"])));
    }
    let all = instance.receipts();
    let first: ReceiptsPage = instance.get("/v1/receipts?limit=2").json();
    assert_eq!((first.receipts.len(), first.last), (2, Some(1)));
    let next: ReceiptsPage = instance.get("/v1/receipts?after=1").json();
    assert_eq!(next.receipts.as_slice(), &all[2..]);
    let end: ReceiptsPage = instance.get("/v1/receipts?after=6").json();
    assert_eq!((end.receipts.len(), end.last), (0, None));
    drop(instance.get("/v1/receipts?after=x").problem(ErrorCode::InvalidRequest));
    drop(instance.get("/v1/receipts?behind=1").problem(ErrorCode::InvalidRequest));
}

#[test]
fn the_key_s_id_is_the_digest_of_the_key() {
    needs!(Need::Root);
    use sha2::Digest as _;
    let instance = Instance::start();
    let page: KeysPage = instance.get("/v1/keys").json();
    let [key] = page.keys.as_slice() else { panic!("one key: {page:?}") };
    let body: String = key.pem.lines().filter(|line| !line.starts_with("-----")).collect();
    let spki = base64::engine::general_purpose::STANDARD.decode(body).unwrap();
    let digest = toolcell_types::Sha256(sha2::Sha256::digest(&spki).into());
    assert_eq!((key.keyid.clone(), key.enrolled, key.purpose.as_str()), (digest.hex(), false, "receipt"));
    let answer = instance.call(&Request::exec(&["true"]));
    assert_eq!(answer.receipt.signatures[0].keyid, key.keyid);
}

#[test]
fn an_asynchronous_call_is_accepted_and_found_by_its_id() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::program("waits", &[]);
    let running = Running::until_up(&instance, &request);
    assert_eq!(running.accepted.call_id.as_str(), request.call_id());
    assert_eq!((running.accepted.attempt, running.accepted.state), (1, CallState::Submitting));
    let now: RunningCall = running.now().json();
    assert_eq!(now, running.accepted);
    assert_eq!(instance.health().live_calls, 1);
    assert_eq!(running.cancel().status() / 100, 2);
    assert_eq!(running.answer().verdict, Verdict::Cancelled);
    assert_eq!(instance.health().live_calls, 0);
}

#[test]
fn a_follower_gets_every_byte_in_order_while_it_is_written() {
    needs!(Need::Root);
    let instance = Instance::start();
    let line = "import sys\nfor n in range(200000): sys.stdout.write('%07d\\n' % n)\nsys.stderr.write('end')";
    let request = Request::exec(&["python3", "-c", line]);
    let headers = [("Prefer", "respond-async, follow")];
    let response = instance.post_with("/v1/calls", &headers, &request.bytes());
    assert_eq!(response.status(), 202, "{}", response.text());
    let follow = |stream: &str| {
        let mut connection = instance.connect();
        let path = format!("/v1/calls/{}/{stream}?follow=1", request.call_id());
        let response = connection.ask("GET", &path, &[], b"").unwrap();
        assert_eq!(response.status(), 200, "{}", response.text());
        response.body
    };
    let (out, err) = std::thread::scope(|scope| {
        let err = scope.spawn(|| follow("stderr"));
        (follow("stdout"), err.join().unwrap())
    });
    assert_eq!(err, b"end");
    let expected: String = (0..200_000).map(|n| format!("{n:07}\n")).collect();
    assert!(out == expected.as_bytes(), "{} bytes of {}", out.len(), expected.len());
}

#[test]
fn a_follower_sees_output_before_the_end_and_a_gone_one_holds_nothing_up() {
    needs!(Need::Root);
    let instance = Instance::start();
    let running = Running::until_up(&instance, &Request::shell("echo up; sleep 0.2; seq 100000; echo done"));
    let gone = running.follow("stdout");
    drop(gone);
    let answer = running.answer();
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
    let kept = instance.get(&format!("/v1/calls/{}/stdout", running.call_id));
    assert_eq!(kept.head.header("content-type"), Some("application/octet-stream"));
    assert!(kept.text().starts_with("up\n1\n") && kept.text().ends_with("\ndone\n"));
    let err = instance.get(&format!("/v1/calls/{}/stderr", running.call_id));
    assert_eq!((err.status(), err.body.len()), (200, 0));
}

#[test]
fn a_follower_that_does_not_read_stalls_the_program_and_the_wall_limit_ends_it() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::program("floods", &["0"]).limits(json!({ "wall_ms": 1500 }));
    let headers = [("Prefer", "respond-async, follow")];
    assert_eq!(instance.post_with("/v1/calls", &headers, &request.bytes()).status(), 202);
    let mut follower = instance.connect();
    follower.send("GET", &format!("/v1/calls/{}/stdout?follow=1", request.call_id()), &[], b"").unwrap();
    assert_eq!(follower.head().unwrap().status, 200);
    let path = format!("/v1/calls/{}", request.call_id());
    let answer: Answer =
        toolcell_tests::eventually("the wall limit", || serde_json::from_slice(&instance.get(&path).body).ok());
    assert_eq!(answer.verdict, Verdict::WallLimit);
    assert!(answer.usage.stdout_bytes.unwrap() < 8 << 20, "{:?}", answer.usage);
    // The control: nobody in the way, and the same program reaches the output limit long before.
    let free = instance.call(&request.id(&toolcell_tests::fresh_id()));
    assert_eq!(free.verdict, Verdict::OutputLimit);
}

#[test]
fn outputs_of_calls_side_by_side_do_not_mix() {
    needs!(Need::Root);
    let instance = Instance::start();
    std::thread::scope(|scope| {
        for n in 0..12 {
            let instance = &instance;
            scope.spawn(move || {
                let line = format!("for i in $(seq 200); do echo {n}; echo {n} >&2; done");
                let answer = instance.call(&Request::shell(&line));
                let expected = json!(format!("{n}\n").repeat(200));
                assert_eq!((json!(answer.stdout), json!(answer.stderr)), (expected.clone(), expected));
            });
        }
    });
}

#[test]
fn cut_output_is_cut_between_characters() {
    needs!(Need::Root);
    let instance = Instance::start();
    let line = "import sys; sys.stdout.buffer.write('é€😀'.encode() * 1000)";
    for keep in 100..110 {
        let request = Request::exec(&["python3", "-c", line]).limits(json!({ "output_keep_bytes": keep }));
        let answer = instance.call(&request);
        let kept = json!(answer.stdout).as_str().expect("still a text").to_owned();
        assert!(kept.chars().all(|c| "é€😀".contains(c)) && kept.len() <= keep, "{keep}: {kept}");
        let dropped = answer.truncated.stdout.unwrap().dropped_bytes;
        assert_eq!(u64::try_from(kept.len()).unwrap() + dropped, 9000, "{keep}");
    }
}

#[test]
fn output_that_is_no_utf_8_travels_as_base64() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::shell("printf 'a\\377\\000b'");
    let answer = instance.call(&request);
    assert_eq!(serde_json::to_value(&answer.stdout).unwrap(), json!({ "base64": "Yf8AYg==" }));
    assert_eq!(instance.get(&format!("/v1/calls/{}/stdout", request.call_id())).body, b"a\xff\0b");
    let bytes = Request::shell("od -An -tx1").with("stdin", json!({ "base64": "Yf8AYg==" }));
    assert_eq!(serde_json::to_value(instance.call(&bytes).stdout).unwrap(), " 61 ff 00 62\n");
}

#[test]
fn what_is_not_there_is_not_found() {
    needs!(Need::Root);
    let instance = Instance::start();
    for path in ["/", "/v1", "/v1/calls/none", "/v1/calls/none/stdout", "/v1/calls/none/stdin", "/v2/calls", "/metrics"]
    {
        drop(instance.get(path).problem(ErrorCode::NotFound));
    }
    drop(instance.post_with("/v1/calls/none/cancel", &[], b"").problem(ErrorCode::NotFound));
    let put = instance.connect().ask("PUT", "/v1/calls", &[], b"{}").unwrap();
    assert_eq!(put.status(), 405, "{}", put.text());
}

#[test]
fn one_connection_serves_many_requests_and_a_broken_one_harms_no_other() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut connection = instance.connect();
    for _ in 0..5 {
        let response = connection.ask("POST", "/v1/calls", &[], &Request::exec(&["true"]).bytes()).unwrap();
        assert_eq!(response.answer().verdict, Verdict::Exited { exit_code: 0 });
    }
    let mut broken = instance.connect();
    broken.send("NONSENSE\r\n\r\n", "\0", &[], b"").unwrap();
    let mut half = Connection::open(&instance.socket()).unwrap();
    half.send("POST", "/v1/calls", &[("Content-Type", "application/json")], b"{").unwrap();
    assert_eq!(instance.health().status, "ok");
}

#[test]
fn too_many_calls_at_once_are_told_to_come_back() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut accepted = Vec::new();
    let full = loop {
        assert!(accepted.len() < 4096, "the queue has a bound");
        let request = Request::exec(&["sleep", "50"]).limits(json!({ "memory_bytes": 8 << 20, "wall_ms": 60_000 }));
        let response = instance.post_with("/v1/calls", &[("Prefer", "respond-async")], &request.bytes());
        if response.status() != 202 {
            break response;
        }
        accepted.push(request);
    };
    assert!(full.head.header("retry-after").is_some(), "{:?}", full.head);
    let problem = full.problem(ErrorCode::QueueFull);
    assert!(problem.retryable);
    assert_eq!(instance.health().live_calls, u64::try_from(accepted.len()).unwrap());
    for request in &accepted {
        let path = format!("/v1/calls/{}/cancel", request.call_id());
        assert_eq!(instance.post_with(&path, &[], b"").status() / 100, 2);
    }
    toolcell_tests::eventually("every call to end", || (instance.health().live_calls == 0).then_some(()));
    assert_eq!(instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
}

#[test]
fn health_tells_what_runs() {
    needs!(Need::Root);
    let instance = Instance::start();
    let health = instance.health();
    assert_eq!((health.status.as_str(), health.live_calls), ("ok", 0));
    assert!(!health.ends_when_idle && !health.ablation);
    assert!(!health.build.is_empty() && health.instance.len() == 8, "{health:?}");
    let version: Value = serde_json::to_value(&health.version).unwrap();
    assert_eq!(version, env!("CARGO_PKG_VERSION"));
}
