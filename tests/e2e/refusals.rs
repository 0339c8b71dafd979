//! What is refused, with the contract's code, before a cell exists.

use serde_json::{Value, json};
use toolcell_tests::{CellWatch, Instance, Need, Request, Response, Setup, needs};
use toolcell_types::{ErrorCode, Verdict};

/// Submits, and sees that neither a cell nor an entry of the log came of it.
struct Quiet<'a> {
    instance: &'a Instance,
    cells: CellWatch,
    entries: usize,
}

impl<'a> Quiet<'a> {
    fn on(instance: &'a Instance) -> Self {
        Self { instance, cells: CellWatch::on(instance), entries: instance.receipts().len() }
    }

    fn refuses(&mut self, request: &Request, code: ErrorCode, names: &str) {
        let what = request.value().to_string();
        let what: String = what.chars().take(300).collect();
        let response = self.instance.post(request);
        assert_eq!(response.status(), code.status(), "{what}: {}", response.text());
        let problem = response.problem(code);
        let said = format!("{} {}", problem.detail, problem.remedy);
        assert!(said.contains(names), "{what}: expected {names:?} in {said}");
        assert_eq!(self.cells.cells(), 0, "no cell: {what}");
        assert_eq!(self.instance.receipts().len(), self.entries, "no entry: {what}");
    }
}

impl Drop for Quiet<'_> {
    /// The control: the same instance, asked rightly, builds a cell and writes two entries.
    fn drop(&mut self) {
        if !std::thread::panicking() {
            assert_eq!(self.instance.call(&Request::exec(&["true"])).verdict, Verdict::Exited { exit_code: 0 });
            assert_eq!((self.cells.cells(), self.instance.receipts().len()), (1, self.entries + 2));
        }
    }
}

fn python(args: Value) -> Request {
    Request::tool("python", args)
}

#[test]
fn arguments_that_do_not_fit_the_schema() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut quiet = Quiet::on(&instance);
    let code = ErrorCode::InvalidArguments;
    quiet.refuses(&python(json!({})), code, "code");
    quiet.refuses(&python(json!({ "code": 1 })), code, "code");
    quiet.refuses(&python(json!({ "code": "1", "more": 2 })), code, "more");
    quiet.refuses(&python(json!({ "code": "x".repeat(65_537) })), code, "code");
    quiet.refuses(&Request::tool("exec", json!({ "argv": [] })), code, "argv");
    quiet.refuses(&Request::tool("exec", json!({ "argv": "ls" })), code, "argv");
    quiet.refuses(&Request::tool("exec", json!({ "argv": ["ls"], "cwd": "relative" })), code, "cwd");
    let problem = instance.post(&python(json!({ "code": 1 }))).problem(code);
    let schema = problem.expected_schema.expect("the schema that they have to fit");
    assert_eq!(schema["properties"]["code"]["type"], "string");
}

#[test]
fn tools_that_do_not_exist() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut quiet = Quiet::on(&instance);
    for name in ["nothing", "Python", "", "python "] {
        quiet.refuses(&Request::tool(name, json!({})), ErrorCode::UnknownTool, "tool");
    }
}

#[test]
fn members_that_are_unknown_or_not_in_this_version() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut quiet = Quiet::on(&instance);
    let good = Request::exec(&["true"]);
    let code = ErrorCode::InvalidRequest;
    quiet.refuses(&good.clone().with("nonsense", json!(1)), code, "nonsense");
    for (member, value) in [
        ("key", json!("k")),
        ("session", json!("s")),
        ("files", json!([{ "inside": "/tmp/a", "content": "x" }])),
        ("outputs", json!(["/tmp/a"])),
        ("expect_revision", json!(format!("sha256:{}", "0".repeat(64)))),
        ("expect_policy", json!(format!("sha256:{}", "0".repeat(64)))),
        ("preconditions", json!(["p"])),
    ] {
        quiet.refuses(&good.clone().with(member, value.clone()), code, member);
        quiet.refuses(&good.clone().with(member, value), code, "not in this version");
    }
    quiet.refuses(&good.clone().with("ablate", json!(["seccomp"])), ErrorCode::AblationRefused, "");
    let writable = json!([{ "host": "/usr", "inside": "/data", "mode": "rw" }]);
    quiet.refuses(&good.clone().with("mounts", writable), code, "not in this version");
    quiet.refuses(&good.clone().limits(json!({ "wall": 5 })), code, "wall");
}

