//! The policy in force: which tools there are, and who may call them with what.

use toolcell_types::{CallRequest, ErrorCode, Problem, Sha256, ToolInfo};

use crate::{AdmittedCall, InvalidPolicy, PolicyFault, Principal};

/// The policy in force. Immutable, so that one call is judged by one policy.
#[derive(Debug)]
pub struct Policy {
    digest: Sha256,
}

impl Policy {
    /// The policy that is built in: `tools.toml` of this crate's `default` folder.
    ///
    /// # Errors
    /// None that a test of this crate would not have found.
    pub fn builtin() -> Result<Self, InvalidPolicy> {
        Self::parse(&[])
    }

    /// Reads the files of a policy folder, given as name and content.
    ///
    /// # Errors
    /// Every mistake with file, line and column.
    pub fn parse(files: &[(String, Vec<u8>)]) -> Result<Self, InvalidPolicy> {
        Err(PolicyFault::FileCount { file: "tools.toml", times: files.len() }.into())
    }

    /// SHA-256 over lines `name NUL sha256-hex LF`, sorted by name.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        self.digest
    }

    /// Names of the images that tools run in, sorted, each once.
    #[must_use]
    pub fn images(&self) -> Vec<&str> {
        Vec::new()
    }

    /// The tools that a principal sees, sorted by name.
    #[must_use]
    pub fn tools_for(&self, _principal: &Principal) -> Vec<ToolInfo> {
        Vec::new()
    }

    /// Decides about a call: pure, no clock, nothing is changed.
    ///
    /// # Errors
    /// The refusal with every finding whose inputs are known, the first in gate order being its code.
    pub fn decide(&self, _principal: &Principal, request: &CallRequest) -> Result<AdmittedCall, Problem> {
        Err(Problem::new(ErrorCode::UnknownTool, request.tool.clone(), "GET /v1/tools"))
    }
}
