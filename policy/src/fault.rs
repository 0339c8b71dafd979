//! What is wrong with a policy file, and where.

/// A place in a policy file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// One mistake in a policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFault {
    /// A file that no policy has.
    #[error("{file}: not a policy file (known: tools.toml)")]
    UnknownFile {
        /// Its name.
        file: String,
    },
    /// A file of a feature that does not exist yet.
    #[error("{file}: rules and principals are not in this version")]
    FileNotInThisVersion {
        /// Its name.
        file: String,
    },
    /// A file that a policy must have, or has twice.
    #[error("{file}: must be there exactly once, is there {times} times")]
    FileCount {
        /// Its name.
        file: &'static str,
        /// How often it came.
        times: usize,
    },
    /// A file that is too large to be meant.
    #[error("{file}: {got} bytes long, at most {most} are taken")]
    FileSize {
        /// Its name.
        file: String,
        /// Its size in bytes.
        got: usize,
        /// The largest that is taken, in bytes.
        most: usize,
    },
    /// A file that is no text.
    #[error("{at}: not UTF-8 from here on")]
    NotUtf8 {
        /// Where.
        at: Position,
        /// What the decoder said.
        source: std::str::Utf8Error,
    },
    /// A file that is no TOML.
    #[error("{at}: not TOML, after line {after}: {}", source.message())]
    Syntax {
        /// Where it was noticed.
        at: Position,
        /// Line of the last text before that, which may be what is not complete.
        after: usize,
        /// What the parser said.
        source: Box<toml::de::Error>,
    },
    /// A key that nobody knows.
    #[error("{at}: {key} is not a key that is known here (known: {known})")]
    UnknownKey {
        /// Where.
        at: Position,
        /// The key with its path.
        key: String,
        /// What is known there.
        known: String,
    },
    /// A key that is missing, or whose value is of another kind, out of bounds or of another form.
    #[error("{at}: {key} must be {expected}, got {got}")]
    Value {
        /// Where: at the value, or at the table that lacks the key.
        at: Position,
        /// The key with its path.
        key: String,
        /// What it has to be.
        expected: String,
        /// What it is.
        got: String,
    },
    /// A key or a value of a feature that does not exist yet.
    #[error("{at}: {what} is not in this version")]
    NotInThisVersion {
        /// Where.
        at: Position,
        /// What is not.
        what: String,
    },
    /// A schema that is none.
    #[error("{at}: {key} is not a JSON Schema (2020-12): {source}")]
    Schema {
        /// Where.
        at: Position,
        /// The key with its path.
        key: String,
        /// What the compiler of schemas said.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl PolicyFault {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::UnknownFile { file } => format!("move {file} out of the policy folder"),
            Self::FileNotInThisVersion { file } => format!("remove {file}; all that holds now stands in tools.toml"),
            Self::FileCount { file, .. } => format!("put one {file} into the policy folder"),
            Self::FileSize { file, .. } => {
                format!("split or shorten {file}; large data belongs into an image or a mount")
            }
            Self::NotUtf8 { .. } => "save the file as UTF-8".to_owned(),
            Self::Syntax { .. } => "correct the TOML (https://toml.io/en/v1.0.0)".to_owned(),
            Self::UnknownKey { key, .. } => format!("correct the spelling of {key}, or leave it out"),
            Self::Value { key, expected, .. } => format!("make {key} {expected}"),
            Self::NotInThisVersion { what, .. } => format!("leave {what} out"),
            Self::Schema { .. } => "correct the schema; it may refer to nothing outside itself".to_owned(),
        }
    }

    /// Where it is, if it is at one place.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        match self {
            Self::UnknownFile { .. }
            | Self::FileNotInThisVersion { .. }
            | Self::FileCount { .. }
            | Self::FileSize { .. } => None,
            Self::NotUtf8 { at, .. }
            | Self::Syntax { at, .. }
            | Self::UnknownKey { at, .. }
            | Self::Value { at, .. }
            | Self::NotInThisVersion { at, .. }
            | Self::Schema { at, .. } => Some(at),
        }
    }
}

/// A policy that is not taken: every mistake that was found, in the order of the file. Nothing of it is in force.
#[derive(Debug)]
pub struct InvalidPolicy {
    faults: Vec<PolicyFault>,
}

impl InvalidPolicy {
    /// Nothing if there is no fault.
    pub(crate) fn of(mut faults: Vec<PolicyFault>) -> Result<(), Self> {
        faults.sort_by(|a, b| a.position().cmp(&b.position()));
        if faults.is_empty() { Ok(()) } else { Err(Self { faults }) }
    }

    /// The mistakes, at least one.
    #[must_use]
    pub fn faults(&self) -> &[PolicyFault] {
        &self.faults
    }
}

impl From<PolicyFault> for InvalidPolicy {
    fn from(fault: PolicyFault) -> Self {
        Self { faults: vec![fault] }
    }
}

impl std::fmt::Display for InvalidPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (number, fault) in self.faults.iter().enumerate() {
            let lead = if number == 0 { "" } else { "\n" };
            write!(f, "{lead}{fault}\n  hint: {}", fault.remedy())?;
        }
        Ok(())
    }
}

impl std::error::Error for InvalidPolicy {}
