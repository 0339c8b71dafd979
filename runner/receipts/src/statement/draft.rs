//! From what is known to payload bytes.

use toolcell_types::{
    AblationFacts, ControlSet, EXECUTOR_ABLATION_ID, EXECUTOR_ID, Effect, LimitHit, LogPosition, PAYLOAD_MAX_BYTES,
    PREDICATE_GENESIS, PREDICATE_INTENT, PREDICATE_OUTCOME, REQUEST_MEDIA_TYPE, Sha256, Status, ToolError, Verdict,
};

use super::wire::{
    ABLATION, Authorization, Build, Byproduct, Controls, Dependency, EXECUTION_TYPE, EffectClaim, Ending,
    ExecutionDefinition, ExecutorRef, ExternalParameters, GenesisPredicate, ImageAnnotations, IntentPredicate,
    InternalParameters, Log, Metadata, OutcomePredicate, PRODUCTION, Planned, RunDetails, STATEMENT_TYPE, Statement,
    StreamFacts, Subject, ToolRef, Versions,
};
use super::{Definition, Executor, Genesis, Intent, Outcome, StatementError, Stream};
use crate::controls::bounded;

/// Most bytes of an intent without its planned controls. The rest of an entry is kept free for what only the outcome
/// knows: 29 controls with all their facts, an error, limits, figures and digests.
pub const DEFINITION_MAX_BYTES: usize = 20_000;

/// Bytes that the place in the log may add to what [`Log::nowhere`] stands for: two indexes of 20 digits.
const POSITION_SLACK_BYTES: usize = 64;

/// A payload that lacks only its place in the log.
#[derive(Debug)]
pub struct Draft(Body);

#[derive(Debug)]
enum Body {
    Genesis(Box<Statement<GenesisPredicate>>),
    Intent(Box<Statement<IntentPredicate>>),
    Outcome(Box<Statement<OutcomePredicate>>),
}

impl Draft {
    /// The payload bytes: compact JSON, at most [`PAYLOAD_MAX_BYTES`].
    ///
    /// # Errors
    /// [`StatementError::Misplaced`] if an entry other than the first has no genesis, or the first is no genesis, or an
    /// outcome stands before its intent; [`StatementError::TooLarge`] not after a draft was accepted.
    pub fn finish(self, position: &LogPosition) -> Result<Vec<u8>, StatementError> {
        let misplaced = |kind| StatementError::Misplaced { index: position.index, kind };
        match self.0 {
            Body::Genesis(mut statement) => {
                if position.index != 0 || position.genesis.is_some() {
                    return Err(misplaced("the genesis"));
                }
                statement.predicate.log = Log::at(position, None);
                encode(statement.as_ref(), PAYLOAD_MAX_BYTES)
            }
            Body::Intent(mut statement) => {
                if position.index == 0 || position.genesis.is_none() {
                    return Err(misplaced("an intent"));
                }
                statement.predicate.log = Log::at(position, None);
                encode(statement.as_ref(), PAYLOAD_MAX_BYTES)
            }
            Body::Outcome(mut statement) => {
                let intent_index = statement.predicate.log.intent_index;
                let follows = intent_index.is_some_and(|intent| 0 < intent && intent < position.index);
                if position.genesis.is_none() || !follows {
                    return Err(misplaced("this outcome"));
                }
                statement.predicate.log = Log::at(position, intent_index);
                encode(statement.as_ref(), PAYLOAD_MAX_BYTES)
            }
        }
    }
}

