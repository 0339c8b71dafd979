//! From payload bytes back to what they state.

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;
use toolcell_types::json;
use toolcell_types::{
    AblationFacts, ControlSet, EXECUTOR_ABLATION_ID, EXECUTOR_ID, ImageRef, LogPosition, PREDICATE_GENESIS,
    PREDICATE_INTENT, PREDICATE_OUTCOME, Sha256,
};

use super::draft::{IMAGE_URI, consistent};
use super::wire::{
    ABLATION, Authorization, Byproduct, Dependency, EXECUTION_TYPE, ExecutionDefinition, ExecutorRef, GenesisPredicate,
    IntentPredicate, Metadata, OutcomePredicate, PRODUCTION, ReadControls, STATEMENT_TYPE, Statement,
};
use super::{Definition, Executor, Genesis, Intent, Outcome, StatementError, Stream};
use crate::UnixMicros;

/// What a payload states, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// Entry 0.
    Genesis {
        /// What it states.
        genesis: Genesis,
        /// Its place.
        log: LogPosition,
    },
    /// An intent.
    Intent {
        /// What it states, without the planned controls.
        intent: Box<Intent>,
        /// Its place.
        log: LogPosition,
    },
    /// An outcome.
    Outcome {
        /// What it states.
        outcome: Box<Outcome>,
        /// Its place.
        log: LogPosition,
    },
}

impl Recorded {
    /// Its place in the log.
    #[must_use]
    pub fn log(&self) -> &LogPosition {
        match self {
            Self::Genesis { log, .. } | Self::Intent { log, .. } | Self::Outcome { log, .. } => log,
        }
    }

    /// The digest that it is about: of the request, or of the key for entry 0.
    #[must_use]
    pub fn subject(&self) -> Sha256 {
        match self {
            Self::Genesis { genesis, .. } => genesis.keyid,
            Self::Intent { intent, .. } => intent.definition.request,
            Self::Outcome { outcome, .. } => outcome.definition.request,
        }
    }

    /// The program that made it.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        match self {
            Self::Genesis { genesis, .. } => &genesis.executor,
            Self::Intent { intent, .. } => &intent.definition.executor,
            Self::Outcome { outcome, .. } => &outcome.definition.executor,
        }
    }
}

/// Reads a payload. Whether it is one of ablation mode its executor says ([`Executor::experiment`]). Members that this version does not know are ignored, as in-toto demands.
///
/// # Errors
/// [`StatementError`] names the member that is missing, unknown as a type, from another kind of executor, or in
/// contradiction to another.
pub fn read(payload: &[u8]) -> Result<Recorded, StatementError> {
    read_with::<Value>(payload)
}

/// The same for who needs to know that it is right and where it stands: an outcome's controls are counted and not made
/// values, each is null.
///
/// # Errors
/// As [`read`].
pub fn look_over(payload: &[u8]) -> Result<Recorded, StatementError> {
    read_with::<IgnoredAny>(payload)
}

/// What becomes of an outcome's controls.
trait Item: DeserializeOwned {
    const IS_SHOWN: bool;
    fn shown(self) -> Value;
}

impl Item for Value {
    const IS_SHOWN: bool = true;
    fn shown(self) -> Value {
        self
    }
}

impl Item for IgnoredAny {
    const IS_SHOWN: bool = false;
    fn shown(self) -> Value {
        Value::Null
    }
}

fn read_with<I: Item>(payload: &[u8]) -> Result<Recorded, StatementError> {
    let text = Text::look_at(payload)?;
    match text.predicate_type()?.as_str() {
        PREDICATE_GENESIS => genesis(text.form()?),
        PREDICATE_INTENT => intent(text.form()?),
        PREDICATE_OUTCOME => outcome::<I>(text.form()?),
        other => Err(member("predicateType", "one of this runner's three", other)),
    }
}

/// A payload that is strict JSON.
enum Text<'p> {
    /// As we write it: read into its form at once.
    Plain(&'p [u8]),
    /// As others may write it: numbers have to be brought into their one form first.
    Read(Value),
}

impl<'p> Text<'p> {
    fn look_at(payload: &'p [u8]) -> Result<Self, StatementError> {
        if json::is_plain(payload) {
            return Ok(Self::Plain(payload));
        }
        json::parse_strict(payload).map(Self::Read).map_err(|source| StatementError::Json { source })
    }

    fn predicate_type(&self) -> Result<String, StatementError> {
        /// What every payload has, of whatever kind.
        #[derive(serde::Deserialize)]
        struct Kind {
            #[serde(default, rename = "predicateType")]
            predicate_type: Value,
        }
        let of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        match self {
            Self::Plain(payload) => {
                let kind: Kind = serde_json::from_slice(payload).map_err(|source| StatementError::Form { source })?;
                Ok(of(&kind.predicate_type))
            }
            Self::Read(value) => Ok(value.get("predicateType").map(of).unwrap_or_default()),
        }
    }

