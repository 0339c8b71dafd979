//! Deciding about one call of one tool: everything that is wrong is found, or an [`AdmittedCall`] is made.
//!
//! Pure: no clock, no file, no counter. What is checked here is text; whether a host path may be read is asked of the
//! kernel by the launcher, under the caller's own ids.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};
use toolcell_types::{CallRequest, ErrorCode, LimitName, Limits, MountSpec, Problem, Sha256, StdinSpec};

use crate::admitted::{AdmittedCall, AdmittedMount};
use crate::denied::Denied;
use crate::malformed::Malformed;
use crate::refusal::{self, listed, quoted};
use crate::template::{self, Unfit};
use crate::tool::{Choice, Tool};
use crate::{paths, request};

/// The environment that every tool starts from (environ(7)); a tool's and a call's variables lie over it.
const ENVIRONMENT: [(&str, &str); 3] =
    [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/tmp"), ("LANG", "C.UTF-8")];

/// What arguments turned into.
struct Program {
    argv: Vec<String>,
    cwd: String,
    image: String,
}

/// Decides about a call of a tool that the principal sees.
///
/// # Errors
/// The refusal with every finding.
pub(crate) fn decide(tool: &Tool, tool_digest: Sha256, call: &CallRequest) -> Result<AdmittedCall, Problem> {
    let stdin = stdin(call)?;
    let mut denied = Vec::new();
    let program = program(tool, &call.args, &mut denied);
    if !tool.is_allowed {
        denied.push(Denied::Tool { tool: tool.name.clone() });
    }
    let limits = call.limits.over(&tool.limits);
    check_limits(tool, &limits, &mut denied);
    let mut mounts = admit_mounts(tool, &call.mounts, &mut denied);
    let env = environment(tool, &call.env, &mut denied);
    if stdin.is_some() && !tool.allow.stdin {
        denied.push(Denied::Stdin { tool: tool.name.clone() });
    }
    let mut denied = denied.into_iter();
    let program = match (program, denied.next()) {
        (Ok(program), None) => program,
        (Ok(_), Some(first)) | (Err(first), None) => return Err(refuse(tool, call, first, denied)),
        (Err(first), Some(second)) => return Err(refuse(tool, call, first, std::iter::once(second).chain(denied))),
    };
    // Parents before children: a mount below another is laid over it and not hidden by it.
    mounts.sort_by(|a, b| a.inside.cmp(&b.inside));
    Ok(AdmittedCall {
        tool: tool.name.clone(),
        tool_digest,
        argv: program.argv,
        cwd: program.cwd,
        env,
        image: program.image,
        limits,
        mounts,
        stdin,
        effect_class: tool.effect_class,
        complete_exit_codes: tool.complete_exit_codes.iter().copied().collect(),
        transient_exit_codes: tool.transient_exit_codes.iter().copied().collect(),
    })
}

/// A refusal for one reason.
pub(crate) fn refuse_one(call: &CallRequest, denied: Denied) -> Problem {
    let mut problem = refusal::problem(denied.into(), []);
    problem.call_id = Some(call.call_id.to_string());
    problem
}

fn refuse(tool: &Tool, call: &CallRequest, first: Denied, rest: impl Iterator<Item = Denied>) -> Problem {
    let mut problem = refusal::problem(first.into(), rest.map(Into::into));
    problem.call_id = Some(call.call_id.to_string());
    if problem.code == ErrorCode::InvalidArguments {
        problem.expected_schema = Some(tool.input.value.clone());
    }
    problem
}

fn stdin(call: &CallRequest) -> Result<Option<Vec<u8>>, Problem> {
    match &call.stdin {
        None => Ok(None),
        Some(StdinSpec::Text(text)) => Ok(Some(text.clone().into_bytes())),
        Some(StdinSpec::Base64 { base64 }) => STANDARD
            .decode(base64)
            .map(Some)
            .map_err(|source| request::refuse(Malformed::Base64 { source }, [], Some(&call.call_id))),
    }
}

/// Checks the arguments and puts them into their places.
fn program(tool: &Tool, args: &Map<String, Value>, denied: &mut Vec<Denied>) -> Result<Program, Denied> {
    let wrong = |(path, why)| Denied::Arguments { tool: tool.name.clone(), path, why };
    let mut found = tool.input.findings(&Value::Object(args.clone())).into_iter().map(wrong);
    if let Some(first) = found.next() {
        denied.extend(found);
        return Err(first);
    }
    let unfit = |unfit: Unfit| wrong((unfit.path, format!("must {}, got {}", unfit.expected, unfit.got)));
    let argv = template::expand(&tool.argv, args).map_err(unfit)?;
    let cwd = chosen(&tool.cwd, args).map_err(unfit)?;
    if !paths::is_absolute(&cwd) {
        let path = format!("/{}", tool.cwd.argument.as_deref().unwrap_or_default());
        return Err(wrong((path, format!("must be {}, got {}", paths::ABSOLUTE, quoted(&cwd)))));
    }
    let image = chosen(&tool.image, args).map_err(unfit)?;
    if tool.image.argument.is_some() && !tool.allow.images.contains(&image) {
        let allowed = listed(tool.allow.images.iter().map(String::as_str));
        return Err(Denied::Image { tool: tool.name.clone(), allowed, image: quoted(&image) });
    }
    Ok(Program { argv, cwd, image })
}

fn chosen(choice: &Choice, args: &Map<String, Value>) -> Result<String, Unfit> {
    match &choice.argument {
        Some(name) if args.contains_key(name) => template::one(name, args.get(name)),
        _ => Ok(choice.fallback.clone()),
    }
}

fn check_limits(tool: &Tool, limits: &Limits, denied: &mut Vec<Denied>) {
    for name in LimitName::ALL {
        let (got, most) = (limits.value(name), tool.max_limits.value(name));
        if got > most {
            denied.push(Denied::Limit { tool: tool.name.clone(), name: name.as_str(), most, got });
        }
    }
}

/// The mounts with the folder of the policy that holds each; of several the widest, as any of them is enough.
fn admit_mounts(tool: &Tool, mounts: &[MountSpec], denied: &mut Vec<Denied>) -> Vec<AdmittedMount> {
    let mut admitted = Vec::with_capacity(mounts.len());
    for (index, mount) in mounts.iter().enumerate() {
        let holding = tool.allow.mounts.iter().filter(|folder| paths::lies_in(&mount.host, folder));
        match holding.min_by_key(|folder| folder.len()) {
            Some(within) => admitted.push(AdmittedMount {
                host: mount.host.clone(),
                inside: mount.inside.clone(),
                within: within.clone(),
            }),
            None => {
                let allowed = listed(tool.allow.mounts.iter().map(String::as_str));
                let host = quoted(&mount.host);
                denied.push(Denied::Mount { tool: tool.name.clone(), index, allowed, host });
            }
        }
    }
    admitted
}

/// The whole environment, sorted by name: ours, the tool's over it, the call's over both.
fn environment(tool: &Tool, call: &BTreeMap<String, String>, denied: &mut Vec<Denied>) -> Vec<(String, String)> {
    for name in call.keys() {
        if !tool.allow.env.contains("*") && !tool.allow.env.contains(name) {
            let allowed = listed(tool.allow.env.iter().map(String::as_str));
            denied.push(Denied::Env { tool: tool.name.clone(), allowed, name: quoted(name) });
        }
    }
    let ours = ENVIRONMENT.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut env = BTreeMap::from(ours);
    env.extend(tool.env.clone());
    env.extend(call.clone());
    env.into_iter().collect()
}

#[cfg(test)]
mod tests;
