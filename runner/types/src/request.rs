//! The body of `POST /v1/calls`, after the strict parser has been over the bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{CallId, ControlId, ControlSet, LimitsPatch};

/// A request to run a tool. Unknown members are refused, never ignored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRequest {
    /// The controller's name for this call.
    pub call_id: CallId,
    /// Which registered tool.
    pub tool: String,
    /// Its arguments, an object that the tool's input schema describes.
    pub args: serde_json::Map<String, serde_json::Value>,
    /// Idempotency key; not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Session; not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Limits that differ from the tool's own, within what the policy allows.
    #[serde(default, skip_serializing_if = "LimitsPatch::is_empty")]
    pub limits: LimitsPatch,
    /// Host directories or files to show inside, at most 64.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<MountSpec>,
    /// Uploaded files; not in this version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileSpec>,
    /// Files to collect; not in this version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Environment variables, within what the policy allows.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Standard input; none is /dev/null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdin: Option<StdinSpec>,
    /// Expected revision of the state worked on; not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_revision: Option<String>,
    /// Expected digest of the policy; not in this version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expect_policy: Option<String>,
    /// Queue, gate and run together, in milliseconds from when the request was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
    /// Named preconditions; not in this version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<String>,
    /// Texts of the controller's own that the receipt repeats; at most 32 of at most 256 bytes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Random text that keeps the request digest from being guessed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub salt: Option<String>,
    /// Controls to switch off; only an instance in ablation mode takes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ablate: Vec<String>,
}

impl CallRequest {
    /// The controls that `ablate` names. Of a request that was decoded these are all that stand there.
    #[must_use]
    pub fn ablated(&self) -> ControlSet {
        self.ablate.iter().filter_map(|name| ControlId::parse(name)).collect()
    }
}

/// One host path shown inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MountSpec {
    /// Absolute path on the host, opened under the caller's own ids.
    pub host: String,
    /// Absolute path inside.
    pub inside: String,
    /// `ro`; `rw` is not in this version.
    pub mode: MountMode,
}

/// Whether a mount can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MountMode {
    /// Read-only.
    Ro,
    /// Writable: an effect channel.
    Rw,
}

/// One uploaded file (not in this version).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// Path inside.
    pub inside: String,
    /// Content.
    pub content: StdinSpec,
}

/// Bytes in JSON: a text, or base64 for what is no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum StdinSpec {
    /// UTF-8 text.
    Text(String),
    /// Standard base64 with padding.
    Base64 {
        /// The encoded bytes.
        base64: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn standard_input_takes_no_member_besides_base64() {
        assert!(serde_json::from_str::<StdinSpec>(r#"{"base64":"AA=="}"#).is_ok());
        assert!(serde_json::from_str::<StdinSpec>(r#"{"base64":"AA==","more":1}"#).is_err());
    }
}