    fn form<P: DeserializeOwned>(self) -> Result<Statement<P>, StatementError> {
        let read = match self {
            Self::Plain(payload) => serde_json::from_slice(payload),
            Self::Read(value) => serde_json::from_value(value),
        };
        let statement: Statement<P> = read.map_err(|source| StatementError::Form { source })?;
        must("_type", STATEMENT_TYPE, &statement.statement_type)?;
        Ok(statement)
    }
}

fn genesis(statement: Statement<GenesisPredicate>) -> Result<Recorded, StatementError> {
    let [subject] = statement.subject;
    let predicate = statement.predicate;
    must("predicate.event", "genesis", &predicate.event)?;
    let said = common(
        (&predicate.controls.mode, predicate.controls.ablation),
        &predicate.run_details.executor,
        predicate.enrolled,
    )?;
    let log = predicate.log.position();
    let keyid: Sha256 = subject.digest.into();
    must("predicate.log.origin", &LogPosition::origin_of(&keyid), &log.origin)?;
    if log.index != 0 || log.genesis.is_some() {
        return Err(StatementError::Misplaced { index: log.index, kind: "the genesis" });
    }
    let made_on = time("predicate.runDetails.metadata.submittedOn", predicate.run_details.metadata.submitted_on)?;
    let genesis = Genesis { keyid, executor: executor(predicate.run_details.executor, said.experiment), made_on };
    Ok(Recorded::Genesis { genesis, log })
}

fn intent(statement: Statement<IntentPredicate<ReadControls<IgnoredAny>>>) -> Result<Recorded, StatementError> {
    let [subject] = statement.subject;
    let predicate = statement.predicate;
    let said = common(
        (&predicate.controls.mode, predicate.controls.ablation),
        &predicate.run_details.executor,
        predicate.enrolled,
    )?;
    let log = predicate.log.position();
    if log.index == 0 || log.genesis.is_none() {
        return Err(StatementError::Misplaced { index: log.index, kind: "an intent" });
    }
    let definition = definition(
        subject.digest.into(),
        predicate.execution_definition,
        (predicate.authorization, said),
        (predicate.run_details.executor, &predicate.run_details.metadata),
    )?;
    Ok(Recorded::Intent { intent: Box::new(Intent { definition, planned: Vec::new() }), log })
}

fn outcome<I: Item>(statement: Statement<OutcomePredicate<ReadControls<I>>>) -> Result<Recorded, StatementError> {
    let [subject] = statement.subject;
    let predicate = statement.predicate;
    let said = common(
        (&predicate.controls.mode, predicate.controls.ablation),
        &predicate.run_details.executor,
        predicate.enrolled,
    )?;
    let (fell, is_ablation) = (said.fell, said.experiment.is_some());
    let log = predicate.log.position();
    let intent_index = predicate.log.intent_index.filter(|intent| 0 < *intent && *intent < log.index);
    let (Some(intent_index), Some(_genesis)) = (intent_index, log.genesis) else {
        return Err(StatementError::Misplaced { index: log.index, kind: "an outcome of that intent" });
    };
    let details = predicate.run_details;
    let missing = |what| member(what, "present", "nothing");
    let [stdout, stderr] = details.byproducts.ok_or_else(|| missing("predicate.runDetails.byproducts"))?;
    let ending = predicate.outcome;
    let (state, retryable) = (ending.state, ending.retryable);
    let outcome = Outcome {
        definition: definition(
            subject.digest.into(),
            predicate.execution_definition,
            (predicate.authorization, said),
            (details.executor, &details.metadata),
        )?,
        intent_index,
        started_on: details.metadata.started_on,
        finished_on: time("predicate.runDetails.metadata.finishedOn", details.metadata.finished_on)?,
        controls: predicate
            .controls
            .items
            .ok_or_else(|| missing("predicate.controls.items"))?
            .into_iter()
            .map(Item::shown)
            .collect(),
        status: ending.status,
        is_error: ending.is_error,
        effect: ending.effect.value,
        effect_basis: ending.effect.basis,
        tree_gone: ending.tree_gone,
        verdict: ending.termination,
        limits_hit: ending.limits_hit,
        usage: details.resource_usage.ok_or_else(|| missing("predicate.runDetails.resourceUsage"))?,
        revision: ending.revision,
        data: ending.data,
        error: ending.error,
        stdout: stream("stdout", stdout)?,
        stderr: stream("stderr", stderr)?,
    };
    must("predicate.outcome.state", outcome.state().as_str(), state.as_str())?;
    must("predicate.outcome.retryable", &outcome.is_retryable().to_string(), &retryable.to_string())?;
    consistent(&outcome)?;
    // What was only counted names nothing.
    if I::IS_SHOWN && is_ablation && fell != outcome.fell() {
        return Err(member("predicate.controls.ablation.fell", "the controls that fell", "others"));
    }
    Ok(Recorded::Outcome { outcome: Box::new(outcome), log })
}

