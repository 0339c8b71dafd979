//! Reading `tools.toml`: each key of each tool, with its default and its bounds.
//!
//! Keys are described for people in the crate's own documentation; a test compares the two.

mod places;
mod room;

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeTable;

use crate::admitted::EffectClass;
use crate::bounds;
use crate::document::{Document, Located, Section};
use crate::fault::PolicyFault;
use crate::principal::Role;
use crate::refusal::quoted;
use crate::schema::Schema;
use crate::tool::{Registered, Tool};

/// Name of the file.
pub(crate) const FILE: &str = "tools.toml";
/// Largest file, in bytes.
const FILE_MAX_BYTES: usize = 1024 * 1024;
/// Keys of a tool.
pub(crate) const TOOL_KEYS: [&str; 14] = [
    "description",
    "image",
    "argv",
    "input_schema",
    "permission",
    "roles",
    "effect_class",
    "complete_exit_codes",
    "transient_exit_codes",
    "cwd",
    "env",
    "limits",
    "max_limits",
    "allow",
];
/// Keys of a tool that come with later versions.
const LATER_KEYS: [&str; 2] = ["output_schema", "result"];
/// EX_TEMPFAIL (sysexits.h(3head)): "try again", by custom.
const TRY_AGAIN: i32 = 75;

/// What a name of a tool or an image looks like.
const ID: &str = "[a-z][a-z0-9_-]{0,63}";

/// Reads the file.
///
/// # Errors
/// Every mistake in it, at least one.
pub(crate) fn read(bytes: &[u8]) -> Result<Vec<Registered>, Vec<PolicyFault>> {
    if bytes.len() > FILE_MAX_BYTES {
        return Err(vec![PolicyFault::FileSize { file: FILE.to_owned(), got: bytes.len(), most: FILE_MAX_BYTES }]);
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(source) => {
            let readable = bytes.get(..source.valid_up_to()).unwrap_or_default();
            let readable = String::from_utf8_lossy(readable);
            let at = Document::new(FILE, &readable).position(readable.len());
            return Err(vec![PolicyFault::NotUtf8 { at, source }]);
        }
    };
    let mut document = Document::new(FILE, text);
    let root = match DeTable::parse(text) {
        Ok(root) => root,
        Err(source) => {
            let start = source.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or(text).trim_end();
            let (at, after) = (document.position(start), document.position(before.len()).line);
            return Err(vec![PolicyFault::Syntax { at, after, source: Box::new(source) }]);
        }
    };
    let whole = Section { path: String::new(), table: root.get_ref(), span: 0..0 };
    let tools = tools(&mut document, &whole);
    if document.faults.is_empty() { Ok(tools) } else { Err(document.faults) }
}

fn tools(document: &mut Document<'_>, whole: &Section<'_, '_>) -> Vec<Registered> {
    document.only(whole, &["tools"], &[]);
    let Some(tools) = document.required(whole, "tools", "a table with one table for each tool") else {
        return Vec::new();
    };
    let Some(tools) = document.table(tools, "tools".to_owned()) else { return Vec::new() };
    let mut out = Vec::new();
    for (name, value) in tools.table {
        let (span, name) = (name.span(), name.get_ref().as_ref());
        if !is_id(name) {
            document.refuse(span, format!("tools.{}", quoted(name)), format!("named {ID}"), "another name");
            continue;
        }
        let Some(section) = document.table(value, format!("tools.{name}")) else { continue };
        let Some(tool) = tool(document, &section, name) else { continue };
        match tool.digest() {
            Ok(digest) => out.push(Registered { tool, digest, images: places::image_uses(document, &section) }),
            Err(source) => {
                let at = document.position(span.start);
                document.faults.push(PolicyFault::Schema { at, key: section.path, source: Box::new(source) });
            }
        }
    }
    out
}

/// A name of a tool or an image.
fn is_id(name: &str) -> bool {
    let tail = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-');
    name.len() <= 64 && name.bytes().next().is_some_and(|b| b.is_ascii_lowercase()) && name.bytes().all(tail)
}

fn tool(document: &mut Document<'_>, section: &Section<'_, '_>, name: &str) -> Option<Tool> {
    document.only(section, &TOOL_KEYS, &LATER_KEYS);
    let description = description(document, section);
    let input = input_schema(document, section);
    let argv = places::argv(document, section, input.as_ref());
    let allow = room::allow(document, section);
    let image = places::image(document, section, input.as_ref(), allow.as_ref());
    let cwd = places::cwd(document, section, input.as_ref());
    if let (Some(input), Some(argv), Some(image), Some(cwd)) = (&input, &argv, &image, &cwd) {
        places::all_used(document, section, input, (argv, [image, cwd]));
    }
    let env = env(document, section);
    let is_allowed = permission(document, section);
    let roles = roles(document, section);
    let effect_class = effect_class(document, section);
    let (complete_exit_codes, transient_exit_codes) = exit_codes(document, section)?;
    let limits = room::limits(document, section);
    let max_limits = limits.and_then(|limits| room::max_limits(document, section, &limits));
    Some(Tool {
        name: name.to_owned(),
        description: description?,
        image: image?,
        argv: argv?,
        cwd: cwd?,
        env,
        input: input?,
        is_allowed: is_allowed?,
        roles: roles?,
        effect_class: effect_class?,
        complete_exit_codes,
        transient_exit_codes,
        limits: limits?,
        max_limits: max_limits?,
        allow: allow?,
    })
}

