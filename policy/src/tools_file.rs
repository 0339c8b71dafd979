//! Reading `tools.toml`: each key of each tool, with its default and its bounds.
//!
//! Keys are described for people in the crate's own documentation; a test compares the two.

use std::collections::{BTreeMap, BTreeSet};

use toml::de::DeTable;
use toolcell_types::{LimitName, Limits, LimitsPatch};

use crate::admitted::EffectClass;
use crate::document::{Document, Located, Section};
use crate::fault::PolicyFault;
use crate::principal::Role;
use crate::refusal::quoted;
use crate::schema::{ArgumentKind, Schema};
use crate::template::{self, Piece};
use crate::tool::{Allow, Choice, Registered, Tool};
use crate::{bounds, paths};

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
/// Keys of `allow`.
pub(crate) const ALLOW_KEYS: [&str; 4] = ["env", "mounts", "stdin", "image"];
/// EX_TEMPFAIL (sysexits.h(3head)): "try again", by custom.
const TRY_AGAIN: i32 = 75;

const NAME: &str = "[a-z][a-z0-9_-]{0,63}";

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
            let at = document.position(source.span().map_or(0, |span| span.start));
            return Err(vec![PolicyFault::Syntax { at, source: Box::new(source) }]);
        }
    };
    let whole = Section { path: String::new(), table: root.get_ref(), span: 0..0 };
    let tools = tools(&mut document, &whole);
    if document.faults.is_empty() { Ok(tools) } else { Err(document.faults) }
}

