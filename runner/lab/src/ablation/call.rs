//! One probe in one cell: what is set up for it, asked, checked and judged.

use std::path::Path;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde_json::{Value, json};
use toolcell_client::{CallReply, Client, ClientError};
use toolcell_receipts::verify::{Mode, verify_of};
use toolcell_types::{Answer, CallId, ControlId, ControlState, ErrorCode, OutputText};

use super::error::AblationError;
use super::judge::{Asked, Seen, judge};
use super::matrix::{Key, Trial};
use super::outcome::Outcome;
use super::outside::{Outside, Place, Secret, Told};
use super::probe::{Language, Probe};
use super::programs::{NotRun, Programs};
use super::words::Class;

/// How long one call may take, whatever its limits; then it is cancelled.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long it is tried again where too many calls are in flight.
const CROWDED: Duration = Duration::from_secs(30);
const PAUSE: Duration = Duration::from_millis(20);
/// Where a C program is put, inside; with the mount namespace off that is the machine's own.
const SCRATCH: &str = "/tmp";

/// What all calls have in common.
#[derive(Debug)]
pub(super) struct Caller {
    pub(super) client: Client,
    /// The public key of the instance, PEM.
    pub(super) key: String,
    /// What kind of instance its receipts are of.
    pub(super) mode: Mode,
    /// Controls that the operator accepted as missing.
    pub(super) accepted: Vec<ControlId>,
    /// The secret in the instance's environment, if it has one.
    pub(super) canary: Option<Secret>,
    pub(super) programs: Programs,
    pub(super) place: Place,
}

impl Caller {
    /// Runs `probe` with the controls of `key` off.
    pub(super) async fn call(&self, probe: &Probe, key: &Key) -> Result<Trial, AblationError> {
        let program = match self.programs.of(probe) {
            Ok(program) => program,
            Err(NotRun { why }) => return Ok(Trial::of(Outcome::NotRun { why })),
        };
        if self.canary.is_none()
            && probe.class() == Class::Secrets
            && probe.stopped_by() == [ControlId::EnvironmentAllowlist]
        {
            let why = "the instance has no PROBE_CANARY in its environment that is known here: give both the same, or leave --socket out";
            return Ok(Trial::of(Outcome::NotApplicable { why: why.to_owned() }));
        }
        let mut outside = Outside::set_up(probe.needs(), &self.place).await?;
        let name = format!("probe-{}", super::outside::token()?);
        let request = request(probe, &key.off, &outside.arguments(), (program, &name));
        let (id, body) = (request.id, Bytes::from(request.body.to_string()));
        let replied = self.reply(&id, &body, !key.off.is_empty()).await;
        let has_left = clean_up(probe, &name);
        let reply = match replied? {
            Replied::Answer(reply) => reply,
            Replied::Refused(outcome) => return Ok(Trial::of(outcome)),
        };
        self.verify(probe, &reply.answer, &body)?;
        let seen = self.see(probe, &reply.answer, &mut outside).await?;
        let asked = Asked { off: &key.off, accepted: &self.accepted };
        let fell = seen.controls.iter().filter(|(id, state)| *state == ControlState::Ablated && !key.off.contains(id));
        let unavailable = seen.controls.iter().filter(|(_, state)| *state == ControlState::Unavailable);
        Ok(Trial {
            outcome: judge(asked, &seen),
            fell: fell.map(|(id, _)| *id).collect(),
            unavailable: unavailable.map(|(id, _)| *id).collect(),
            left: has_left,
        })
    }

