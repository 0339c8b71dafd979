//! A call that the policy let through: everything a plan needs, with nothing left to decide.

use toolcell_types::{Limits, Sha256};

/// Through which kind of channel a tool acts on the world outside its cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EffectClass {
    /// Through none: it reads what it is given and returns what it prints.
    Read,
}

impl EffectClass {
    /// The word in policy files, listings and receipts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
        }
    }
}

/// A host path that may be shown inside, by its text. Who opens it compares where it really leads with `within`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdmittedMount {
    /// On the host, absolute.
    pub host: String,
    /// Inside, absolute.
    pub inside: String,
    /// The folder of the policy that holds it.
    pub within: String,
}

/// A call that may run. Only [`crate::Policy::decide`] makes one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdmittedCall {
    /// Name of the tool.
    pub tool: String,
    /// Digest of the tool's definition, as [`toolcell_types::ToolInfo::digest`] lists it.
    pub tool_digest: Sha256,
    /// Program and arguments; never empty, the first one not empty, no NUL, each below 128 KiB.
    pub argv: Vec<String>,
    /// Working directory inside, absolute.
    pub cwd: String,
    /// The whole environment, sorted by name, each name once, `NAME=value` below 128 KiB.
    pub env: Vec<(String, String)>,
    /// Name of the image.
    pub image: String,
    /// All limits, within the tool's maxima.
    pub limits: Limits,
    /// Host paths to show inside, read-only, parents before what lies below them inside.
    pub mounts: Vec<AdmittedMount>,
    /// Bytes for standard input; none is /dev/null.
    pub stdin: Option<Vec<u8>>,
    /// How the tool acts on the outside.
    pub effect_class: EffectClass,
    /// Exit codes that mean success, sorted.
    pub complete_exit_codes: Vec<i32>,
    /// Exit codes by which the tool says "try again", sorted, none of them in `complete_exit_codes`.
    pub transient_exit_codes: Vec<i32>,
}