#[test]
fn values_outside_the_bounds() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut quiet = Quiet::on(&instance);
    let good = Request::exec(&["true"]);
    let code = ErrorCode::InvalidRequest;
    for id in ["", "-a", "a b", "../a", &"x".repeat(129)] {
        quiet.refuses(&good.clone().id(id), code, "call_id");
    }
    for value in [json!(0), json!(-1), json!(1.5), json!("10"), json!(9_007_199_254_740_991_u64)] {
        quiet.refuses(&good.clone().limits(json!({ "wall_ms": value })), code, "wall_ms");
        quiet.refuses(&good.clone().limits(json!({ "memory_bytes": value })), code, "memory_bytes");
    }
    quiet.refuses(&good.clone().with("deadline_ms", json!(0)), code, "deadline_ms");
    quiet.refuses(&good.clone().with("labels", json!({ "a": "x".repeat(257) })), code, "labels");
    quiet.refuses(&good.clone().with("env", json!({ "1A": "x" })), code, "env");
    quiet.refuses(&good.clone().with("env", json!({ "A": "x\u{0}y" })), code, "env");
    quiet.refuses(&good.clone().with("stdin", json!({ "base64": "###" })), code, "stdin");
    let mounts: Vec<Value> =
        (0..65).map(|n| json!({ "host": "/usr", "inside": format!("/m{n}"), "mode": "ro" })).collect();
    quiet.refuses(&good.clone().with("mounts", json!(mounts)), code, "64");
}

#[test]
fn limits_beyond_what_the_policy_allows() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut quiet = Quiet::on(&instance);
    let code = ErrorCode::PermissionDenied;
    quiet.refuses(&Request::exec(&["true"]).limits(json!({ "wall_ms": 3_600_001 })), code, "wall_ms");
    quiet.refuses(&Request::exec(&["true"]).limits(json!({ "pids": 1025 })), code, "pids");
    quiet.refuses(&python(json!({ "code": "1" })).limits(json!({ "wall_ms": 10_001 })), code, "wall_ms");
    quiet.refuses(&python(json!({ "code": "1" })).with("env", json!({ "A": "b" })), code, "A");
    quiet.refuses(&python(json!({ "code": "1" })).mount("/usr/share", "/data"), code, "/usr/share");
}

#[test]
fn bytes_that_are_no_strict_json() {
    needs!(Need::Root);
    let instance = Instance::start();
    let entries = instance.receipts().len();
    let mut cells = CellWatch::on(&instance);
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    for body in [
        "",
        "nonsense",
        "[]",
        "\u{feff}{}",
        r#"{"call_id":"a","call_id":"b","tool":"exec","args":{"argv":["true"]}}"#,
        r#"{"call_id":"a","tool":"exec","args":{"argv":["true"],"argv":["false"]}}"#,
        r#"{"call_id":"a","tool":"exec","args":{"argv":["\ud800"]}}"#,
        r#"{"call_id":"a","tool":"exec","args":{"argv":["true"]},"deadline_ms":9007199254740993}"#,
        r#"{"call_id":"a","tool":"exec","args":{"argv":["true"]}} trailing"#,
        &format!(r#"{{"call_id":"a","tool":"exec","args":{{"argv":{deep}}}}}"#),
    ] {
        drop(instance.post_with("/v1/calls", &[], body.as_bytes()).problem(ErrorCode::InvalidRequest));
    }
    let latin = b"{\"call_id\":\"a\",\"tool\":\"exec\",\"args\":{\"argv\":[\"\xe4\"]}}";
    drop(instance.post_with("/v1/calls", &[], latin).problem(ErrorCode::InvalidRequest));
    assert_eq!((cells.cells(), instance.receipts().len()), (0, entries));
    let good = br#"{"call_id":"a","tool":"exec","args":{"argv":["true"]}}"#;
    assert_eq!(instance.post_with("/v1/calls", &[], good).status(), 200, "the control");
}

#[test]
fn a_body_of_more_than_four_mebibytes() {
    needs!(Need::Root);
    let instance = Instance::start();
    let mut quiet = Quiet::on(&instance);
    let request = |size: usize| Request::shell("wc -c").with("stdin", json!("x".repeat(size)));
    let response: Response = instance.post(&request(4 << 20));
    assert!([400, 413].contains(&response.status()), "{}", response.text());
    let problem: Value = response.json();
    assert_eq!(problem["code"], "INVALID_REQUEST");
    assert_eq!(quiet.cells.cells(), 0);
    drop(quiet);
    let answer = instance.call(&request((4 << 20) - 4096));
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 });
}

#[test]
fn mounts_of_our_own_places_and_of_the_kernel_s() {
    needs!(Need::Root);
    let instance = Instance::start();
    let state = instance.home().state().to_string_lossy().into_owned();
    let dir = instance.home().dir().to_string_lossy().into_owned();
    let link = instance.home().dir().join("link");
    std::os::unix::fs::symlink(instance.home().state(), &link).unwrap();
    let link = link.to_string_lossy().into_owned();
    let groups = instance.cgroup_dir("memory").to_string_lossy().into_owned();
    let mut cells = CellWatch::on(&instance);
    let entries = instance.receipts().len();
    let below = format!("{state}/signer");
    let hosts = [
        state.as_str(),
        &below,
        &dir,
        &link,
        &groups,
        "/",
        "/var",
        "/proc",
        "/proc/1",
        "/sys",
        "/sys/kernel",
        "/dev",
        "/dev/null",
        "/run",
        "/sys/fs/cgroup",
        "/nowhere/at/all",
        "/usr/../etc",
    ];
    for host in hosts {
        refused_mount(&instance.post(&Request::exec(&["true"]).mount(host, "/data")), host);
    }
    for inside in ["/", "/proc", "/dev/x", "/etc", "/usr/share", "/bin", "data", "/data/../etc"] {
        refused_mount(&instance.post(&Request::exec(&["true"]).mount("/usr/share", inside)), inside);
    }
    assert_eq!((cells.cells(), instance.receipts().len()), (0, entries), "no cell and no entry for any of them");
    let answer = instance.call(&Request::exec(&["ls", "/data"]).mount("/usr/share", "/data"));
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "the control");
}