pub(super) fn genesis(genesis: &Genesis) -> Result<Draft, StatementError> {
    let statement = Statement {
        statement_type: STATEMENT_TYPE.to_owned(),
        subject: [Subject { name: "receipt-key".to_owned(), digest: genesis.keyid.into(), media_type: None }],
        predicate_type: PREDICATE_GENESIS.to_owned(),
        predicate: GenesisPredicate {
            event: "genesis".to_owned(),
            controls: controls(&genesis.executor, ControlSet::EMPTY),
            run_details: RunDetails {
                executor: executor(&genesis.executor),
                metadata: Metadata { submitted_on: Some(genesis.made_on), ..Metadata::default() },
                resource_usage: None,
                byproducts: None,
            },
            enrolled: false,
            log: Log::nowhere(None),
        },
    };
    fits(&statement, PAYLOAD_MAX_BYTES)?;
    Ok(Draft(Body::Genesis(Box::new(statement))))
}

pub(super) fn intent(intent: &Intent) -> Result<Draft, StatementError> {
    let definition = &intent.definition;
    let mut statement = Statement {
        statement_type: STATEMENT_TYPE.to_owned(),
        subject: subject(definition.request),
        predicate_type: PREDICATE_INTENT.to_owned(),
        predicate: IntentPredicate {
            execution_definition: execution(definition),
            controls: controls(&definition.executor, definition.ablated),
            authorization: authorization(definition),
            run_details: RunDetails {
                executor: executor(&definition.executor),
                metadata: Metadata {
                    invocation_id: Some(definition.invocation_id.clone()),
                    submitted_on: Some(definition.submitted_on),
                    ..Metadata::default()
                },
                resource_usage: None,
                byproducts: None,
            },
            enrolled: false,
            log: Log::nowhere(None),
        },
    };
    fits(&statement, DEFINITION_MAX_BYTES)?;
    let planned = intent.planned.iter().map(|control| Planned {
        id: control.id,
        required: control.required,
        requested: bounded(&control.requested),
    });
    statement.predicate.controls.planned = Some(planned.collect());
    fits(&statement, PAYLOAD_MAX_BYTES)?;
    Ok(Draft(Body::Intent(Box::new(statement))))
}

pub(super) fn outcome(outcome: &Outcome) -> Result<Draft, StatementError> {
    consistent(outcome)?;
    let definition = &outcome.definition;
    let statement = Statement {
        statement_type: STATEMENT_TYPE.to_owned(),
        subject: subject(definition.request),
        predicate_type: PREDICATE_OUTCOME.to_owned(),
        predicate: OutcomePredicate {
            execution_definition: execution(definition),
            controls: seen_controls(outcome),
            authorization: authorization(definition),
            outcome: ending(outcome),
            run_details: RunDetails {
                executor: executor(&definition.executor),
                metadata: Metadata {
                    invocation_id: Some(definition.invocation_id.clone()),
                    submitted_on: Some(definition.submitted_on),
                    started_on: outcome.started_on,
                    finished_on: Some(outcome.finished_on),
                },
                resource_usage: Some(outcome.usage.clone()),
                byproducts: Some([byproduct("stdout", &outcome.stdout), byproduct("stderr", &outcome.stderr)]),
            },
            enrolled: false,
            log: Log::nowhere(Some(outcome.intent_index)),
        },
    };
    fits(&statement, PAYLOAD_MAX_BYTES)?;
    Ok(Draft(Body::Outcome(Box::new(statement))))
}

