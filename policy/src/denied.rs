//! Why the policy says no to a request that was understood.

use toolcell_types::ErrorCode;

use crate::principal::Role;
use crate::refusal::Refusal;

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Denied {
    /// A role that submits no calls.
    #[error("calls are submitted by callers and operators, you are {role}")]
    Role { role: Role },
    /// Not registered, or not visible to this role: the same words for both.
    #[error("there is no tool {tool} that is visible to you (visible: {visible})")]
    UnknownTool { tool: String, visible: String },
    /// An argument that does not fit the tool's input schema, or that no program can be given.
    #[error("args{path}: {why}")]
    Arguments { tool: String, path: String, why: String },
    /// The policy lists the tool and forbids it.
    #[error("the policy denies every call of {tool}")]
    Tool { tool: String },
    /// A limit beyond the tool's maximum.
    #[error("limits.{name} of {tool} must be at most {most}, got {got}")]
    Limit { tool: String, name: &'static str, most: u64, got: u64 },
    /// A mount outside of what may be shown.
    #[error("mounts[{index}].host of {tool} must lie in {allowed}, got {host}")]
    Mount { tool: String, index: usize, allowed: String, host: String },
    /// A variable that may not be set.
    #[error("env of {tool} may set {allowed}, got {name}")]
    Env { tool: String, allowed: String, name: String },
    /// Standard input that may not be given.
    #[error("{tool} takes no standard input, got some")]
    Stdin { tool: String },
    /// An image that may not be chosen.
    #[error("the image of {tool} must be one of {allowed}, got {image}")]
    Image { tool: String, allowed: String, image: String },
}

impl Denied {
    fn code(&self) -> ErrorCode {
        match self {
            Self::Role { .. } => ErrorCode::RoleDenied,
            Self::UnknownTool { .. } => ErrorCode::UnknownTool,
            Self::Arguments { .. } => ErrorCode::InvalidArguments,
            Self::Tool { .. }
            | Self::Limit { .. }
            | Self::Mount { .. }
            | Self::Env { .. }
            | Self::Stdin { .. }
            | Self::Image { .. } => ErrorCode::PermissionDenied,
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Role { .. } => "submit the call as a caller or as the operator".to_owned(),
            Self::UnknownTool { .. } => {
                "name a tool that GET /v1/tools (`toolcell tools`) lists, or ask the operator for it".to_owned()
            }
            Self::Arguments { tool, .. } => {
                format!("correct the arguments by input_schema of {tool} (`toolcell tools --json`)")
            }
            Self::Tool { tool } => format!("ask the operator to set tools.{tool}.permission to \"allow\""),
            Self::Limit { tool, name, most, .. } => {
                format!(
                    "send limits.{name} of {most} or less, or ask the operator to raise tools.{tool}.max_limits.{name}"
                )
            }
            Self::Mount { tool, .. } => {
                format!("show another path, or ask the operator to add a folder to tools.{tool}.allow.mounts")
            }
            Self::Env { tool, .. } => {
                format!("leave the variable out, or ask the operator to add it to tools.{tool}.allow.env")
            }
            Self::Stdin { tool } => {
                format!("leave stdin out, or ask the operator to set tools.{tool}.allow.stdin to true")
            }
            Self::Image { tool, .. } => {
                format!("choose another image, or ask the operator to add it to tools.{tool}.allow.image")
            }
        }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        Self { code: denied.code(), detail: denied.to_string(), remedy: denied.remedy() }
    }
}