fn tools(document: &mut Document<'_>, whole: &Section<'_, '_>) -> Vec<Registered> {
    document.only(whole, &["tools"]);
    let Some(tools) = document.required(whole, "tools", "a table with one table for each tool") else {
        return Vec::new();
    };
    let Some(tools) = document.table(tools, "tools".to_owned()) else { return Vec::new() };
    let mut out = Vec::new();
    for (name, value) in tools.table {
        let (span, name) = (name.span(), name.get_ref().as_ref());
        if !is_id(name) {
            document.refuse(span, format!("tools.{}", quoted(name)), format!("named {NAME}"), "another name");
            continue;
        }
        let Some(section) = document.table(value, format!("tools.{name}")) else { continue };
        let Some(tool) = tool(document, &section, name) else { continue };
        match tool.digest() {
            Ok(digest) => out.push(Registered { tool, digest }),
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
    let known: Vec<&str> = TOOL_KEYS.into_iter().chain(LATER_KEYS).collect();
    document.only(section, &known);
    for later in LATER_KEYS {
        if let Some((key, _)) = section.table.get_key_value(later) {
            document.not_yet(key.span(), section.key(later));
        }
    }
    let description = description(document, section);
    let input = input_schema(document, section);
    let argv = argv(document, section, input.as_ref());
    let allow = allow(document, section);
    let image = image(document, section, input.as_ref(), allow.as_ref());
    let cwd = cwd(document, section, input.as_ref());
    if let (Some(input), Some(argv), Some(image), Some(cwd)) = (&input, &argv, &image, &cwd) {
        all_used(document, section, input, (argv, [image, cwd]));
    }
    let env = env(document, section);
    let is_allowed = permission(document, section);
    let roles = roles(document, section);
    let effect_class = effect_class(document, section);
    let (complete_exit_codes, transient_exit_codes) = exit_codes(document, section)?;
    let limits = limits(document, section, "limits", &Limits::default());
    let max_limits = limits.and_then(|limits| max_limits(document, section, &limits));
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

fn argv(document: &mut Document<'_>, section: &Section<'_, '_>, input: Option<&Schema>) -> Option<Vec<Piece>> {
    const EXPECTED: &str = "an array of texts, the program first";
    let (key, value) = (section.key("argv"), document.required(section, "argv", EXPECTED)?);
    let items = document.items(value, &key, EXPECTED);
    if items.is_empty() {
        return document.wrong(value, key, EXPECTED);
    }
    let before = document.faults.len();
    let mut pieces = Vec::new();
    for (key, item) in items {
        let Some(text) = document.text(item, &key) else { continue };
        match Piece::parse(text) {
            Some(Piece::Literal(program)) if pieces.is_empty() && program.is_empty() => {
                document.refuse(item.span(), key, "the name of a program", "an empty text");
            }
            Some(piece) => {
                if let Some(input) = input {
                    fits(document, item, &key, &piece, input);
                }
                pieces.push(piece);
            }
            None => document.refuse(item.span(), key, template::PIECE, quoted(text)),
        }
    }
    (document.faults.len() == before).then_some(pieces)
}

/// Whether a placeholder of the argument vector names an argument of the right kind.
fn fits(document: &mut Document<'_>, item: &Located<'_>, key: &str, piece: &Piece, input: &Schema) {
    let Some(name) = piece.name() else { return };
    let kind = input.arguments().into_iter().find(|(argument, _)| *argument == name).map(|(_, kind)| kind);
    let (is_right, expected) = match piece {
        Piece::Each(_) => (kind == Some(ArgumentKind::Texts), "type = \"array\" with items = { type = \"string\" }"),
        Piece::One(_) | Piece::Literal(_) => (
            matches!(kind, Some(ArgumentKind::Text | ArgumentKind::Scalar)) && input.requires(name),
            "type string, integer, number or boolean and in `required`",
        ),
    };
    if !is_right {
        let got = if kind.is_some() { "one that is not" } else { "no such argument" };
        let expected = format!("a placeholder of an argument in input_schema.properties with {expected}");
        document.refuse(item.span(), key, expected, format!("{name}, {got}"));
    }
}

fn image(
    document: &mut Document<'_>,
    section: &Section<'_, '_>,
    input: Option<&Schema>,
    allow: Option<&Allow>,
) -> Option<Choice> {
    const EXPECTED: &str = "the name of an image, or \"{name}\" of a text argument together with allow.image";
    let (key, value) = (section.key("image"), document.required(section, "image", EXPECTED)?);
    let text = document.text(value, &key)?;
    let argument = match Piece::parse(text) {
        Some(Piece::One(argument)) => argument,
        Some(Piece::Literal(_)) if is_id(text) => {
            return Some(Choice { argument: None, fallback: text.to_owned() });
        }
        _ => return document.wrong(value, key, EXPECTED),
    };
    if input.is_some_and(|input| !is_text(input, &argument)) {
        return document.wrong(value, key, EXPECTED);
    }
    let fallback = allow?.images.first().cloned();
    match fallback {
        Some(fallback) => Some(Choice { argument: Some(argument), fallback }),
        None => document.wrong(value, key, EXPECTED),
    }
}

fn cwd(document: &mut Document<'_>, section: &Section<'_, '_>, input: Option<&Schema>) -> Option<Choice> {
    const EXPECTED: &str = "an absolute path inside, or \"{name}\" of a text argument";
    let Some(value) = section.find("cwd") else {
        return Some(Choice { argument: None, fallback: "/tmp".to_owned() });
    };
    let key = section.key("cwd");
    let text = document.text(value, &key)?;
    match Piece::parse(text) {
        Some(Piece::One(argument)) if input.is_none_or(|input| is_text(input, &argument)) => {
            Some(Choice { argument: Some(argument), fallback: "/tmp".to_owned() })
        }
        Some(Piece::Literal(_)) if paths::is_absolute(text) => {
            Some(Choice { argument: None, fallback: text.to_owned() })
        }
        _ => document.wrong(value, key, EXPECTED),
    }
}

fn is_text(input: &Schema, name: &str) -> bool {
    input.arguments().into_iter().any(|(argument, kind)| argument == name && kind == ArgumentKind::Text)
}

/// An argument that is described and goes nowhere would be ignored, which nobody expects.
fn all_used(
    document: &mut Document<'_>,
    section: &Section<'_, '_>,
    input: &Schema,
    (argv, choices): (&[Piece], [&Choice; 2]),
) {
    let named =
        argv.iter().filter_map(Piece::name).chain(choices.into_iter().filter_map(|one| one.argument.as_deref()));
    let used: BTreeSet<&str> = named.collect();
    let Some(schema) = section.find("input_schema") else { return };
    for (name, _) in input.arguments() {
        if !used.contains(name) {
            let pointer = format!("/properties/{}", name.replace('~', "~0").replace('/', "~1"));
            let key = section.key(&format!("input_schema.properties.{name}"));
            let expected = format!("used in argv, cwd or image as \"{{{name}}}\" or \"{{{name}...}}\"");
            document.refuse(crate::document::locate(schema, &pointer), key, expected, "an argument that goes nowhere");
        }
    }
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
    let items = document.items(value, &key, EXPECTED);
    if items.is_empty() {
        return document.wrong(value, key, EXPECTED);
    }
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
    let value = section.find(key)?;
    let items = document.items(value, &section.key(key), "an array of whole numbers from 0 to 255");
    let mut codes = BTreeSet::new();
    for (key, item) in items {
        codes.extend(document.number(item, &key, (0, 255)).and_then(|code| i32::try_from(code).ok()));
    }
    Some((value, codes))
}

fn limits(document: &mut Document<'_>, section: &Section<'_, '_>, key: &str, base: &Limits) -> Option<Limits> {
    let Some(value) = section.find(key) else { return Some(*base) };
    let table = document.table(value, section.key(key))?;
    document.only(&table, &LimitName::ALL.map(LimitName::as_str));
    let before = document.faults.len();
    let mut stated = serde_json::Map::new();
    for limit in LimitName::ALL {
        if let Some(value) = table.find(limit.as_str()) {
            let number = document.number(value, &table.key(limit.as_str()), limit.bounds())?;
            stated.insert(limit.as_str().to_owned(), number.into());
        }
    }
    match serde_json::from_value::<LimitsPatch>(stated.into()) {
        Ok(patch) if document.faults.len() == before => Some(patch.over(base)),
        Ok(_) => None,
        Err(source) => {
            document.refuse(value.span(), table.path, "a table of limits", source.to_string());
            None
        }
    }
}

fn max_limits(document: &mut Document<'_>, section: &Section<'_, '_>, limits: &Limits) -> Option<Limits> {
    let most = self::limits(document, section, "max_limits", limits)?;
    let Some(value) = section.find("max_limits") else { return Some(most) };
    let before = document.faults.len();
    for name in LimitName::ALL {
        let (least, got) = (limits.value(name), most.value(name));
        if got < least {
            let key = section.key(&format!("max_limits.{}", name.as_str()));
            let span = crate::document::locate(value, &format!("/{}", name.as_str()));
            document.refuse(span, key, format!("at least the tool's own limit, {least}"), format!("the number {got}"));
        }
    }
    (document.faults.len() == before).then_some(most)
}

fn allow(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<Allow> {
    let Some(value) = section.find("allow") else { return Some(Allow::default()) };
    let table = document.table(value, section.key("allow"))?;
    document.only(&table, &ALLOW_KEYS);
    let before = document.faults.len();
    let is_variable = |name: &str| name == "*" || bounds::variable(name, "").is_ok();
    let env = set(document, &table, "env", ("\"*\" or a name [A-Za-z_][A-Za-z0-9_]*", &is_variable));
    let mounts = set(document, &table, "mounts", (paths::ABSOLUTE, &paths::is_absolute));
    let images = set(document, &table, "image", (&format!("named {NAME}"), &is_id));
    let stdin = table.find("stdin").map(|value| document.flag(value, &table.key("stdin")));
    (document.faults.len() == before).then(|| Allow { env, mounts, stdin: stdin.flatten().unwrap_or(false), images })
}

fn set(
    document: &mut Document<'_>,
    table: &Section<'_, '_>,
    key: &str,
    (expected, is_right): (&str, &dyn Fn(&str) -> bool),
) -> BTreeSet<String> {
    let mut out = BTreeSet::new();
    let Some(value) = table.find(key) else { return out };
    for (key, item) in document.items(value, &table.key(key), &format!("an array, each item {expected}")) {
        match document.text(item, &key) {
            Some(text) if is_right(text) => drop(out.insert(text.to_owned())),
            Some(_) => document.refuse(item.span(), key, expected, crate::document::words(item.get_ref())),
            None => {}
        }
    }
    out
}