fn description(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<String> {
    const EXPECTED: &str = "one line of 1 to 1024 bytes that says what the tool does";
    let (key, value) = (section.key("description"), document.required(section, "description", EXPECTED)?);
    let text = document.text(value, &key)?;
    if text.trim().is_empty() || text.len() > 1024 || text.chars().any(char::is_control) {
        return document.wrong(value, key, EXPECTED);
    }
    Some(text.to_owned())
}

fn input_schema(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<Schema> {
    let value = document.required(section, "input_schema", "a JSON Schema (2020-12) of the arguments")?;
    let key = section.key("input_schema");
    document.table(value, key.clone())?;
    Schema::read(document, value, &key)
}

fn env(document: &mut Document<'_>, section: &Section<'_, '_>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let Some(value) = section.find("env") else { return out };
    let Some(table) = document.table(value, section.key("env")) else { return out };
    for (name, value) in table.table {
        let name = name.get_ref().as_ref();
        let Some(text) = document.text(value, &table.key(name)) else { continue };
        match bounds::variable(name, text) {
            Ok(()) => drop(out.insert(name.to_owned(), text.to_owned())),
            Err(_) => {
                let expected = format!("named [A-Za-z_][A-Za-z0-9_]* and {}", bounds::ARGUMENT);
                document.refuse(value.span(), table.key(&quoted(name)), expected, "another name or text");
            }
        }
    }
    out
}

fn permission(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<bool> {
    const EXPECTED: &str = "\"allow\" or \"deny\"";
    let (key, value) = (section.key("permission"), document.required(section, "permission", EXPECTED)?);
    match document.text(value, &key)? {
        "allow" => Some(true),
        "deny" => Some(false),
        "ask" => {
            document.not_yet(value.span(), format!("{key} = \"ask\""));
            None
        }
        _ => document.wrong(value, key, EXPECTED),
    }
}

fn roles(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<BTreeSet<Role>> {
    const EXPECTED: &str =
        "an array of \"caller\" and \"operator\", at least one (auditors see every tool and call none)";
    let (key, value) = (section.key("roles"), document.required(section, "roles", EXPECTED)?);
    let items = document.some_items(value, &key, EXPECTED)?;
    let mut roles = BTreeSet::new();
    for (_, item) in items {
        match item.get_ref().as_str().and_then(Role::parse) {
            Some(role @ (Role::Caller | Role::Operator)) => drop(roles.insert(role)),
            Some(Role::Auditor) | None => return document.wrong(item, key, EXPECTED),
        }
    }
    Some(roles)
}

fn effect_class(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<EffectClass> {
    let Some(value) = section.find("effect_class") else { return Some(EffectClass::Read) };
    let key = section.key("effect_class");
    match document.text(value, &key)? {
        "read" => Some(EffectClass::Read),
        word @ ("write" | "external") => {
            document.not_yet(value.span(), format!("{key} = {word:?} (no cell has a channel to act through)"));
            None
        }
        _ => document.wrong(value, key, "\"read\""),
    }
}

/// Codes of success and of "try again"; no code is both.
fn exit_codes(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<(BTreeSet<i32>, BTreeSet<i32>)> {
    let complete = codes(document, section, "complete_exit_codes");
    let transient = codes(document, section, "transient_exit_codes");
    let complete = complete.map_or_else(|| BTreeSet::from([0]), |(_, codes)| codes);
    let Some((value, transient)) = transient else {
        let mut transient = BTreeSet::from([TRY_AGAIN]);
        transient.retain(|code| !complete.contains(code));
        return Some((complete, transient));
    };
    match transient.intersection(&complete).next() {
        None => Some((complete, transient)),
        Some(both) => {
            let key = section.key("transient_exit_codes");
            let expected = "without the codes of complete_exit_codes";
            document.refuse(value.span(), key, expected, format!("{both} in both"));
            None
        }
    }
}

fn codes<'t, 'a>(
    document: &mut Document<'_>,
    section: &Section<'t, 'a>,
    key: &str,
) -> Option<(&'t Located<'a>, BTreeSet<i32>)> {
    const EXPECTED: &str = "an array of whole numbers from 0 to 255, at least one";
    let value = section.find(key)?;
    let mut codes = BTreeSet::new();
    for (key, item) in document.some_items(value, &section.key(key), EXPECTED)? {
        codes.extend(document.number(item, &key, (0, 255)).and_then(|code| i32::try_from(code).ok()));
    }
    Some((value, codes))
}

#[cfg(test)]
mod tests;