    async fn reply(&self, id: &str, body: &Bytes, is_ablated: bool) -> Result<Replied, AblationError> {
        let began = Instant::now();
        loop {
            let called = tokio::time::timeout(PATIENCE, self.client.call(body.clone())).await;
            let error = match called {
                Ok(Ok(reply)) => return Ok(Replied::Answer(Box::new(reply))),
                Ok(Err(error)) => error,
                Err(_elapsed) => {
                    // Its cell goes; whether the wish is heard changes nothing of what is told.
                    if let Ok(call) = CallId::new(id) {
                        drop(self.client.cancel(&call).await);
                    }
                    let why = format!("it was not over after {} s, and was cancelled", PATIENCE.as_secs());
                    return Ok(Replied::Refused(Outcome::Broken { why }));
                }
            };
            let code = error.problem().map(|problem| problem.code);
            match code {
                Some(ErrorCode::QueueFull) if began.elapsed() < CROWDED => tokio::time::sleep(PAUSE).await,
                Some(ErrorCode::AblationRefused) => return Err(AblationError::NotAblating),
                Some(ErrorCode::ControlUnavailable | ErrorCode::InvalidRequest) if is_ablated => {
                    return Ok(Replied::Refused(Outcome::NotPossible { why: reason(&error) }));
                }
                _ => return Err(AblationError::Client { source: error }),
            }
        }
    }

    /// Sees, offline, that the receipt holds for this very request.
    fn verify(&self, probe: &Probe, answer: &Answer, body: &[u8]) -> Result<(), AblationError> {
        let wrong = |detail: String| AblationError::Receipt { probe: probe.id().to_owned(), detail };
        let receipt = serde_json::to_vec(&answer.receipt).map_err(|error| wrong(error.to_string()))?;
        let report = verify_of(self.mode, &receipt, self.key.as_bytes(), Some(body));
        if report.holds() { Ok(()) } else { Err(wrong(report.to_string())) }
    }

    async fn see(&self, probe: &Probe, answer: &Answer, outside: &mut Outside) -> Result<Seen, AblationError> {
        let last_line = last_line(&answer.stdout);
        let told =
            Told { last_line: &last_line, throttled_us: answer.usage.throttled_us, canary: self.canary.as_ref() };
        let mut witnesses = Vec::new();
        for witness in probe.witness() {
            witnesses.push((*witness, outside.has_seen(*witness, &told).await?));
        }
        Ok(Seen {
            verdict: answer.verdict.clone(),
            complaint: last_line_of(&text(&answer.stderr)),
            controls: answer.controls.iter().filter_map(control).collect(),
            witnesses,
            last_line,
        })
    }
}

enum Replied {
    Answer(Box<CallReply>),
    Refused(Outcome),
}

/// In words: the problem's detail, which names the controls.
fn reason(error: &ClientError) -> String {
    error.problem().map_or_else(|| error.to_string(), |problem| problem.detail.clone())
}

struct Request {
    id: String,
    body: Value,
}

/// A probe gets into its cell by standard input: a mount would be a control of its own.
fn request(probe: &Probe, off: &[ControlId], arguments: &[String], (program, name): (&[u8], &str)) -> Request {
    let mut argv: Vec<String> = match probe.language() {
        Language::Python => ["python3", "-I", "-"].map(str::to_owned).into(),
        Language::Shell => ["/bin/sh", "-s", "--"].map(str::to_owned).into(),
        Language::C => {
            let path = format!("{SCRATCH}/{name}");
            let script = format!("cat > {path} && chmod 700 {path} && exec {path} \"$@\"");
            vec!["/bin/sh".to_owned(), "-c".to_owned(), script, "probe".to_owned()]
        }
    };
    argv.extend_from_slice(arguments);
    let id = uuid::Uuid::now_v7().to_string();
    let mut body = json!({
        "call_id": id,
        "tool": "exec",
        "args": {"argv": argv},
        "stdin": {"base64": STANDARD.encode(program)},
    });
    if let Some(members) = body.as_object_mut() {
        if !probe.limits().is_empty() {
            let _none = members.insert("limits".to_owned(), json!(probe.limits()));
        }
        if !off.is_empty() {
            let _none = members.insert("ablate".to_owned(), json!(off));
        }
    }
    Request { id, body }
}

