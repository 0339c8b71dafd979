//! Checks one receipt offline: the envelope, the signature under a given key, and what the payload says of itself.
//!
//! Guarantees: no check of the payload is reported as passed unless the signature holds; every failed check says in words
//! what was expected and what came. Does not: look at the log around the entry, at the time, or at who vouched for the
//! key. A receipt binds the runner to having said something; it does not make a dishonest runner honest.

use serde::Serialize;
use sha2::{Digest as _, Sha256 as Hasher};
use toolcell_types::{ControlId, Effect, Sha256, json};

use crate::PublicKey;
use crate::dsse::{self, Opened};
use crate::statement::{self, Outcome, Recorded};

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// It holds.
    Passed,
    /// It does not.
    Failed,
    /// Nobody asked for it.
    Skipped,
    /// An earlier failure makes it meaningless.
    NotReached,
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Its name, stable: `envelope`, `key`, `signature`, `statement`, `controls`, `request`.
    pub name: &'static str,
    /// How it went.
    pub mark: Mark,
    /// What was seen, or what was expected and what came.
    pub words: String,
}

/// All checks, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// One per name.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether every check passed or was not asked for.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.checks.is_empty() && self.checks.iter().all(|check| matches!(check.mark, Mark::Passed | Mark::Skipped))
    }

    /// The check of that name.
    #[must_use]
    pub fn check(&self, name: &str) -> Option<&Check> {
        self.checks.iter().find(|check| check.name == name)
    }
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for check in &self.checks {
            let mark = match check.mark {
                Mark::Passed => "ok",
                Mark::Failed => "FAILED",
                Mark::Skipped => "not asked",
                Mark::NotReached => "not reached",
            };
            writeln!(f, "{:<10} {mark}: {}", check.name, check.words)?;
        }
        f.write_str(if self.holds() { "the receipt holds" } else { "the receipt does not hold" })
    }
}

/// The checks in their order.
const NAMES: [&str; 6] = ["envelope", "key", "signature", "statement", "controls", "request"];

/// What kind of instance a receipt is to be of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// One whose controls cannot be switched off.
    Production,
    /// One where they can: what ran may have been sealed by nothing.
    Ablation,
}

/// Checks a receipt of a production instance against the public key (PEM) and, if given, the request that it should be
/// about.
#[must_use]
pub fn verify(envelope: &[u8], pem: &[u8], request: Option<&[u8]>) -> Report {
    verify_of(Mode::Production, envelope, pem, request)
}

/// As [`verify`], for a receipt of this mode and no other.
#[must_use]
pub fn verify_of(mode: Mode, envelope: &[u8], pem: &[u8], request: Option<&[u8]>) -> Report {
    let mut steps = Steps { mode, checks: Vec::with_capacity(NAMES.len()) };
    steps.run(envelope, pem, request);
    let reached = steps.checks.len();
    let not_reached = NAMES.iter().skip(reached).map(|name| Check {
        name,
        mark: Mark::NotReached,
        words: "an earlier check failed".to_owned(),
    });
    steps.checks.extend(not_reached);
    Report { checks: steps.checks }
}

struct Steps {
    mode: Mode,
    checks: Vec<Check>,
}

impl Steps {
    /// Stops at the first failure that leaves nothing to trust; `None` says so.
    fn run(&mut self, envelope: &[u8], pem: &[u8], request: Option<&[u8]>) -> Option<()> {
        let opened = self.note("envelope", dsse::open(envelope), |opened| {
            format!("a DSSE envelope with {} bytes of payload", opened.payload.len())
        })?;
        let key = self.note("key", PublicKey::from_pem(pem), |key| format!("Ed25519, key id {}", key.id().hex()))?;
        self.note("signature", signature(&opened, &key), String::clone)?;
        let recorded = self.note("statement", statement_of(self.mode, &opened, &key), describe)?;
        // The last two do not depend on one another: both are reported.
        let controls = self.note("controls", controls(&recorded), String::clone);
        match request {
            None => self.checks.push(Check {
                name: "request",
                mark: Mark::Skipped,
                words: format!("no request was given; the receipt is about {}", recorded.subject()),
            }),
            Some(bytes) => {
                self.note("request", about(&recorded, bytes), String::clone)?;
            }
        }
        controls.map(drop)
    }

