//! Why a payload cannot be made or read.

use toolcell_types::ErrorCode;

/// Why a payload cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum StatementError {
    /// Mounts, labels and names are more than a receipt holds.
    #[error("tool, mounts and labels make a receipt of {got} bytes, at most {most} are possible")]
    TooLarge {
        /// Bytes that it would be.
        got: usize,
        /// Bytes that are possible.
        most: usize,
    },
    /// What is stated contradicts itself.
    #[error("the outcome contradicts itself: {rule}")]
    Inconsistent {
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// The place in the log does not fit the kind of entry.
    #[error("entry {index} cannot be {kind}")]
    Misplaced {
        /// The place.
        index: u64,
        /// Which kind.
        kind: &'static str,
    },
    /// It could not be written as JSON.
    #[error("the payload could not be written")]
    Encode {
        /// What the serialiser said.
        source: serde_json::Error,
    },
    /// It is no strict JSON.
    #[error("the payload is not strict JSON")]
    Json {
        /// What the parser said.
        source: toolcell_types::json::StrictJsonError,
    },
    /// It has not the form of its type.
    #[error("the payload is no statement of ours")]
    Form {
        /// What the deserialiser said.
        source: serde_json::Error,
    },
    /// A member has another value than it must.
    #[error("{member} is {got:?}, expected {expected}")]
    Member {
        /// Which member.
        member: &'static str,
        /// What it has to be.
        expected: String,
        /// What it is, cut to 96 characters.
        got: String,
    },
}

impl StatementError {
    /// The public code, for what the controller can mend; none for a fault of the runner or of the file read.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::TooLarge { .. } => Some(ErrorCode::InvalidRequest),
            Self::Inconsistent { .. }
            | Self::Misplaced { .. }
            | Self::Encode { .. }
            | Self::Json { .. }
            | Self::Form { .. }
            | Self::Member { .. } => None,
        }
    }

    /// What to do next.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::TooLarge { .. } => "send fewer or shorter mounts and labels",
            Self::Inconsistent { .. } | Self::Misplaced { .. } | Self::Encode { .. } => {
                "this is a fault of the runner: report it with the log"
            }
            Self::Json { .. } | Self::Form { .. } | Self::Member { .. } => {
                "this is no receipt of this runner, or it was changed: fetch it again"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use toolcell_types::json;

    use super::*;

    #[test]
    fn every_error_says_what_happened_which_code_it_has_and_what_to_do() {
        let bad_json = || serde_json::from_str::<u8>("x").unwrap_err();
        let all = [
            StatementError::TooLarge { got: 30_000, most: 20_000 },
            StatementError::Inconsistent { rule: "effect none of a tree that was not seen gone" },
            StatementError::Misplaced { index: 0, kind: "an intent" },
            StatementError::Encode { source: bad_json() },
            StatementError::Json { source: json::parse_strict(b"x").unwrap_err() },
            StatementError::Form { source: bad_json() },
            StatementError::Member {
                member: "predicate.controls.mode",
                expected: "\"production\"".to_owned(),
                got: "ablation".to_owned(),
            },
        ];
        let lines = all.iter().map(|error| {
            let code = error.code().map_or("no code", ErrorCode::as_str);
            format!("{error}\n    {code}: {}\n", error.remedy())
        });
        insta::assert_snapshot!(lines.collect::<String>());
    }
}