/// What an entry says of ablation mode; nothing of all that in production.
#[derive(Default)]
struct Said {
    experiment: Option<String>,
    ablated: ControlSet,
    fell: ControlSet,
}

/// What every entry has to say of itself: the executor's name, the mode and what is switched off belong together.
fn common(
    (mode, ablation): (&str, Option<AblationFacts>),
    executor: &ExecutorRef,
    enrolled: bool,
) -> Result<Said, StatementError> {
    const AT: &str = "predicate.controls.ablation";
    let is_ablation = executor.id == EXECUTOR_ABLATION_ID;
    if !is_ablation {
        must("predicate.runDetails.executor.id", EXECUTOR_ID, &executor.id)?;
    }
    must("predicate.controls.mode", if is_ablation { ABLATION } else { PRODUCTION }, mode)?;
    must("predicate.enrolled", "false", &enrolled.to_string())?;
    match ablation {
        None if is_ablation => Err(member(AT, "present in ablation mode", "nothing")),
        None => Ok(Said::default()),
        Some(_) if !is_ablation => Err(member(AT, "absent in production mode", "present")),
        Some(AblationFacts { experiment, ablated, fell }) => Ok(Said {
            experiment: Some(experiment),
            ablated: ablated.into_iter().collect(),
            fell: fell.unwrap_or_default().into_iter().collect(),
        }),
    }
}

fn definition(
    request: Sha256,
    execution: ExecutionDefinition,
    (authorization, said): (Authorization, Said),
    (by, metadata): (ExecutorRef, &Metadata),
) -> Result<Definition, StatementError> {
    must("predicate.executionDefinition.executionType", EXECUTION_TYPE, &execution.execution_type)?;
    must("predicate.authorization.decision", "allow", &authorization.decision)?;
    let [tool, policy, image] = execution.resolved_dependencies;
    let external = execution.external_parameters;
    Ok(Definition {
        request,
        call_id: external.tool.call_id,
        attempt: execution.internal_parameters.attempt,
        tool: external.tool.name,
        tool_digest: pinned("tool", &tool)?,
        limits: external.limits,
        mounts: external.mounts,
        labels: external.labels,
        effect_channels: external.effect_channels,
        policy: pinned("policy", &policy)?,
        image: image_ref(&image)?,
        submitter: authorization.submitter,
        executor: executor(by, said.experiment),
        ablated: said.ablated,
        invocation_id: metadata
            .invocation_id
            .clone()
            .ok_or_else(|| member("predicate.runDetails.metadata.invocationId", "present", "nothing"))?,
        submitted_on: time("predicate.runDetails.metadata.submittedOn", metadata.submitted_on)?,
    })
}

fn pinned(name: &str, dependency: &Dependency) -> Result<Sha256, StatementError> {
    const AT: &str = "predicate.executionDefinition.resolvedDependencies";
    must(AT, name, &dependency.name)?;
    dependency.digest.map(Sha256::from).ok_or_else(|| member(AT, "tool and policy with a digest", name))
}

fn image_ref(dependency: &Dependency) -> Result<ImageRef, StatementError> {
    const AT: &str = "predicate.executionDefinition.resolvedDependencies";
    must(AT, "image", &dependency.name)?;
    let name = dependency.uri.as_deref().and_then(|uri| uri.strip_prefix(IMAGE_URI));
    match (name, &dependency.annotations) {
        (Some(name), Some(annotations)) => Ok(ImageRef {
            name: name.to_owned(),
            digest: dependency.digest.map(Sha256::from),
            pinned: annotations.pinned,
        }),
        _ => Err(member(AT, "an image with its URI and whether it is pinned", "something else")),
    }
}

fn executor(by: ExecutorRef, experiment: Option<String>) -> Executor {
    let [build] = by.executor_dependencies;
    Executor {
        instance: by.instance_id,
        boot_id: by.boot_id,
        toolcell_version: by.version.toolcell,
        kernel_version: by.version.kernel,
        build: build.digest,
        experiment,
    }
}

fn stream(name: &str, byproduct: Byproduct) -> Result<Stream, StatementError> {
    must("predicate.runDetails.byproducts", name, &byproduct.name)?;
    let facts = byproduct.annotations;
    Ok(Stream {
        sha256: byproduct.digest.into(),
        size_bytes: facts.size_bytes,
        kept: facts.kept.into(),
        kept_bytes: facts.kept_bytes,
        head_bytes: facts.head_bytes,
        dropped_bytes: facts.dropped_bytes,
    })
}

fn time(at: &'static str, time: Option<UnixMicros>) -> Result<UnixMicros, StatementError> {
    time.ok_or_else(|| member(at, "a time", "nothing"))
}

fn must(at: &'static str, expected: &str, got: &str) -> Result<(), StatementError> {
    if got == expected {
        return Ok(());
    }
    Err(member(at, &format!("{expected:?}"), got))
}

fn member(member: &'static str, expected: &str, got: &str) -> StatementError {
    StatementError::Member { member, expected: expected.to_owned(), got: got.chars().take(96).collect() }
}