    /// Writes down how a step went, its error with all its causes.
    fn note<T, E: std::error::Error>(
        &mut self,
        name: &'static str,
        result: Result<T, E>,
        words: impl FnOnce(&T) -> String,
    ) -> Option<T> {
        match result {
            Ok(value) => {
                self.checks.push(Check { name, mark: Mark::Passed, words: words(&value) });
                Some(value)
            }
            Err(error) => {
                self.checks.push(Check { name, mark: Mark::Failed, words: with_causes(&error) });
                None
            }
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        // Some errors have the words of their cause in their own.
        let more = inner.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = inner.source();
    }
    words
}

/// Why a receipt does not hold, apart from its form.
#[derive(Debug, thiserror::Error)]
enum Fault {
    #[error("none of the {count} signatures is this key's over this payload; the envelope names {hints}")]
    Signature { count: usize, hints: String },
    #[error(transparent)]
    Statement(#[from] statement::StatementError),
    #[error("the entry belongs to the log {got:?}, this key's log is {expected:?}")]
    OtherLog { expected: String, got: String },
    #[error(
        "it is of ablation mode (experiment {experiment:?}, switched off: {off}) and shows no sealed cell; a check that \
         is for such a receipt has to say so (--ablation)"
    )]
    OfAblation { experiment: String, off: String },
    #[error("it is of an instance in production mode, and one of ablation mode was asked for")]
    OfProduction,
    #[error("control {id}: {why}")]
    Control { id: String, why: String },
    #[error("the request is not strict JSON")]
    Request { source: json::StrictJsonError },
    #[error("the request has no canonical form")]
    Canonical { source: json::CanonicalError },
    #[error("the receipt is about {subject}, the canonical form of the request has {got}")]
    OtherRequest { subject: Sha256, got: Sha256 },
}

/// The key id in the envelope is a hint: every signature is tried.
fn signature(opened: &Opened, key: &PublicKey) -> Result<String, Fault> {
    if opened.signatures.iter().any(|one| key.verifies(&opened.payload, &one.sig)) {
        return Ok("Ed25519 over payload and type, strictly verified".to_owned());
    }
    let hints: Vec<String> = opened
        .signatures
        .iter()
        .map(|one| match &one.keyid {
            Some(hint) => format!("key {:?}", hint.chars().take(64).collect::<String>()),
            None => "no key".to_owned(),
        })
        .collect();
    Err(Fault::Signature { count: opened.signatures.len(), hints: hints.join(", ") })
}

fn statement_of(mode: Mode, opened: &Opened, key: &PublicKey) -> Result<Recorded, Fault> {
    let recorded = statement::read(&opened.payload)?;
    match (mode, &recorded.executor().experiment) {
        (Mode::Production, Some(experiment)) => {
            let experiment = experiment.chars().take(96).collect();
            return Err(Fault::OfAblation { experiment, off: off(&recorded) });
        }
        (Mode::Ablation, None) => return Err(Fault::OfProduction),
        (Mode::Production, None) | (Mode::Ablation, Some(_)) => {}
    }
    let expected = toolcell_types::LogPosition::origin_of(&key.id());
    let got = &recorded.log().origin;
    if *got != expected {
        return Err(Fault::OtherLog { expected, got: got.chars().take(96).collect() });
    }
    Ok(recorded)
}

fn describe(recorded: &Recorded) -> String {
    let place = recorded.log();
    let instance = &recorded.executor().instance;
    let what = match recorded {
        Recorded::Genesis { .. } => "the first entry".to_owned(),
        Recorded::Intent { intent, .. } => {
            format!("the intent of call {} attempt {}", intent.definition.call_id, intent.definition.attempt)
        }
        Recorded::Outcome { outcome, .. } => {
            let effect = match outcome.effect {
                Effect::None => "none",
                Effect::Applied => "applied",
                Effect::Unknown => "unknown",
            };
            format!(
                "the outcome of call {} attempt {}: {}, {}, effect {effect}, intent at index {}",
                outcome.definition.call_id,
                outcome.definition.attempt,
                outcome.state().as_str(),
                outcome.verdict.cause(),
                outcome.intent_index
            )
        }
    };
    let mode = match &recorded.executor().experiment {
        None => "in production mode".to_owned(),
        Some(experiment) => {
            let experiment: String = experiment.chars().take(96).collect();
            format!("in ABLATION MODE (experiment {experiment:?}, switched off: {})", off(recorded))
        }
    };
    format!("{what}, entry {} of {} by instance {instance:?} {mode}, not enrolled", place.index, place.origin)
}

