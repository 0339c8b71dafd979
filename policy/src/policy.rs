//! The policy in force: which tools there are, and who may call them with what.

use std::collections::BTreeMap;

use toolcell_types::{CallRequest, Problem, Sha256, ToolInfo};

use crate::denied::Denied;
use crate::refusal::{listed, quoted};
use crate::request::{check, sha256};
use crate::tool::Registered;
use crate::tools_file::{self, FILE};
use crate::{AdmittedCall, InvalidPolicy, PolicyFault, Principal, Role, decide};

/// The policy in force. Immutable, so that one call is judged by one policy.
#[derive(Debug)]
pub struct Policy {
    tools: BTreeMap<String, Registered>,
    digest: Sha256,
}

impl Policy {
    /// The file of the policy that is built in.
    pub const BUILTIN_TOOLS: &'static str = include_str!("../default/tools.toml");

    /// The policy that is built in: [`Self::BUILTIN_TOOLS`] under the name `tools.toml`.
    ///
    /// # Errors
    /// As [`Self::parse`]; a test of this crate reads it, so that a release has none.
    pub fn builtin() -> Result<Self, InvalidPolicy> {
        Self::parse(&[(FILE.to_owned(), Self::BUILTIN_TOOLS.as_bytes().to_vec())])
    }

    /// Reads the files of a policy folder, given as name and content. `tools.toml` must be there and nothing else: a
    /// file that would be ignored may be one that somebody relies on.
    ///
    /// # Errors
    /// Every mistake with file, line, column, what was expected and what came. Nothing of the policy is in force then.
    pub fn parse(files: &[(String, Vec<u8>)]) -> Result<Self, InvalidPolicy> {
        let mut faults: Vec<PolicyFault> = files.iter().filter_map(|(name, _)| unexpected(name)).collect();
        let mut found = files.iter().filter(|(name, _)| name == FILE);
        let tools = match (found.next(), found.count()) {
            (Some((_, bytes)), 0) => tools_file::read(bytes).unwrap_or_else(|wrong| {
                faults.extend(wrong);
                Vec::new()
            }),
            (first, others) => {
                faults.push(PolicyFault::FileCount { file: FILE, times: others + usize::from(first.is_some()) });
                Vec::new()
            }
        };
        InvalidPolicy::of(faults)?;
        Ok(Self { tools: tools.into_iter().map(|one| (one.tool.name.clone(), one)).collect(), digest: digest(files) })
    }

    /// SHA-256 over lines `name NUL sha256-hex LF`, sorted by name: which bytes are in force.
    #[must_use]
    pub fn digest(&self) -> Sha256 {
        self.digest
    }

    /// Checks that there is every image that a tool may run in. Which there are is not the policy's to know; an
    /// instance that lacks one must not start.
    ///
    /// # Errors
    /// Each image that is not known, with file, line and column.
    pub fn check_images(&self, known: &[&str]) -> Result<(), InvalidPolicy> {
        let uses = self.tools.values().flat_map(|one| &one.images);
        let unknown = uses.filter(|image| !known.contains(&image.name.as_str()));
        let faults = unknown.map(|image| PolicyFault::Value {
            at: image.at.clone(),
            key: image.key.clone(),
            expected: format!("an image that is there ({})", listed(known.iter().copied())),
            got: quoted(&image.name),
        });
        InvalidPolicy::of(faults.collect())
    }

    /// The tools that a principal sees, sorted by name. Auditors see all and may call none.
    #[must_use]
    pub fn tools_for(&self, principal: &Principal) -> Vec<ToolInfo> {
        self.visible(principal).map(|one| one.tool.info(one.digest, principal.role)).collect()
    }

    /// Decides about a call: pure, no clock, nothing is changed by it.
    ///
    /// # Errors
    /// The refusal with every finding whose inputs are known, the first in gate order being its code. Without a
    /// visible tool nothing else is known, and a tool that is registered but not visible gets the same words as one
    /// that is not registered.
    pub fn decide(&self, principal: &Principal, call: &CallRequest) -> Result<AdmittedCall, Problem> {
        check(call)?;
        if principal.role == Role::Auditor {
            return Err(decide::refuse_one(call, Denied::Role { role: principal.role }));
        }
        match self.visible(principal).find(|one| one.tool.name == call.tool) {
            Some(one) => decide::decide(&one.tool, one.digest, call),
            None => {
                let visible = listed(self.visible(principal).map(|one| one.tool.name.as_str()));
                Err(decide::refuse_one(call, Denied::UnknownTool { tool: quoted(&call.tool), visible }))
            }
        }
    }

    fn visible(&self, principal: &Principal) -> impl Iterator<Item = &Registered> {
        self.tools.values().filter(|one| one.tool.is_visible_to(principal.role))
    }
}

/// A file that a policy folder must not hold.
fn unexpected(name: &str) -> Option<PolicyFault> {
    match name {
        FILE => None,
        "rules.toml" | "principals.toml" => Some(PolicyFault::FileNotInThisVersion { file: name.to_owned() }),
        _ => Some(PolicyFault::UnknownFile { file: quoted(name) }),
    }
}

fn digest(files: &[(String, Vec<u8>)]) -> Sha256 {
    let sorted: BTreeMap<&str, Sha256> = files.iter().map(|(name, bytes)| (name.as_str(), sha256(bytes))).collect();
    let mut lines = Vec::new();
    for (name, digest) in sorted {
        lines.extend_from_slice(format!("{name}\0{}\n", digest.hex()).as_bytes());
    }
    sha256(&lines)
}

#[cfg(test)]
mod tests;
