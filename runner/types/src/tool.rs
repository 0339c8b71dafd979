//! What `GET /v1/tools` lists.

use serde::{Deserialize, Serialize};

use crate::{Limits, Sha256};

/// A registered tool as a controller sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolInfo {
    /// Its name.
    pub name: String,
    /// One line for a person or a model.
    pub description: String,
    /// JSON Schema (2020-12) of the arguments.
    pub input_schema: serde_json::Value,
    /// `read`, `write` or `external`.
    pub effect_class: String,
    /// `allow` or `deny` for whoever asked.
    pub permission: String,
    /// Digest of the tool's definition, so that drift shows.
    pub digest: Sha256,
    /// Limits of a call that states none.
    pub limits: Limits,
    /// The most that a call may state.
    pub max_limits: Limits,
}

/// The answer of `GET /v1/tools`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolsPage {
    /// Visible tools, sorted by name.
    pub tools: Vec<ToolInfo>,
    /// Digest of the policy they come from.
    pub policy: Sha256,
}