/// Removes what a C program left where it was put, if that was the machine's own. Its path where it stays.
fn clean_up(probe: &Probe, name: &str) -> Option<String> {
    if probe.language() != Language::C {
        return None;
    }
    let path = Path::new(SCRATCH).join(name);
    match std::fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Some(path.to_string_lossy().into_owned()),
        Ok(()) | Err(_) => None,
    }
}

fn control(item: &Value) -> Option<(ControlId, ControlState)> {
    let id = ControlId::parse(item.get("id")?.as_str()?)?;
    Some((id, serde_json::from_value(item.get("state")?.clone()).ok()?))
}

fn text(output: &OutputText) -> String {
    match output {
        OutputText::Text(text) => text.clone(),
        OutputText::Base64 { base64 } => {
            String::from_utf8_lossy(&STANDARD.decode(base64).unwrap_or_default()).into_owned()
        }
    }
}

fn last_line(output: &OutputText) -> String {
    last_line_of(&text(output))
}

/// The last line that is not empty.
fn last_line_of(text: &str) -> String {
    text.lines().map(str::trim_end).rfind(|line| !line.is_empty()).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(file: &str, mark: &str) -> Probe {
        let text = "# class: ipc\n# tries: x\n# stopped-by: seccomp\n# limits: pids=8\n".replace('#', mark);
        let language = Language::of(file.rsplit_once('.').unwrap().1).unwrap();
        Probe::read(file, language, &text).unwrap()
    }

    #[test]
    fn a_probe_travels_by_standard_input_without_any_mount() {
        let arguments = ["shm=7".to_owned()];
        let asked = |probe: &Probe, off: &[ControlId]| request(probe, off, &arguments, (b"\x7fELF", "probe-1")).body;
        let python = asked(&probe("x.py", "#"), &[]);
        assert_eq!(python["args"]["argv"], json!(["python3", "-I", "-", "shm=7"]));
        assert_eq!((&python["limits"], python.get("ablate"), python.get("mounts")), (&json!({"pids": 8}), None, None));
        let shell = asked(&probe("x.sh", "#"), &[ControlId::Seccomp, ControlId::NamespaceIpc]);
        assert_eq!(shell["args"]["argv"], json!(["/bin/sh", "-s", "--", "shm=7"]));
        assert_eq!(shell["ablate"], json!(["seccomp", "namespace.ipc"]));
        let c = asked(&probe("x.c", "//"), &[]);
        let script = "cat > /tmp/probe-1 && chmod 700 /tmp/probe-1 && exec /tmp/probe-1 \"$@\"";
        assert_eq!(c["args"]["argv"], json!(["/bin/sh", "-c", script, "probe", "shm=7"]));
        assert_eq!(c["stdin"]["base64"], "f0VMRg==");
    }

    #[test]
    fn each_request_is_a_call_of_its_own() {
        let ids = [(); 2].map(|()| request(&probe("x.py", "#"), &[], &[], (b"", "")));
        assert_ne!(ids[0].body["call_id"], ids[1].body["call_id"]);
        assert_eq!(ids[0].body["call_id"], ids[0].id);
    }

    #[test]
    fn the_last_line_is_that_of_text_and_of_bytes() {
        assert_eq!(last_line(&OutputText::Text("a\nREACHED b \n\n".to_owned())), "REACHED b");
        assert_eq!(last_line(&OutputText::Base64 { base64: STANDARD.encode(b"\xff\nSTOPPED c\n") }), "STOPPED c");
        assert_eq!(last_line(&OutputText::Text(String::new())), "");
    }

    #[test]
    fn what_a_program_of_c_left_on_the_machine_is_removed() {
        let name = format!("probe-{}", super::super::outside::token().unwrap());
        let path = Path::new(SCRATCH).join(&name);
        std::fs::write(&path, "x").unwrap();
        assert_eq!(clean_up(&probe("x.py", "#"), &name), None);
        assert!(path.exists());
        assert_eq!(clean_up(&probe("x.c", "//"), &name), None);
        assert!(!path.exists() && clean_up(&probe("x.c", "//"), &name).is_none());
    }
}
