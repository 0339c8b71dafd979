//! Who calls is said by the socket's credentials, and mounts are opened with the caller's rights.

use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use serde_json::{Value, json};
use toolcell_tests::{
    CellWatch, Finished, Instance, Need, Request, Setup, command, needs, run_with_input, workspace_root,
};
use toolcell_types::{ErrorCode, Verdict};

const POLICY: &str = r#"
[tools.show]
description = "Lists /data"
image = "host"
argv = ["ls", "/data"]
input_schema = { type = "object", additionalProperties = false }
permission = "allow"
roles = ["caller", "operator"]
effect_class = "read"
[tools.show.allow]
mounts = ["/"]
[tools.secret]
description = "For the operator"
image = "host"
argv = ["true"]
input_schema = { type = "object", additionalProperties = false }
permission = "allow"
roles = ["operator"]
effect_class = "read"
"#;

/// A user without a name, and without any group but its own.
const SOMEBODY: u32 = 54_321;

fn instance() -> Instance {
    let instance = Setup::default().policy("tools.toml", POLICY).flags(&["--socket-mode", "0666"]).start();
    std::fs::set_permissions(instance.home().dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    instance
}

/// Asks as somebody: status and body.
fn ask(instance: &Instance, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
    let script = workspace_root().join("tests/scripts/post.py");
    let readable = tempfile::NamedTempFile::new().unwrap();
    std::fs::copy(script, readable.path()).unwrap();
    std::fs::set_permissions(readable.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
    let mut python = command("/usr/bin/python3");
    python.arg(readable.path()).arg(instance.socket()).args([method, path]).uid(SOMEBODY).gid(SOMEBODY);
    let finished: Finished = run_with_input(&mut python, body).expect_code(0);
    let said = finished.text();
    let (head, body) = said.split_once('\n').unwrap();
    (head.split(' ').next().unwrap().parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

fn submit(instance: &Instance, request: &Request) -> (u16, Value) {
    ask(instance, "POST", "/v1/calls", &request.bytes())
}

#[test]
fn a_caller_sees_his_tools_and_only_his_calls() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = instance();
    let own = instance.call(&Request::tool("secret", json!({})));
    assert_eq!(own.verdict, Verdict::Exited { exit_code: 0 }, "the operator may");

    let (status, tools) = ask(&instance, "GET", "/v1/tools", b"");
    let names: Vec<&str> =
        tools["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!((status, names), (200, vec!["show"]));
    let (status, problem) = submit(&instance, &Request::tool("secret", json!({})));
    let unknown = submit(&instance, &Request::tool("nothing", json!({})));
    assert_eq!((status, problem["code"].as_str()), (404, Some("UNKNOWN_TOOL")));
    let words = |problem: &Value| problem["detail"].as_str().unwrap().replace("secret", "nothing");
    assert_eq!(words(&problem), words(&unknown.1), "not visible and not there are the same words");

    let path = format!("/v1/calls/{}", own.call_id);
    assert_eq!(instance.get(&path).status(), 200);
    for (method, path) in [
        ("GET", path.clone()),
        ("GET", format!("{path}/stdout")),
        ("GET", format!("{path}/stderr")),
        ("POST", format!("{path}/cancel")),
    ] {
        let (status, problem) = ask(&instance, method, &path, b"");
        assert_eq!((status, problem["code"].as_str()), (404, Some("NOT_FOUND")), "{method} {path}: {problem}");
    }
    let (_, calls) = ask(&instance, "GET", "/v1/calls", b"");
    assert_eq!(calls["calls"], json!([]));
}

#[test]
fn the_same_id_of_two_tenants_names_two_calls() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = instance();
    let request = Request::tool("show", json!({})).mount("/usr/share", "/data");
    let own = instance.post(&request);
    let (status, theirs) = submit(&instance, &request);
    assert_eq!(status, 200, "{theirs}");
    assert_eq!(theirs["verdict"]["exit_code"], 0);
    assert_ne!(theirs["receipt"], serde_json::to_value(own.answer().receipt).unwrap(), "no replay of another's call");
}

#[test]
fn a_mount_that_the_caller_may_not_read_is_refused_and_no_privilege() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = instance();
    let secret = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(secret.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::create_dir(secret.path().join("inner")).unwrap();
    std::fs::write(secret.path().join("inner/file"), "x").unwrap();
    let path = secret.path().join("inner").to_string_lossy().into_owned();
    let request = Request::tool("show", json!({})).mount(&path, "/data");
    let mut cells = CellWatch::on(&instance);
    let (status, problem) = submit(&instance, &request);
    assert_eq!((status, problem["code"].as_str()), (403, Some("PERMISSION_DENIED")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains(&path), "{problem}");
    assert_eq!(cells.cells(), 0);
    let root = instance.call(&request);
    assert_eq!(root.verdict, Verdict::Exited { exit_code: 0 }, "root may: the control");

    std::fs::set_permissions(secret.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let (status, answer) = submit(&instance, &request.clone().id(&toolcell_tests::fresh_id()));
    assert_eq!((status, answer["stdout"].as_str()), (200, Some("file\n")), "and so may he, once it is open: {answer}");
}

#[test]
fn a_socket_for_the_operator_alone_lets_nobody_else_in() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = Instance::start();
    let mode = std::fs::metadata(instance.socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::set_permissions(instance.home().dir(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = "import socket,sys\ntry:\n socket.socket(socket.AF_UNIX).connect(sys.argv[1])\nexcept PermissionError:\n sys.exit(7)";
    let connect = |uid: u32| {
        let mut python = command("/usr/bin/python3");
        python.args(["-c", script]).arg(instance.socket()).uid(uid).gid(uid);
        toolcell_tests::run(&mut python).code
    };
    assert_eq!((connect(0), connect(SOMEBODY)), (0, 7));
}

#[test]
fn the_receipt_names_the_caller_by_credential() {
    needs!(Need::Root, Need::Tool("python3"));
    use base64::Engine as _;
    let instance = instance();
    let request = Request::tool("show", json!({})).mount("/usr/share", "/data").with("labels", json!({ "uid": "0" }));
    let (_, answer) = submit(&instance, &request);
    let payload = base64::engine::general_purpose::STANDARD.decode(answer["receipt"]["payload"].as_str().unwrap());
    let statement: Value = serde_json::from_slice(&payload.unwrap()).unwrap();
    let submitter = &statement["predicate"]["authorization"]["submitter"];
    assert_eq!(submitter["role"], "caller");
    assert_eq!((&submitter["peer"]["uid"], &submitter["peer"]["gid"]), (&json!(SOMEBODY), &json!(SOMEBODY)));
}

#[test]
fn only_the_operator_reads_the_whole_log() {
    needs!(Need::Root, Need::Tool("python3"));
    let instance = instance();
    drop(instance.call(&Request::tool("secret", json!({}))));
    let (status, page) = ask(&instance, "GET", "/v1/receipts", b"");
    match status {
        200 => assert_eq!(page["receipts"].as_array().map(Vec::len), Some(0), "none of another's: {page}"),
        403 => assert_eq!(page["code"], ErrorCode::RoleDenied.as_str()),
        _ => panic!("{status}: {page}"),
    }
    assert_eq!(instance.receipts().len(), 3, "the control");
}
