//! The schema of a tool's arguments: JSON Schema 2020-12, compiled once when the policy is read.
//!
//! Guarantees: nothing outside the schema is ever fetched; patterns run in linear time (no backtracking, so no
//! back-references); `format` is checked; a keyword or format that does not exist is a mistake, not a comment.
//! Messages name the place and the rule and never repeat the argument's value.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::document::{Document, Located, locate};
use crate::fault::PolicyFault;
use crate::refusal::quoted;

/// Most findings about the arguments of one call.
const FINDINGS_MAX: usize = 16;
/// Most characters of one of them.
const FINDING_MAX_CHARS: usize = 300;

/// Keywords whose value is one schema (JSON Schema core 2020-12, 10.2 and 10.3; unevaluated: 11).
const ONE: [&str; 11] = [
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
/// Keywords whose value is an array of schemas.
const MANY: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Keywords whose value is an object of schemas.
const NAMED: [&str; 4] = ["$defs", "dependentSchemas", "patternProperties", "properties"];
/// Keywords whose value is no schema.
const PLAIN: [&str; 36] = [
    "$anchor",
    "$comment",
    "$dynamicAnchor",
    "$dynamicRef",
    "$id",
    "$ref",
    "$schema",
    "const",
    "contentEncoding",
    "contentMediaType",
    "default",
    "dependentRequired",
    "deprecated",
    "description",
    "enum",
    "examples",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxContains",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minContains",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "readOnly",
    "required",
    "title",
    "type",
    "uniqueItems",
];

/// A compiled schema with the text that it was compiled from.
#[derive(Debug)]
pub(crate) struct Schema {
    pub(crate) value: Value,
    validator: Validator,
}

/// What an argument of a tool is, as far as argument vectors care.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentKind {
    /// A text.
    Text,
    /// A number or a truth value.
    Scalar,
    /// An array of texts.
    Texts,
    /// Anything else.
    Other,
}

impl Schema {
    /// Compiles the schema at `key`, adding what is wrong with it.
    pub(crate) fn read(document: &mut Document<'_>, value: &Located<'_>, key: &str) -> Option<Self> {
        let json = document.json(value, key)?;
        // Through the strict reader, so that the schema has a canonical form and one form of each number.
        let strict = serde_json::to_vec(&json).ok().map(|bytes| toolcell_types::json::parse_strict(&bytes));
        let json = match strict {
            Some(Ok(json)) => json,
            Some(Err(source)) => return refuse(document, (value, "", key), source),
            None => return document.wrong(value, key, "a JSON value"),
        };
        let before = document.faults.len();
        keywords(document, value, &json, &Place { pointer: String::new(), key: key.to_owned() });
        object_only(document, value, &json, key);
        let validator = jsonschema::draft202012::options()
            .with_pattern_options(PatternOptions::regex())
            .should_validate_formats(true)
            .should_ignore_unknown_formats(false)
            .offline()
            .build(&json);
        match validator {
            Ok(validator) if document.faults.len() == before => Some(Self { value: json, validator }),
            Ok(_) => None,
            Err(source) => {
                let pointer = source.instance_path().to_string();
                refuse(document, (value, &pointer, key), source)
            }
        }
    }

    /// What is wrong with the arguments: JSON pointer and reason, at most 16.
    pub(crate) fn findings(&self, args: &Value) -> Vec<(String, String)> {
        let found = self.validator.iter_errors(args).take(FINDINGS_MAX);
        found
            .map(|error| {
                let why = error.masked().to_string();
                let mut short: String = why.chars().take(FINDING_MAX_CHARS).collect();
                if short.len() < why.len() {
                    short.push('\u{2026}');
                }
                (error.instance_path().to_string(), short)
            })
            .collect()
    }

    /// Names and kinds of the arguments.
    pub(crate) fn arguments(&self) -> Vec<(&str, ArgumentKind)> {
        let properties = self.value.get("properties").and_then(Value::as_object);
        properties.into_iter().flatten().map(|(name, schema)| (name.as_str(), ArgumentKind::of(schema))).collect()
    }

    /// Whether an argument must be given.
    pub(crate) fn requires(&self, name: &str) -> bool {
        let required = self.value.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|one| one.as_str() == Some(name)))
    }
}

impl ArgumentKind {
    fn of(schema: &Value) -> Self {
        let kind = |schema: &Value| schema.get("type").and_then(Value::as_str).map(ToOwned::to_owned);
        match kind(schema).as_deref() {
            Some("string") => Self::Text,
            Some("integer" | "number" | "boolean") => Self::Scalar,
            Some("array") if schema.get("items").and_then(kind).as_deref() == Some("string") => Self::Texts,
            _ => Self::Other,
        }
    }
}

/// Where in a schema we are: as a pointer from its root, and as a key of the file.
struct Place {
    pointer: String,
    key: String,
}

impl Place {
    fn below(&self, step: &str) -> Self {
        let escaped = step.replace('~', "~0").replace('/', "~1");
        Self { pointer: format!("{}/{escaped}", self.pointer), key: format!("{}.{step}", self.key) }
    }
}

/// Adds a fault for every keyword that does not exist: to a validator, `maxLenght` is a comment.
fn keywords(document: &mut Document<'_>, root: &Located<'_>, schema: &Value, place: &Place) {
    let Some(members) = schema.as_object() else { return };
    for (word, value) in members {
        let below = place.below(word);
        let word = word.as_str();
        if ONE.contains(&word) {
            keywords(document, root, value, &place.below(word));
        } else if MANY.contains(&word) {
            for (index, item) in value.as_array().into_iter().flatten().enumerate() {
                keywords(document, root, item, &below.below(&index.to_string()));
            }
        } else if NAMED.contains(&word) {
            for (name, item) in value.as_object().into_iter().flatten() {
                keywords(document, root, item, &below.below(name));
            }
        } else if !PLAIN.contains(&word) {
            let at = document.position(locate(root, &below.pointer).start);
            let known = "the keywords of JSON Schema 2020-12".to_owned();
            document.faults.push(PolicyFault::UnknownKey { at, key: below.key, known });
        }
    }
}

/// Arguments are an object, and what the schema does not name is refused, never ignored.
fn object_only(document: &mut Document<'_>, value: &Located<'_>, schema: &Value, key: &str) {
    for (word, expected) in [("type", Value::from("object")), ("additionalProperties", Value::from(false))] {
        let got = schema.get(word);
        if got != Some(&expected) {
            let got = got.map_or_else(|| "nothing".to_owned(), |got| quoted(&got.to_string()));
            let span = locate(value, &format!("/{word}"));
            document.refuse(span, format!("{key}.{word}"), expected.to_string(), got);
        }
    }
    let dialect = schema.get("$schema").and_then(Value::as_str);
    if dialect.is_some_and(|uri| uri.trim_end_matches('#') != "https://json-schema.org/draft/2020-12/schema") {
        let expected = "https://json-schema.org/draft/2020-12/schema, or left out";
        document.refuse(locate(value, "/$schema"), format!("{key}.$schema"), expected, "another dialect");
    }
}

fn refuse<T>(
    document: &mut Document<'_>,
    (value, pointer, key): (&Located<'_>, &str, &str),
    source: impl std::error::Error + Send + Sync + 'static,
) -> Option<T> {
    let at = document.position(locate(value, pointer).start);
    let key = format!("{key}{}", pointer.replace('/', "."));
    document.faults.push(PolicyFault::Schema { at, key, source: Box::new(source) });
    None
}
