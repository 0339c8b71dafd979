//! Receipts, checked by `toolcell verify`, by libraries that others wrote, and by OpenSSL; and the chain of the log.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::Digest as _;
use toolcell_tests::{Finished, Instance, Need, Request, Running, command, needs, run, toolcell, workspace_root};
use toolcell_types::{Envelope, KeysPage, PREDICATE_GENESIS, PREDICATE_INTENT, PREDICATE_OUTCOME, Sha256};

/// A receipt on disk with its key and its request, as the command line writes them.
struct Evidence {
    _dir: tempfile::TempDir,
    receipt: PathBuf,
    key: PathBuf,
    request: PathBuf,
}

impl Evidence {
    fn gather(instance: &Instance, argv: &[&str], code: i32) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let (receipt, key, request) = (at("receipt.json"), at("public.pem"), at("request.json"));
        let mut line = vec!["run", "--receipt", text(&receipt), "--request-out", text(&request), "--"];
        line.extend(argv);
        assert_eq!(run(&mut instance.cli(&line)).expect_code(code).code, code);
        std::fs::write(&key, run(&mut instance.cli(&["keys", "show"])).expect_code(0).stdout).unwrap();
        Self { _dir: dir, receipt, key, request }
    }

    fn envelope(&self) -> Envelope {
        serde_json::from_slice(&std::fs::read(&self.receipt).unwrap()).unwrap()
    }

    fn verify(&self, receipt: &Path) -> Finished {
        run(&mut toolcell(&["verify", text(receipt), "--key", text(&self.key), "--request", text(&self.request)]))
    }

    fn openssl(&self, receipt: &Path) -> Finished {
        let script = workspace_root().join("tests/scripts/verify-receipt.sh");
        run(command("bash").arg(script).arg(&self.key).arg(receipt))
    }

    fn python(&self, arguments: &[&str]) -> Finished {
        let script = workspace_root().join("tests/scripts/verify_receipt.py");
        run(command(toolcell_tests::venv_python()).arg(script).args(arguments))
    }

    /// A copy with another envelope.
    fn forged(&self, envelope: &Envelope) -> PathBuf {
        let path = self.receipt.with_extension("forged");
        std::fs::write(&path, serde_json::to_vec(envelope).unwrap()).unwrap();
        path
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn payload_of(envelope: &Envelope) -> Value {
    serde_json::from_slice(&STANDARD.decode(&envelope.payload).unwrap()).unwrap()
}

#[test]
fn a_receipt_verifies_with_toolcell_securesystemslib_and_openssl() {
    needs!(Need::Root, Need::PythonVerifiers, Need::Tool("openssl"), Need::Tool("jq"));
    let instance = Instance::start();
    let evidence = Evidence::gather(&instance, &["sh", "-c", "echo out; exit 3"], 3);
    let finished = evidence.verify(&evidence.receipt).expect_code(0);
    assert!(!finished.text().is_empty() || !finished.stderr.is_empty(), "it says what it checked");
    let (key, receipt, request) = (text(&evidence.key), text(&evidence.receipt), text(&evidence.request));
    assert_eq!(evidence.python(&[key, receipt, request]).expect_code(0).text(), "holds\n");
    let openssl = evidence.openssl(&evidence.receipt).expect_code(0);
    assert!(openssl.text().contains("Signature Verified Successfully"), "{}", openssl.text());
}

#[test]
fn any_changed_byte_of_payload_type_or_signature_fails_everywhere() {
    needs!(Need::Root, Need::PythonVerifiers, Need::Tool("openssl"), Need::Tool("jq"));
    let instance = Instance::start();
    let evidence = Evidence::gather(&instance, &["true"], 0);
    let flips = evidence.python(&["--flip", text(&evidence.key), text(&evidence.receipt)]).expect_code(0);
    assert!(flips.text().trim().parse::<usize>().unwrap() > 1000, "{}", flips.text());

    let good = evidence.envelope();
    assert_eq!(evidence.verify(&evidence.forged(&good)).code, 0, "the control: written again it holds");
    let payload = STANDARD.decode(&good.payload).unwrap();
    let signature = STANDARD.decode(&good.signatures[0].sig).unwrap();
    let step = payload.len() / 40;
    for at in (0..payload.len()).step_by(step).chain([payload.len() - 1]) {
        let forged = evidence.forged(&Envelope { payload: flipped(&payload, at), ..good.clone() });
        assert_eq!(evidence.verify(&forged).code, 1, "payload byte {at}");
        if at % (8 * step) == 0 {
            assert_ne!(evidence.openssl(&forged).code, 0, "payload byte {at}");
        }
    }
    for at in 0..signature.len() {
        let mut envelope = good.clone();
        envelope.signatures[0].sig = flipped(&signature, at);
        let forged = evidence.forged(&envelope);
        assert_eq!(evidence.verify(&forged).code, 1, "signature byte {at}");
        if at % 16 == 0 {
            assert_ne!(evidence.openssl(&forged).code, 0, "signature byte {at}");
        }
    }
    for at in 0..good.payload_type.len() {
        let mut kind = good.payload_type.clone().into_bytes();
        kind[at] ^= 1;
        let envelope = Envelope { payload_type: String::from_utf8(kind).unwrap(), ..good.clone() };
        let forged = evidence.forged(&envelope);
        assert_eq!(evidence.verify(&forged).code, 1, "type byte {at}");
        if at % 10 == 0 {
            assert_ne!(evidence.openssl(&forged).code, 0, "type byte {at}");
        }
    }
}

fn flipped(bytes: &[u8], at: usize) -> String {
    let mut bytes = bytes.to_vec();
    bytes[at] ^= 1 << (at % 8);
    STANDARD.encode(bytes)
}

#[test]
fn verify_says_what_failed() {
    needs!(Need::Root, Need::Tool("openssl"));
    let instance = Instance::start();
    let evidence = Evidence::gather(&instance, &["true"], 0);
    let other = Evidence::gather(&instance, &["false"], 1);

    let wrong = run(&mut toolcell(&[
        "verify",
        text(&evidence.receipt),
        "--key",
        text(&evidence.key),
        "--request",
        text(&other.request),
    ]));
    let said = format!("{}{}", wrong.text(), wrong.stderr);
    assert_eq!(wrong.code, 1);
    assert!(said.contains("request") && said.contains("FAILED"), "{said}");

    let foreign = evidence.key.with_extension("foreign");
    let secret = evidence.key.with_extension("secret");
    let make = run(command("openssl").args(["genpkey", "-algorithm", "ed25519", "-out", text(&secret)]));
    assert_eq!(make.code, 0, "{}", make.stderr);
    let show = run(command("openssl").args(["pkey", "-in", text(&secret), "-pubout", "-out", text(&foreign)]));
    assert_eq!(show.code, 0, "{}", show.stderr);
    let wrong = run(&mut toolcell(&["verify", text(&evidence.receipt), "--key", text(&foreign)]));
    assert_eq!(wrong.code, 1);
    assert!(format!("{}{}", wrong.text(), wrong.stderr).contains("signature"), "{}", wrong.text());

    for (name, text_of) in [("empty", ""), ("list", "[]"), ("twice", "{\"payload\":\"\",\"payload\":\"\"}")] {
        let path = evidence.receipt.with_extension(name);
        std::fs::write(&path, text_of).unwrap();
        let wrong = run(&mut toolcell(&["verify", text(&path), "--key", text(&evidence.key)]));
        assert_eq!(wrong.code, 1, "{name}: {}{}", wrong.text(), wrong.stderr);
    }
}

#[test]
fn verify_without_a_key_takes_the_state_s_own_and_says_so() {
    needs!(Need::Root);
    let instance = Instance::start();
    let evidence = Evidence::gather(&instance, &["true"], 0);
    let state = instance.home().state();
    let finished = run(&mut toolcell(&["verify", text(&evidence.receipt), "--state", text(&state)])).expect_code(0);
    let said = format!("{}{}", finished.text(), finished.stderr);
    assert!(said.contains(text(&state)), "{said}");
    let home = instance.stop();
    let finished = run(&mut toolcell(&["verify", text(&evidence.receipt), "--state", text(&home.state())]));
    assert_eq!(finished.code, 0, "offline: {}{}", finished.text(), finished.stderr);
}

#[test]
fn the_subject_is_the_digest_of_the_request_and_the_request_can_be_made_beforehand() {
    needs!(Need::Root);
    let instance = Instance::start();
    let request = Request::shell("true").with("labels", json!({ "b": "2", "a": "1" }));
    // RFC 8785 of these members: sorted by name, no blanks; all texts here are plain ASCII.
    let canonical = sorted(&request.value()).to_string();
    let answer = instance.call(&request);
    let statement = payload_of(&answer.receipt);
    let digest = Sha256(sha2::Sha256::digest(canonical.as_bytes()).into()).hex();
    assert_eq!(statement["subject"][0]["digest"]["sha256"], digest.as_str());
    assert_eq!(statement["subject"].as_array().map(Vec::len), Some(1));
    assert_eq!(statement["predicateType"], PREDICATE_OUTCOME);
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort();
            Value::Object(names.into_iter().map(|name| (name.clone(), sorted(&members[name]))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[test]
fn the_log_is_one_chain_from_the_key_to_the_last_outcome() {
    needs!(Need::Root, Need::PythonVerifiers);
    let instance = Instance::start();
    for line in ["true", "exit 1", "echo x"] {
        drop(instance.call(&Request::shell(line)));
    }
    let instance = instance.stop().start();
    drop(instance.call(&Request::shell("true")));
    let entries = instance.receipts();
    assert_eq!(entries.len(), 1 + 2 * 4, "a genesis, and intent and outcome of four calls");
    let keys: KeysPage = instance.get("/v1/keys").json();
    let dir = tempfile::tempdir().unwrap();
    let (pem, file) = (dir.path().join("k.pem"), dir.path().join("r.json"));
    std::fs::write(&pem, &keys.keys[0].pem).unwrap();

    let mut previous = Sha256([0; 32]);
    for (at, entry) in (0_u64..).zip(&entries) {
        let payload = STANDARD.decode(&entry.envelope.payload).unwrap();
        let leaf = Sha256(sha2::Sha256::digest([&[0], payload.as_slice()].concat()).into());
        assert_eq!((entry.index, entry.leaf), (at, leaf));
        let statement = payload_of(&entry.envelope);
        let log = &statement["predicate"]["log"];
        assert_eq!(log["index"], at);
        assert_eq!(log["previous"]["sha256"], previous.hex().as_str());
        let kind = statement["predicateType"].as_str().unwrap();
        let expected = [PREDICATE_INTENT, PREDICATE_OUTCOME][usize::from(at % 2 == 0)];
        assert_eq!(kind, if at == 0 { PREDICATE_GENESIS } else { expected });
        if kind == PREDICATE_OUTCOME {
            assert_eq!(log["intentIndex"], at - 1);
        }
        if at > 0 {
            assert_eq!(statement["predicate"]["controls"]["mode"], "production");
        }
        previous = leaf;
        std::fs::write(&file, serde_json::to_vec(&entry.envelope).unwrap()).unwrap();
        let script = workspace_root().join("tests/scripts/verify_receipt.py");
        let held = run(command(toolcell_tests::venv_python()).arg(script).args([&pem, &file])).expect_code(0);
        assert_eq!(held.text(), "holds\n");
    }
}

#[test]
fn an_accepted_call_carries_its_signed_intent() {
    needs!(Need::Root);
    let instance = Instance::start();
    let running = Running::until_up(&instance, &Request::program("waits", &[]));
    let statement = payload_of(&running.accepted.intent);
    assert_eq!(statement["predicateType"], PREDICATE_INTENT);
    assert_eq!(running.now().status(), 200);
    let listed = instance.receipts().into_iter().find(|entry| entry.envelope == running.accepted.intent);
    assert!(listed.is_some(), "and it is in the log while the program runs");
    assert_eq!(running.cancel().status() / 100, 2);
    assert_ne!(running.answer().receipt, running.accepted.intent);
}

#[test]
fn the_answer_is_what_the_receipt_says() {
    needs!(Need::Root);
    let instance = Instance::start();
    let answer = instance.call(&Request::shell("echo hello; exit 2"));
    let predicate = &payload_of(&answer.receipt)["predicate"];
    let words = predicate.to_string();
    let outcome = &predicate["outcome"];
    assert_eq!(outcome["termination"], json!(answer.verdict));
    assert_eq!((&outcome["state"], &outcome["status"]), (&json!(answer.state), &json!(answer.status)));
    assert_eq!((&outcome["is_error"], &outcome["tree_gone"]), (&json!(true), &json!(true)));
    assert_eq!(outcome["effect"]["value"], json!(answer.effect));
    assert_eq!((&outcome["revision"], &outcome["error"]), (&json!(answer.revision), &json!(answer.error)));
    let named = |list: &str, name: &str| {
        let items = match list {
            "byproducts" => &predicate["runDetails"]["byproducts"],
            _ => &predicate["executionDefinition"]["resolvedDependencies"],
        };
        let item = items.as_array().unwrap().iter().find(|item| item["name"] == name);
        item.unwrap_or_else(|| panic!("no {name} among {items}"))["digest"]["sha256"].clone()
    };
    assert_eq!(named("resolvedDependencies", "policy"), answer.policy.hex().as_str());
    assert_eq!(named("byproducts", "stdout"), Sha256(sha2::Sha256::digest(b"hello\n").into()).hex().as_str());
    assert_eq!(named("byproducts", "stderr"), Sha256(sha2::Sha256::digest(b"").into()).hex().as_str());
    assert!(!words.contains("echo hello"), "no argument values in a receipt");
    let items = predicate["controls"]["items"].as_array().expect("the controls are listed");
    assert_eq!(items.len(), 29);
}

#[test]
fn a_lost_key_or_another_owner_of_it_is_refused() {
    needs!(Need::Root);
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let instance = Instance::start();
    let signer_uid = instance.signer().uid;
    let home = instance.stop();
    let signer = home.state().join("signer");
    let mut keys = 0;
    for entry in std::fs::read_dir(&signer).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.metadata().unwrap();
        assert_eq!(meta.uid(), signer_uid, "{}", path.display());
        if std::fs::read_to_string(&path).unwrap_or_default().contains("PRIVATE KEY") {
            assert_eq!(meta.mode() & 0o777, 0o600, "{}", path.display());
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
            keys += 1;
        }
    }
    assert_eq!(keys, 1, "one private key");
    let (home, failed) = home.fails_to_start();
    assert_ne!(failed.code, 0);
    assert!(failed.stderr.contains("signer") || failed.stderr.contains("key"), "{}", failed.stderr);
    drop(home);
}