/// A mount is refused as malformed or as not allowed, and named.
fn refused_mount(response: &Response, path: &str) {
    let problem: Value = response.json();
    let code = problem["code"].as_str().unwrap_or_default();
    assert!(["INVALID_REQUEST", "PERMISSION_DENIED"].contains(&code), "{path}: {}", response.text());
    let status = if code == "INVALID_REQUEST" { 400 } else { 403 };
    assert_eq!(response.status(), status, "{path}");
    assert!(problem["detail"].as_str().unwrap_or_default().contains(path), "{path}: {}", response.text());
}

#[test]
fn a_deadline_that_has_passed_while_waiting() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::program("waits", &[]).with("deadline_ms", json!(400)));
    assert_eq!(answer.verdict, Verdict::WallLimit, "the deadline covers the run");
    assert!(answer.usage.wall_us.unwrap() < 5_000_000);
}

const POLICY: &str = r#"
[tools.look]
description = "Lists a directory"
image = "host"
argv = ["ls", "{path}"]
input_schema = { type = "object", required = ["path"], additionalProperties = false, properties = { path = { type = "string" } } }
permission = "allow"
roles = ["operator"]
effect_class = "read"
complete_exit_codes = [0]
[tools.look.limits]
wall_ms = 2000
"#;

#[test]
fn bad_policy_files_say_file_and_line_and_nothing_starts() {
    needs!(Need::Root);
    let good = Setup::default().policy("tools.toml", POLICY).start();
    let answer = good.call(&Request::tool("look", json!({ "path": "/usr" })));
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "the control");
    drop(good.post(&Request::exec(&["true"])).problem(ErrorCode::UnknownTool));
    drop(good);

    let line_of = |needle: &str| POLICY.lines().position(|line| line.contains(needle)).unwrap() + 1;
    for (from, to, names) in [
        ("permission =", "permision =", "permision"),
        ("permission = \"allow\"", "permission = \"maybe\"", "maybe"),
        ("roles = [\"operator\"]", "roles = [\"root\"]", "root"),
        ("effect_class = \"read\"", "effect_class = \"reads\"", "reads"),
        ("image = \"host\"", "image = \"nothing\"", "nothing"),
        ("wall_ms = 2000", "wall_ms = 0", "wall_ms"),
        ("wall_ms = 2000", "wall_s = 2", "wall_s"),
        ("argv = [\"ls\", \"{path}\"]", "argv = []", "argv"),
        ("argv = [\"ls\", \"{path}\"]", "argv = [\"ls\", \"{other}\"]", "other"),
        ("complete_exit_codes = [0]", "complete_exit_codes = [0", ""),
    ] {
        let failed = Setup::default().policy("tools.toml", &POLICY.replace(from, to)).fails_to_start();
        assert_ne!(failed.code, 0, "{to}");
        assert!(failed.stderr.contains("tools.toml"), "{to}: {}", failed.stderr);
        assert!(failed.stderr.contains(names), "{to}: {}", failed.stderr);
        let place = format!(":{}", line_of(from));
        let words = format!("line {}", line_of(from));
        assert!(failed.stderr.contains(&place) || failed.stderr.contains(&words), "{to}: {}", failed.stderr);
    }
    let failed = Setup::default().policy("tools.toml", POLICY).policy("tols.toml", "").fails_to_start();
    assert!(failed.code != 0 && failed.stderr.contains("tols.toml"), "{}", failed.stderr);
    let failed = Setup::default().policy("rules.toml", "").fails_to_start();
    assert!(failed.code != 0 && failed.stderr.contains("rules.toml"), "{}", failed.stderr);
}

#[test]
fn a_tool_that_the_policy_denies() {
    needs!(Need::Root);
    let policy = POLICY.replace("permission = \"allow\"", "permission = \"deny\"");
    let instance = Setup::default().policy("tools.toml", &policy).start();
    let mut cells = CellWatch::on(&instance);
    let entries = instance.receipts().len();
    let response = instance.post(&Request::tool("look", json!({ "path": "/usr" })));
    drop(response.problem(ErrorCode::PermissionDenied));
    assert_eq!((cells.cells(), instance.receipts().len()), (0, entries));
}
