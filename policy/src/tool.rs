//! One tool of `tools.toml`: what it is once it was read and found right.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use toolcell_types::{LimitName, Limits, Sha256, ToolInfo, json as strict};

use crate::admitted::EffectClass;
use crate::fault::Position;
use crate::principal::Role;
use crate::request::sha256;
use crate::schema::Schema;
use crate::template::Piece;

/// A registered program with everything that the policy says about it.
#[derive(Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) image: Choice,
    pub(crate) argv: Vec<Piece>,
    pub(crate) cwd: Choice,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) input: Schema,
    pub(crate) is_allowed: bool,
    pub(crate) roles: BTreeSet<Role>,
    pub(crate) effect_class: EffectClass,
    pub(crate) complete_exit_codes: BTreeSet<i32>,
    pub(crate) transient_exit_codes: BTreeSet<i32>,
    pub(crate) limits: Limits,
    pub(crate) max_limits: Limits,
    pub(crate) allow: Allow,
}

/// A tool with the digest of its definition.
#[derive(Debug)]
pub(crate) struct Registered {
    pub(crate) tool: Tool,
    pub(crate) digest: Sha256,
    pub(crate) images: Vec<ImageUse>,
}

/// An image that the file names, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImageUse {
    pub(crate) at: Position,
    pub(crate) key: String,
    pub(crate) name: String,
}

/// A value that is fixed, or an argument's, with what holds if that is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// The argument, if one says.
    pub(crate) argument: Option<String>,
    /// The fixed value, or that of a call which leaves the argument out.
    pub(crate) fallback: String,
}

/// What a call may add.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Allow {
    /// Names of variables; `*` is any.
    pub(crate) env: BTreeSet<String>,
    /// Folders (or files) of the host that may be shown inside, with what is below them.
    pub(crate) mounts: BTreeSet<String>,
    /// Whether standard input may be given.
    pub(crate) stdin: bool,
    /// Images that an argument may choose.
    pub(crate) images: BTreeSet<String>,
}

impl Tool {
    /// Whether a role gets to know that the tool exists.
    pub(crate) fn is_visible_to(&self, role: Role) -> bool {
        role == Role::Auditor || self.roles.contains(&role)
    }

    /// What a listing says about it.
    pub(crate) fn info(&self, digest: Sha256, role: Role) -> ToolInfo {
        let may = self.is_allowed && role != Role::Auditor;
        ToolInfo {
            name: self.name.clone(),
            description: self.description.clone(),
            input_schema: self.input.value.clone(),
            effect_class: self.effect_class.as_str().to_owned(),
            permission: if may { "allow" } else { "deny" }.to_owned(),
            digest,
            limits: self.limits,
            max_limits: self.max_limits,
        }
    }

    /// SHA-256 of the RFC 8785 form of the definition with all defaults filled in.
    ///
    /// # Errors
    /// A number in it has no canonical form.
    pub(crate) fn digest(&self) -> Result<Sha256, strict::CanonicalError> {
        let limits = |limits: &Limits| -> serde_json::Map<_, _> {
            LimitName::ALL.into_iter().map(|name| (name.as_str().to_owned(), limits.value(name).into())).collect()
        };
        let choice = |choice: &Choice| json!({"argument": choice.argument, "value": choice.fallback});
        let argv: Vec<_> = self.argv.iter().map(Piece::to_json).collect();
        let roles: Vec<_> = self.roles.iter().map(|role| role.as_str()).collect();
        let definition = json!({
            "name": self.name,
            "description": self.description,
            "image": choice(&self.image),
            "argv": argv,
            "cwd": choice(&self.cwd),
            "env": self.env,
            "input_schema": self.input.value,
            "permission": if self.is_allowed { "allow" } else { "deny" },
            "roles": roles,
            "effect_class": self.effect_class.as_str(),
            "complete_exit_codes": self.complete_exit_codes,
            "transient_exit_codes": self.transient_exit_codes,
            "limits": limits(&self.limits),
            "max_limits": limits(&self.max_limits),
            "allow": {
                "env": self.allow.env,
                "mounts": self.allow.mounts,
                "stdin": self.allow.stdin,
                "image": self.allow.images,
            },
        });
        strict::canonical(&definition).map(|bytes| sha256(&bytes))
    }
}
