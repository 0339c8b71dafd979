//! Refusals (RFC 9457, `application/problem+json`) and the error object of an answer.

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($variant:ident $name:literal $status:literal $exit:literal $retry:literal $title:literal,)+) => {
        /// Every code that a refusal can carry, in gate order, then those from outside the gate.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum ErrorCode { $(#[doc = $title] #[serde(rename = $name)] $variant,)+ }

        impl ErrorCode {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];
            /// The code on the wire.
            #[must_use]
            pub fn as_str(self) -> &'static str { match self { $(Self::$variant => $name,)+ } }
            /// HTTP status.
            #[must_use]
            pub fn status(self) -> u16 { match self { $(Self::$variant => $status,)+ } }
            /// Exit code of the command line (`run` maps every refusal to 126).
            #[must_use]
            pub fn exit(self) -> u8 { match self { $(Self::$variant => $exit,)+ } }
            /// Whether sending the same request again may succeed without anybody changing anything.
            #[must_use]
            pub fn is_retryable(self) -> bool { match self { $(Self::$variant => $retry,)+ } }
            /// What it means, in a few words.
            #[must_use]
            pub fn title(self) -> &'static str { match self { $(Self::$variant => $title,)+ } }
        }
    };
}

codes! {
    LedgerInvalid "LEDGER_INVALID" 500 1 false "the ledger is not what the signer remembers",
    RoleDenied "ROLE_DENIED" 403 1 false "this needs another role",
    KeyPayloadMismatch "KEY_PAYLOAD_MISMATCH" 422 1 false "the same id came with another request",
    KillSwitch "KILL_SWITCH" 403 1 false "the kill switch is on",
    OutcomeUnknown "OUTCOME_UNKNOWN" 409 3 false "an earlier attempt is not settled",
    UnknownTool "UNKNOWN_TOOL" 404 1 false "the tool is unknown or not visible",
    InvalidArguments "INVALID_ARGUMENTS" 422 1 false "the arguments do not fit the tool's input schema",
    PermissionDenied "PERMISSION_DENIED" 403 1 false "the policy does not allow this",
    ApprovalRequired "APPROVAL_REQUIRED" 409 1 false "somebody has to approve this first",
    BudgetExhausted "BUDGET_EXHAUSTED" 403 1 false "no attempt is left",
    PreconditionFailed "PRECONDITION_FAILED" 412 1 false "a precondition does not hold",
    InvalidRequest "INVALID_REQUEST" 400 2 false "the request is malformed",
    NotFound "NOT_FOUND" 404 1 false "there is no such thing, or it is not yours",
    AblationRefused "ABLATION_REFUSED" 403 1 false "this instance does not switch controls off",
    QueueFull "QUEUE_FULL" 503 1 true "too many calls at once",
    ControlUnavailable "CONTROL_UNAVAILABLE" 503 1 false "a required control cannot be enforced",
    ResolveNotIndependent "RESOLVE_NOT_INDEPENDENT" 403 1 false "the resolver must not be the submitter",
    ResolveNotPending "RESOLVE_NOT_PENDING" 409 1 false "there is nothing to resolve",
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its code.
    pub code: ErrorCode,
    /// What was expected and what came.
    pub detail: String,
}

/// A refusal. Nothing has changed because of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Problem {
    /// `urn:toolcell:problem:CODE`.
    #[serde(rename = "type")]
    pub type_uri: String,
    /// What the code means.
    pub title: String,
    /// HTTP status.
    pub status: u16,
    /// The code.
    pub code: ErrorCode,
    /// What was expected, what came.
    pub detail: String,
    /// What to do next.
    pub remedy: String,
    /// Whether sending the same request again may succeed.
    pub retryable: bool,
    /// Everything that was found wrong, the first being `code`.
    pub findings: Vec<Finding>,
    /// For OUTCOME_UNKNOWN: whether an attempt is running now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<bool>,
    /// For INVALID_ARGUMENTS: the schema that the arguments have to fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_schema: Option<serde_json::Value>,
    /// The call it is about, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
}

impl Problem {
    /// A refusal with one finding.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        let detail = detail.into();
        Self {
            type_uri: format!("urn:toolcell:problem:{code}"),
            title: code.title().to_owned(),
            status: code.status(),
            code,
            findings: vec![Finding { code, detail: detail.clone() }],
            detail,
            remedy: remedy.into(),
            retryable: code.is_retryable(),
            live: None,
            expected_schema: None,
            call_id: None,
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}

impl std::error::Error for Problem {}

/// The `error` member of an answer: the tool ran (or could not start) and did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolError {
    /// The verdict's cause.
    pub code: String,
    /// What happened.
    pub message: String,
    /// What to do next.
    pub remedy: String,
    /// Whether the same call may succeed under a new `call_id`.
    pub retryable: bool,
    /// Details, one sentence each.
    pub findings: Vec<String>,
}