/// The rules that tie state, effect, verdict and controls together.
pub(super) fn consistent(outcome: &Outcome) -> Result<(), StatementError> {
    let ended = matches!(
        outcome.verdict,
        Verdict::Exited { .. }
            | Verdict::Signaled { .. }
            | Verdict::CpuLimit
            | Verdict::MemoryLimit
            | Verdict::PidsLimit
            | Verdict::OutputLimit
    );
    let streams = [&outcome.stdout, &outcome.stderr];
    let rules = [
        (outcome.effect != Effect::None || outcome.tree_gone, "effect none of a tree that was not seen gone"),
        (
            outcome.effect != Effect::None
                || outcome.definition.effect_channels.is_empty()
                || (outcome.started_on.is_none() && outcome.verdict != Verdict::Lost),
            "effect none although a channel was open",
        ),
        (
            outcome.effect == Effect::None || !outcome.definition.effect_channels.is_empty() || !outcome.tree_gone,
            "an effect although no channel was open and the tree is gone",
        ),
        (
            (outcome.status == Status::Unknown) == (outcome.effect == Effect::Unknown),
            "status unknown is effect unknown",
        ),
        (
            outcome.effect != Effect::Applied || (outcome.status == Status::Ok && !outcome.is_error),
            "an applied effect belongs to a complete call only",
        ),
        (outcome.error.is_some() == (outcome.is_error || outcome.status != Status::Ok), "an error without its words"),
        (!ended || outcome.started_on.is_some(), "an end of a tool that was never let go"),
        (outcome.started_on.is_none() || !outcome.controls.is_empty(), "a tool let go without controls"),
        (
            streams.iter().all(|s| {
                s.kept_bytes.checked_add(s.dropped_bytes) == Some(s.size_bytes) && s.head_bytes <= s.kept_bytes
            }),
            "kept and dropped bytes are not all bytes",
        ),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        Some((_, rule)) => Err(StatementError::Inconsistent { rule }),
        None => Ok(()),
    }
}

fn subject(request: Sha256) -> [Subject; 1] {
    [Subject { name: "request".to_owned(), digest: request.into(), media_type: Some(REQUEST_MEDIA_TYPE.to_owned()) }]
}

fn execution(definition: &Definition) -> ExecutionDefinition {
    let plain = |name: &str, digest: Sha256| Dependency {
        name: name.to_owned(),
        uri: None,
        digest: Some(digest.into()),
        annotations: None,
    };
    ExecutionDefinition {
        execution_type: EXECUTION_TYPE.to_owned(),
        external_parameters: ExternalParameters {
            tool: ToolRef { name: definition.tool.clone(), call_id: definition.call_id.clone() },
            effect_channels: definition.effect_channels.clone(),
            limits: definition.limits,
            mounts: definition.mounts.clone(),
            labels: definition.labels.clone(),
        },
        internal_parameters: InternalParameters { attempt: definition.attempt },
        resolved_dependencies: [
            plain("tool", definition.tool_digest),
            plain("policy", definition.policy),
            Dependency {
                name: "image".to_owned(),
                uri: Some(format!("{IMAGE_URI}{}", definition.image.name)),
                digest: definition.image.digest.map(Into::into),
                annotations: Some(ImageAnnotations { pinned: definition.image.pinned }),
            },
        ],
    }
}

/// The mode, and in ablation mode what is switched off.
fn controls(executor: &Executor, ablated: ControlSet) -> Controls {
    let ablation = executor.experiment.as_ref().map(|experiment| AblationFacts {
        experiment: experiment.clone(),
        ablated: ablated.iter().collect(),
        fell: None,
    });
    let mode = if ablation.is_none() { PRODUCTION } else { ABLATION };
    Controls { mode: mode.to_owned(), ablation, planned: None, items: None }
}

fn seen_controls(outcome: &Outcome) -> Controls {
    let controls = controls(&outcome.definition.executor, outcome.definition.ablated);
    Controls { ablation: outcome.ablation(), items: Some(outcome.controls.clone()), ..controls }
}

/// What stands before the name in an image's URI.
pub(super) const IMAGE_URI: &str = "urn:toolcell:image:";

fn authorization(definition: &Definition) -> Authorization {
    Authorization { submitter: definition.submitter.clone(), decision: "allow".to_owned(), approvals: Vec::new() }
}

fn executor(executor: &Executor) -> ExecutorRef {
    ExecutorRef {
        id: if executor.experiment.is_none() { EXECUTOR_ID } else { EXECUTOR_ABLATION_ID }.to_owned(),
        instance_id: executor.instance.clone(),
        boot_id: executor.boot_id.clone(),
        version: Versions { toolcell: executor.toolcell_version.clone(), kernel: executor.kernel_version.clone() },
        executor_dependencies: [Build { name: "toolcell".to_owned(), digest: executor.build.clone() }],
    }
}

