//! The JSON form of the payloads: in-toto's and SLSA's member names where these define one, else the answer's words.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use toolcell_types::{
    AblationFacts, CallId, CallState, ControlId, Effect, LimitHit, Limits, LogPosition, MountSpec, Sha256, Status,
    ToolError, Usage, Verdict,
};

use super::{BuildDigest, EffectBasis, Submitter};
use crate::UnixMicros;

pub(super) const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";
pub(super) const EXECUTION_TYPE: &str = "urn:toolcell:execution-type:cell:v1";
pub(super) const PRODUCTION: &str = "production";
pub(super) const ABLATION: &str = "ablation";

/// A SHA-256 as bare hex, the way digest sets write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Hex(pub(super) Sha256);

impl TryFrom<String> for Hex {
    type Error = toolcell_types::BadId;
    fn try_from(text: String) -> Result<Self, Self::Error> {
        Sha256::from_hex(&text).map(Self)
    }
}

impl From<Hex> for String {
    fn from(hex: Hex) -> Self {
        hex.0.hex()
    }
}

/// A digest set with the one algorithm that we use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DigestSet {
    pub(super) sha256: Hex,
}

impl From<Sha256> for DigestSet {
    fn from(digest: Sha256) -> Self {
        Self { sha256: Hex(digest) }
    }
}

impl From<DigestSet> for Sha256 {
    fn from(set: DigestSet) -> Self {
        set.sha256.0
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Statement<P> {
    #[serde(rename = "_type")]
    pub(super) statement_type: String,
    pub(super) subject: [Subject; 1],
    #[serde(rename = "predicateType")]
    pub(super) predicate_type: String,
    pub(super) predicate: P,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) digest: DigestSet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) media_type: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenesisPredicate {
    pub(super) event: String,
    pub(super) controls: Controls,
    pub(super) run_details: RunDetails,
    pub(super) enrolled: bool,
    pub(super) log: Log,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IntentPredicate<C = Controls> {
    pub(super) execution_definition: ExecutionDefinition,
    pub(super) controls: C,
    pub(super) authorization: Authorization,
    pub(super) run_details: RunDetails,
    pub(super) enrolled: bool,
    pub(super) log: Log,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutcomePredicate<C = Controls> {
    pub(super) execution_definition: ExecutionDefinition,
    pub(super) controls: C,
    pub(super) authorization: Authorization,
    pub(super) outcome: Ending,
    pub(super) run_details: RunDetails,
    pub(super) enrolled: bool,
    pub(super) log: Log,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutionDefinition {
    pub(super) execution_type: String,
    pub(super) external_parameters: ExternalParameters,
    pub(super) internal_parameters: InternalParameters,
    pub(super) resolved_dependencies: [Dependency; 3],
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExternalParameters {
    pub(super) tool: ToolRef,
    pub(super) effect_channels: Vec<String>,
    pub(super) limits: Limits,
    pub(super) mounts: Vec<MountSpec>,
    pub(super) labels: BTreeMap<String, String>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ToolRef {
    pub(super) name: String,
    pub(super) call_id: CallId,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct InternalParameters {
    pub(super) attempt: u32,
}

/// A resource descriptor: the tool's definition, the policy, the image, in this order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Dependency {
    pub(super) name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uri: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) digest: Option<DigestSet>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) annotations: Option<ImageAnnotations>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ImageAnnotations {
    pub(super) pinned: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Controls {
    pub(super) mode: String,
    /// Of ablation mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ablation: Option<AblationFacts>,
    /// Of an intent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) planned: Option<Vec<Planned>>,
    /// Of an outcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) items: Option<Vec<Value>>,
}

/// [`Controls`] as they are read: of what is planned only the form matters, and items are of the reader's choice.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "I: Deserialize<'de>"))]
pub(super) struct ReadControls<I> {
    pub(super) mode: String,
    #[serde(default)]
    pub(super) ablation: Option<AblationFacts>,
    #[serde(default)]
    #[expect(dead_code, reason = "read for its form alone")]
    pub(super) planned: Option<Vec<ReadPlanned>>,
    #[serde(default)]
    pub(super) items: Option<Vec<I>>,
}

/// [`Planned`], for its form alone.
#[derive(Debug, Deserialize)]
#[expect(dead_code, reason = "read for its form alone")]
pub(super) struct ReadPlanned {
    pub(super) id: ControlId,
    pub(super) required: bool,
    pub(super) requested: serde::de::IgnoredAny,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Planned {
    pub(super) id: ControlId,
    pub(super) required: bool,
    pub(super) requested: Value,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Authorization {
    pub(super) submitter: Submitter,
    pub(super) decision: String,
    pub(super) approvals: Vec<Value>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Ending {
    pub(super) state: CallState,
    pub(super) status: Status,
    pub(super) is_error: bool,
    pub(super) effect: EffectClaim,
    pub(super) retryable: bool,
    pub(super) termination: Verdict,
    pub(super) tree_gone: bool,
    pub(super) limits_hit: Vec<LimitHit>,
    pub(super) revision: Sha256,
    pub(super) data: Map<String, Value>,
    pub(super) error: Option<ToolError>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct EffectClaim {
    pub(super) value: Effect,
    pub(super) basis: EffectBasis,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunDetails {
    pub(super) executor: ExecutorRef,
    pub(super) metadata: Metadata,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) resource_usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) byproducts: Option<[Byproduct; 2]>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExecutorRef {
    pub(super) id: String,
    pub(super) instance_id: String,
    pub(super) boot_id: String,
    pub(super) version: Versions,
    pub(super) executor_dependencies: [Build; 1],
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Versions {
    pub(super) toolcell: String,
    pub(super) kernel: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Build {
    pub(super) name: String,
    pub(super) digest: BuildDigest,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) invocation_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) submitted_on: Option<UnixMicros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_on: Option<UnixMicros>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) finished_on: Option<UnixMicros>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Byproduct {
    pub(super) name: String,
    pub(super) digest: DigestSet,
    pub(super) media_type: String,
    pub(super) annotations: StreamFacts,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StreamFacts {
    pub(super) size_bytes: u64,
    pub(super) kept: DigestSet,
    pub(super) kept_bytes: u64,
    pub(super) head_bytes: u64,
    pub(super) dropped_bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Log {
    pub(super) origin: String,
    pub(super) index: u64,
    pub(super) previous: DigestSet,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) intent_index: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) genesis: Option<DigestSet>,
}

impl Log {
    /// Where nothing stands yet; only to measure and to be replaced.
    pub(super) fn nowhere(intent_index: Option<u64>) -> Self {
        let zero = Sha256([0; 32]);
        Self {
            origin: "toolcell/0000000000000000".to_owned(),
            index: 0,
            previous: zero.into(),
            intent_index,
            genesis: Some(zero.into()),
        }
    }

    pub(super) fn at(position: &LogPosition, intent_index: Option<u64>) -> Self {
        Self {
            origin: position.origin.clone(),
            index: position.index,
            previous: position.previous.into(),
            intent_index,
            genesis: position.genesis.map(DigestSet::from),
        }
    }

    pub(super) fn position(&self) -> LogPosition {
        LogPosition {
            origin: self.origin.clone(),
            index: self.index,
            previous: self.previous.into(),
            genesis: self.genesis.map(Sha256::from),
        }
    }
}
