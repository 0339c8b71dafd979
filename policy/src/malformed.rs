//! Why a request could not be understood. Comes before any question of permission.

use toolcell_types::{BadId, ErrorCode, json};

use crate::refusal::Refusal;

/// One thing that is wrong with a request, whoever sent it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Malformed {
    /// Not strict JSON.
    #[error(transparent)]
    Json {
        #[from]
        source: json::StrictJsonError,
    },
    /// No canonical form, so no digest.
    #[error(transparent)]
    Canonical {
        #[from]
        source: json::CanonicalError,
    },
    /// A member that is missing, of another kind, out of bounds or of another form.
    #[error("{member} must be {expected}, got {got}")]
    Value { member: String, expected: String, got: String },
    /// A member that nobody knows.
    #[error("{member} is not a member that is known here (known: {known})")]
    Unknown { member: String, known: String },
    /// A member of a feature that does not exist yet.
    #[error("{member} is not in this version")]
    NotInThisVersion { member: &'static str },
    /// A call id of another form.
    #[error(transparent)]
    CallId {
        #[from]
        source: BadId,
    },
    /// A mount that does not have a mount's members.
    #[error("mounts[{index}] is not a mount: {source}")]
    Mount { index: usize, source: serde_json::Error },
    /// Standard input that is not what it says.
    #[error("stdin.base64 is not standard base64 with padding: {source}")]
    Base64 { source: base64::DecodeError },
    /// Controls to be switched off.
    #[error("ablate names controls to switch off, and this instance switches none off")]
    Ablation,
}

impl Malformed {
    /// Shorthand for the commonest finding.
    pub(crate) fn value(member: impl Into<String>, expected: impl Into<String>, got: impl Into<String>) -> Self {
        Self::Value { member: member.into(), expected: expected.into(), got: got.into() }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Ablation => ErrorCode::AblationRefused,
            Self::Json { .. }
            | Self::Canonical { .. }
            | Self::Value { .. }
            | Self::Unknown { .. }
            | Self::NotInThisVersion { .. }
            | Self::CallId { .. }
            | Self::Mount { .. }
            | Self::Base64 { .. } => ErrorCode::InvalidRequest,
        }
    }

    fn remedy(&self) -> String {
        match self {
            Self::Json { source } => source.remedy().to_owned(),
            Self::Canonical { .. } => "send numbers beyond \u{b1}9007199254740991 as strings".to_owned(),
            Self::Value { member, expected, .. } => format!("make {member} {expected}"),
            Self::Unknown { member, .. } => format!("leave {member} out, or correct its spelling"),
            Self::NotInThisVersion { member } => format!("leave {member} out"),
            Self::CallId { .. } => {
                "send call_id as a letter or digit and up to 127 letters, digits, '.', '_' or '-'".to_owned()
            }
            Self::Mount { .. } => {
                r#"send each mount as {"host":"/abs","inside":"/abs","mode":"ro"}, nothing more"#.to_owned()
            }
            Self::Base64 { .. } => {
                "encode the bytes with the alphabet A-Z a-z 0-9 + / and padding (RFC 4648, 4)".into()
            }
            Self::Ablation => {
                "leave ablate out; switching controls off needs an instance that was started for it".into()
            }
        }
    }
}

impl From<Malformed> for Refusal {
    fn from(found: Malformed) -> Self {
        Self { code: found.code(), detail: found.to_string(), remedy: found.remedy() }
    }
}