/// What was switched off, in words.
fn off(recorded: &Recorded) -> String {
    let names: Vec<&str> = match recorded {
        Recorded::Genesis { .. } => Vec::new(),
        Recorded::Intent { intent, .. } => intent.definition.ablated.iter().map(ControlId::as_str).collect(),
        Recorded::Outcome { outcome, .. } => {
            outcome.definition.ablated.union(outcome.fell()).iter().map(ControlId::as_str).collect()
        }
    };
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

/// Each control once, the required ones enforced, all 29 of them if the tool was let go.
fn controls(recorded: &Recorded) -> Result<String, Fault> {
    let Recorded::Outcome { outcome, .. } = recorded else {
        return Ok("nothing ran yet at this entry".to_owned());
    };
    if outcome.started_on.is_none() && outcome.controls.is_empty() {
        return Ok("the tool was never let go, or nobody saw it: no controls are claimed".to_owned());
    }
    let seen = Seen::of(outcome)?;
    if let Some(missing) = ControlId::ALL.iter().find(|id| !seen.ids.contains(&id.as_str().to_owned())) {
        return Err(Fault::Control { id: missing.to_string(), why: "the receipt does not report it".to_owned() });
    }
    let list = |what: &str, some: &[String]| {
        if some.is_empty() { String::new() } else { format!("; {what}: {}", some.join(", ")) }
    };
    let rest = list("not in force, and not required", &seen.second_lines) + &list("SWITCHED OFF", &seen.ablated);
    Ok(format!("{} of {} enforced{rest}", seen.enforced, seen.ids.len()))
}

#[derive(Default)]
struct Seen {
    ids: Vec<String>,
    enforced: usize,
    second_lines: Vec<String>,
    ablated: Vec<String>,
}

impl Seen {
    fn of(outcome: &Outcome) -> Result<Self, Fault> {
        let mut seen = Self::default();
        let asked = outcome.definition.ablated;
        let may_be_off = asked.union(asked.falling());
        for item in &outcome.controls {
            let word = |member: &str| item.get(member).and_then(serde_json::Value::as_str).unwrap_or_default();
            let id: String = word("id").chars().take(64).collect();
            let fault = |why: String| Fault::Control { id: id.clone(), why };
            if id.is_empty() || seen.ids.contains(&id) {
                return Err(fault("an item without a name, or a name twice".to_owned()));
            }
            let required = item.get("required").and_then(serde_json::Value::as_bool);
            let required =
                required.ok_or_else(|| fault("the receipt does not say whether it was required".to_owned()))?;
            if !matches!(word("verification"), "probed" | "read-back" | "configured") {
                return Err(fault(format!("its verification is {:?}", word("verification"))));
            }
            let control = ControlId::parse(&id);
            if control.is_some_and(|control| asked.has(control)) && word("state") == "enforced" {
                return Err(fault("it was switched off, and its state is \"enforced\"".to_owned()));
            }
            match (word("state"), required) {
                ("ablated", _) if control.is_some_and(|control| may_be_off.has(control)) => {
                    seen.ablated.push(id.clone());
                }
                ("enforced", _) => seen.enforced = seen.enforced.saturating_add(1),
                ("unavailable", false) => seen.second_lines.push(id.clone()),
                (state, _) => {
                    let why = format!("its state is {state:?}, a production receipt needs \"enforced\"");
                    return Err(fault(why));
                }
            }
            seen.ids.push(id);
        }
        Ok(seen)
    }
}

/// The subject is the digest of the canonical form, however the request at hand is written.
fn about(recorded: &Recorded, request: &[u8]) -> Result<String, Fault> {
    let value = json::parse_strict(request).map_err(|source| Fault::Request { source })?;
    let canonical = json::canonical(&value).map_err(|source| Fault::Canonical { source })?;
    let got = Sha256(Hasher::digest(&canonical).into());
    let subject = recorded.subject();
    if got != subject || matches!(recorded, Recorded::Genesis { .. }) {
        return Err(Fault::OtherRequest { subject, got });
    }
    Ok(format!("the receipt is about this request, {got}"))
}

#[cfg(test)]
mod tests;
