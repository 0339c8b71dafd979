//! Bounds that hold for every request, whatever the policy: counts, sizes, forms of names and paths.

use toolcell_types::plan::{MOUNTS_MAX, PATHS_MAX_BYTES};
use toolcell_types::{BadLimit, CallRequest, ControlId, Limits, MountMode, MountSpec};

use crate::malformed::Malformed;
use crate::paths;
use crate::refusal::quoted;
use crate::request::Ablation;

/// One argument, or one `NAME=value`, has fewer bytes than this (execve(2): MAX_ARG_STRLEN, its NUL included).
pub(crate) const ARGUMENT_MAX_BYTES: usize = 131_072;
/// Most labels.
const LABELS_MAX: usize = 32;
/// Most bytes of a label's name, and of its text.
const LABEL_MAX_BYTES: usize = 256;
/// All paths of a caller's mounts together, in bytes: what a plan takes, less what an image needs.
const MOUNT_PATHS_MAX_BYTES: usize = PATHS_MAX_BYTES - 8192;

/// Longest life of a call, queue included, in milliseconds: seven days, as for `wall_ms`.
const DEADLINE_MAX_MS: u64 = 7 * 24 * 3_600_000;

/// Adds what lies outside the bounds.
pub(crate) fn check(request: &CallRequest, ablation: Ablation, found: &mut Vec<Malformed>) {
    later(request, found);
    ablated(request, ablation, found);
    if let Err(BadLimit { name, least, most, got }) = request.limits.over(&Limits::default()).validate() {
        let expected = format!("a whole number from {least} to {most}");
        found.push(Malformed::value(format!("limits.{name}"), expected, format!("the number {got}")));
    }
    if let Some(got) = request.deadline_ms.filter(|millis| !(1..=DEADLINE_MAX_MS).contains(millis)) {
        let expected = format!("a whole number from 1 to {DEADLINE_MAX_MS}");
        found.push(Malformed::value("deadline_ms", expected, format!("the number {got}")));
    }
    labels(request, found);
    for (name, value) in &request.env {
        found.extend(variable(name, value).err());
    }
    mounts(&request.mounts, found);
}

/// Whether a variable can be handed to execve.
///
/// # Errors
/// What it should look like. The value is not repeated.
pub(crate) fn variable(name: &str, value: &str) -> Result<(), Malformed> {
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    let member = format!("env[{}]", quoted(name));
    if !head || !bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(Malformed::value(member, "named [A-Za-z_][A-Za-z0-9_]*", "another name"));
    }
    argument(&[name, "=", value]).map_err(|got| Malformed::value(member, ARGUMENT, got))
}

/// What an argument or a variable has to be.
pub(crate) const ARGUMENT: &str = "a text without NUL and below 131072 bytes";

/// Whether a text, given in pieces, can be handed to execve.
///
/// # Errors
/// What it is instead, in words.
pub(crate) fn argument(pieces: &[&str]) -> Result<(), String> {
    let bytes: usize = pieces.iter().map(|piece| piece.len()).sum();
    if bytes >= ARGUMENT_MAX_BYTES {
        return Err(format!("{bytes} bytes"));
    }
    if pieces.iter().any(|piece| piece.contains('\0')) { Err("a text with a NUL".to_owned()) } else { Ok(()) }
}

/// Members of later versions, should a request hold some that was not read by [`crate::request::decode`].
fn later(request: &CallRequest, found: &mut Vec<Malformed>) {
    let holds = [
        ("key", request.key.is_some()),
        ("session", request.session.is_some()),
        ("files", !request.files.is_empty()),
        ("outputs", !request.outputs.is_empty()),
        ("expect_revision", request.expect_revision.is_some()),
        ("expect_policy", request.expect_policy.is_some()),
        ("preconditions", !request.preconditions.is_empty()),
    ];
    found.extend(
        holds.into_iter().filter(|(_, holds)| *holds).map(|(member, _)| Malformed::NotInThisVersion { member }),
    );
}

/// Controls to be switched off: known ones, each once.
fn ablated(request: &CallRequest, ablation: Ablation, found: &mut Vec<Malformed>) {
    if request.ablate.is_empty() {
        return;
    }
    if ablation == Ablation::Refused {
        return found.push(Malformed::Ablation);
    }
    if request.ablate.len() > ControlId::ALL.len() {
        let expected = format!("at most {} names of controls", ControlId::ALL.len());
        return found.push(Malformed::value("ablate", expected, request.ablate.len().to_string()));
    }
    for (index, name) in request.ablate.iter().enumerate() {
        let member = format!("ablate[{index}]");
        if name.starts_with("gate.") || name == "audit" {
            found.push(Malformed::NotInThisVersion { member: "a control of the gate in ablate" });
        } else if ControlId::parse(name).is_none() {
            let known = ControlId::ALL.map(ControlId::as_str).join(", ");
            found.push(Malformed::value(member, format!("one of {known}"), quoted(name)));
        } else if request.ablate.iter().take(index).any(|other| other == name) {
            found.push(Malformed::value(member, "a control that is not named twice", quoted(name)));
        }
    }
}

fn labels(request: &CallRequest, found: &mut Vec<Malformed>) {
    if request.labels.len() > LABELS_MAX {
        let got = request.labels.len().to_string();
        found.push(Malformed::value("labels", format!("at most {LABELS_MAX} labels"), got));
    }
    for (name, text) in request.labels.iter().take(LABELS_MAX) {
        // Control characters would be six bytes each in a receipt, whose size is bounded.
        let fits = |part: &String| part.len() <= LABEL_MAX_BYTES && !part.chars().any(char::is_control);
        if name.is_empty() || !fits(name) || !fits(text) {
            let expected = format!("a name and a text of at most {LABEL_MAX_BYTES} bytes without control characters");
            let got = format!("a name of {} and a text of {} bytes", name.len(), text.len());
            found.push(Malformed::value(format!("labels[{}]", quoted(name)), expected, got));
        }
    }
}

fn mounts(mounts: &[MountSpec], found: &mut Vec<Malformed>) {
    if mounts.len() > MOUNTS_MAX {
        let got = mounts.len().to_string();
        found.push(Malformed::value("mounts", format!("at most {MOUNTS_MAX} mounts"), got));
        return;
    }
    let bytes: usize = mounts.iter().map(|mount| mount.host.len() + mount.inside.len()).sum();
    if bytes > MOUNT_PATHS_MAX_BYTES {
        let expected = format!("at most {MOUNT_PATHS_MAX_BYTES} bytes of paths in all");
        found.push(Malformed::value("mounts", expected, format!("{bytes} bytes")));
    }
    for (index, mount) in mounts.iter().enumerate() {
        if mount.mode == MountMode::Rw {
            found.push(Malformed::NotInThisVersion { member: "mode \"rw\" of a mount" });
        }
        for (end, path) in [("host", &mount.host), ("inside", &mount.inside)] {
            if !paths::is_absolute(path) {
                found.push(Malformed::value(format!("mounts[{index}].{end}"), paths::ABSOLUTE, quoted(path)));
            }
        }
        if paths::is_absolute(&mount.inside) && !paths::is_mount_point(&mount.inside) {
            found.push(Malformed::value(format!("mounts[{index}].inside"), paths::INSIDE, quoted(&mount.inside)));
        }
        if mounts.iter().take(index).any(|other| other.inside == mount.inside) {
            let expected = "a place that no other mount has";
            found.push(Malformed::value(format!("mounts[{index}].inside"), expected, quoted(&mount.inside)));
        }
    }
}