fn ending(outcome: &Outcome) -> Ending {
    Ending {
        state: outcome.state(),
        status: outcome.status,
        is_error: outcome.is_error,
        effect: EffectClaim { value: outcome.effect, basis: outcome.effect_basis },
        retryable: outcome.is_retryable(),
        termination: short_verdict(&outcome.verdict),
        tree_gone: outcome.tree_gone,
        limits_hit: outcome.limits_hit.iter().take(16).map(short_hit).collect(),
        revision: outcome.revision,
        data: outcome.data.clone(),
        error: outcome.error.as_ref().map(short_error),
    }
}

fn short_verdict(verdict: &Verdict) -> Verdict {
    match verdict {
        Verdict::StartFailed { stage, errno } => Verdict::StartFailed { stage: cut(stage, 64), errno: cut(errno, 32) },
        Verdict::Signaled { signal } => Verdict::Signaled { signal: cut(signal, 32) },
        other @ (Verdict::Exited { .. }
        | Verdict::WallLimit
        | Verdict::CpuLimit
        | Verdict::MemoryLimit
        | Verdict::PidsLimit
        | Verdict::OutputLimit
        | Verdict::Cancelled
        | Verdict::Lost
        | Verdict::Internal) => other.clone(),
    }
}

fn short_hit(hit: &LimitHit) -> LimitHit {
    LimitHit { limit: cut(&hit.limit, 32), seen: cut(&hit.seen, 96) }
}

fn short_error(error: &ToolError) -> ToolError {
    ToolError {
        code: cut(&error.code, 32),
        message: cut(&error.message, 512),
        remedy: cut(&error.remedy, 256),
        retryable: error.retryable,
        findings: error.findings.iter().take(4).map(|finding| cut(finding, 128)).collect(),
    }
}

/// At most `most` bytes as a JSON string, quotes not counted; a cut text ends with an ellipsis.
fn cut(text: &str, most: usize) -> String {
    let cost = |c: char| match c {
        '"' | '\\' => 2,
        c if c < ' ' => 6,
        c => c.len_utf8(),
    };
    if text.chars().map(cost).sum::<usize>() <= most {
        return text.to_owned();
    }
    let mut left = most.saturating_sub('…'.len_utf8());
    let mut out = String::new();
    for c in text.chars() {
        match left.checked_sub(cost(c)) {
            Some(rest) => left = rest,
            None => break,
        }
        out.push(c);
    }
    out.push('…');
    out
}

fn byproduct(name: &str, stream: &Stream) -> Byproduct {
    Byproduct {
        name: name.to_owned(),
        digest: stream.sha256.into(),
        media_type: "application/octet-stream".to_owned(),
        annotations: StreamFacts {
            size_bytes: stream.size_bytes,
            kept: stream.kept.into(),
            kept_bytes: stream.kept_bytes,
            head_bytes: stream.head_bytes,
            dropped_bytes: stream.dropped_bytes,
        },
    }
}

fn fits<P: serde::Serialize>(statement: &Statement<P>, most: usize) -> Result<(), StatementError> {
    let mut length = Length(0);
    serde_json::to_writer(&mut length, statement).map_err(|source| StatementError::Encode { source })?;
    let most = most.saturating_sub(POSITION_SLACK_BYTES);
    if length.0 > most { Err(StatementError::TooLarge { got: length.0, most }) } else { Ok(()) }
}

/// Counts what is written and keeps nothing of it.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn encode<P: serde::Serialize>(statement: &Statement<P>, most: usize) -> Result<Vec<u8>, StatementError> {
    // Most are of this size, so that the buffer does not have to grow.
    let mut bytes = Vec::with_capacity(16 * 1024);
    serde_json::to_writer(&mut bytes, statement).map_err(|source| StatementError::Encode { source })?;
    if bytes.len() > most {
        return Err(StatementError::TooLarge { got: bytes.len(), most });
    }
    Ok(bytes)
}
