//! Where a call's arguments go: into the argument vector, the working directory, the choice of an image.

use std::collections::BTreeSet;

use crate::document::{Document, Located, Section, locate};
use crate::paths;
use crate::refusal::quoted;
use crate::schema::{ArgumentKind, Schema};
use crate::template::{self, Piece};
use crate::tool::{Allow, Choice, ImageUse};
use crate::tools_file::is_id;

pub(super) fn argv(
    document: &mut Document<'_>,
    section: &Section<'_, '_>,
    input: Option<&Schema>,
) -> Option<Vec<Piece>> {
    const EXPECTED: &str = "an array of texts, the program first";
    let (key, value) = (section.key("argv"), document.required(section, "argv", EXPECTED)?);
    let items = document.some_items(value, &key, EXPECTED)?;
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
        let got = if kind.is_some() { "an argument that is not" } else { "no such argument" };
        let expected = format!("a placeholder of an argument in input_schema.properties with {expected}");
        document.refuse(item.span(), key, expected, format!("{}, {got}", quoted(name)));
    }
}

pub(super) fn image(
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

/// The images that a tool names, for whoever knows which there are.
pub(super) fn image_uses(document: &Document<'_>, section: &Section<'_, '_>) -> Vec<ImageUse> {
    let fixed = section.find("image").map(|value| (section.key("image"), value));
    let choices = section.find("allow").and_then(|allow| allow.get_ref().get("image"));
    let choices = choices.and_then(|value| value.get_ref().as_array()).into_iter().flat_map(|items| items.iter());
    fixed
        .into_iter()
        .chain(choices.map(|value| (section.key("allow.image"), value)))
        .filter_map(|(key, value)| {
            let name = value.get_ref().as_str().filter(|name| is_id(name))?;
            Some(ImageUse { at: document.position(value.span().start), key, name: name.to_owned() })
        })
        .collect()
}

pub(super) fn cwd(document: &mut Document<'_>, section: &Section<'_, '_>, input: Option<&Schema>) -> Option<Choice> {
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
pub(super) fn all_used(
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
            document.refuse(locate(schema, &pointer), key, expected, "an argument that goes nowhere");
        }
    }
}
