//! Reading a TOML file by hand, so that every mistake is found at once and has a line and a column.
//!
//! Readers return nothing where they added a fault; a policy is only taken when there is none.

use std::ops::Range;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::fault::{PolicyFault, Position};
use crate::refusal::{listed, quoted};

/// A value with its place in the file.
pub(crate) type Located<'a> = Spanned<DeValue<'a>>;

/// A file being read, and what was found wrong with it so far.
pub(crate) struct Document<'a> {
    file: &'a str,
    text: &'a str,
    pub(crate) faults: Vec<PolicyFault>,
}

/// A table with its path and its place.
pub(crate) struct Section<'t, 'a> {
    /// `tools.python`; empty for the file itself.
    pub(crate) path: String,
    pub(crate) table: &'t DeTable<'a>,
    pub(crate) span: Range<usize>,
}

impl<'t, 'a> Section<'t, 'a> {
    /// The value of a key.
    pub(crate) fn find(&self, key: &str) -> Option<&'t Located<'a>> {
        self.table.get(key)
    }

    /// The key with its path, as it stands in messages.
    pub(crate) fn key(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }
}

impl<'d> Document<'d> {
    /// A file in which nothing was found wrong yet.
    pub(crate) fn new(file: &'d str, text: &'d str) -> Self {
        Self { file, text, faults: Vec::new() }
    }

    /// The place of a byte of the file.
    pub(crate) fn position(&self, offset: usize) -> Position {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let (lines, last) =
            before.rsplit_once('\n').map_or((0, before), |(head, last)| (head.matches('\n').count() + 1, last));
        Position { file: self.file.to_owned(), line: lines + 1, column: last.chars().count() + 1 }
    }

    /// Adds that a value is not what it has to be.
    pub(crate) fn refuse(
        &mut self,
        span: Range<usize>,
        key: impl Into<String>,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) {
        let at = self.position(span.start);
        self.faults.push(PolicyFault::Value { at, key: key.into(), expected: expected.into(), got: got.into() });
    }

    /// Adds that something comes with a later version.
    pub(crate) fn not_yet(&mut self, span: Range<usize>, what: impl Into<String>) {
        let at = self.position(span.start);
        self.faults.push(PolicyFault::NotInThisVersion { at, what: what.into() });
    }

    /// Adds a fault for every key that is not known, or that comes with a later version.
    pub(crate) fn only(&mut self, section: &Section<'_, '_>, known: &[&str], later: &[&str]) {
        for key in section.table.keys() {
            let name = key.get_ref().as_ref();
            if later.contains(&name) {
                self.not_yet(key.span(), section.key(name));
            } else if !known.contains(&name) {
                let at = self.position(key.span().start);
                let known = listed(known.iter().copied());
                self.faults.push(PolicyFault::UnknownKey { at, key: section.key(name), known });
            }
        }
    }

    /// A key that must be there.
    pub(crate) fn required<'t, 'a>(
        &mut self,
        section: &Section<'t, 'a>,
        key: &str,
        expected: &str,
    ) -> Option<&'t Located<'a>> {
        let found = section.find(key);
        if found.is_none() {
            self.refuse(section.span.clone(), section.key(key), expected, "nothing");
        }
        found
    }

    /// A table.
    pub(crate) fn table<'t, 'a>(&mut self, value: &'t Located<'a>, key: String) -> Option<Section<'t, 'a>> {
        match value.get_ref().as_table() {
            Some(table) => Some(Section { path: key, table, span: value.span() }),
            None => self.wrong(value, key, "a table"),
        }
    }

    /// A text.
    pub(crate) fn text<'t>(&mut self, value: &'t Located<'_>, key: &str) -> Option<&'t str> {
        match value.get_ref().as_str() {
            Some(text) => Some(text),
            None => self.wrong(value, key, "a text"),
        }
    }

    /// Yes or no.
    pub(crate) fn flag(&mut self, value: &Located<'_>, key: &str) -> Option<bool> {
        match value.get_ref().as_bool() {
            Some(flag) => Some(flag),
            None => self.wrong(value, key, "true or false"),
        }
    }

    /// A whole number within bounds.
    pub(crate) fn number(&mut self, value: &Located<'_>, key: &str, bounds: (u64, u64)) -> Option<u64> {
        let (least, most) = bounds;
        let number = match value.get_ref().as_integer() {
            Some(integer) => u64::from_str_radix(integer.as_str(), integer.radix()).ok(),
            None => None,
        };
        match number.filter(|n| (least..=most).contains(n)) {
            Some(number) => Some(number),
            None => self.wrong(value, key, format!("a whole number from {least} to {most}")),
        }
    }

    /// The items of an array, each with its key.
    pub(crate) fn items<'t, 'a>(
        &mut self,
        value: &'t Located<'a>,
        key: &str,
        expected: &str,
    ) -> Option<Vec<(String, &'t Located<'a>)>> {
        match value.get_ref().as_array() {
            Some(array) => {
                Some(array.iter().enumerate().map(|(index, item)| (format!("{key}[{index}]"), item)).collect())
            }
            None => self.wrong(value, key, expected),
        }
    }

    /// The items of an array that must not be empty.
    pub(crate) fn some_items<'t, 'a>(
        &mut self,
        value: &'t Located<'a>,
        key: &str,
        expected: &str,
    ) -> Option<Vec<(String, &'t Located<'a>)>> {
        let items = self.items(value, key, expected)?;
        if items.is_empty() {
            self.refuse(value.span(), key, expected, "an empty array");
            return None;
        }
        Some(items)
    }

    /// A TOML value as JSON; dates, infinities and what is no strict JSON are refused.
    pub(crate) fn json(&mut self, value: &Located<'_>, key: &str) -> Option<Value> {
        match value.get_ref() {
            DeValue::String(text) => Some(Value::String(text.clone().into_owned())),
            DeValue::Boolean(flag) => Some(Value::Bool(*flag)),
            DeValue::Integer(integer) => match i64::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => Some(Value::from(number)),
                Err(_too_large) => self.wrong(value, key, "a number within \u{b1}9007199254740991"),
            },
            DeValue::Float(float) => match float.as_str().parse::<f64>().ok().and_then(serde_json::Number::from_f64) {
                Some(number) => Some(Value::Number(number)),
                None => self.wrong(value, key, "a finite number"),
            },
            DeValue::Datetime(_) => self.wrong(value, key, "a JSON value (dates are texts there)"),
            DeValue::Array(items) => items
                .iter()
                .enumerate()
                .map(|(index, item)| self.json(item, &format!("{key}[{index}]")))
                .collect::<Option<Vec<_>>>()
                .map(Value::Array),
            DeValue::Table(members) => members
                .iter()
                .map(|(name, item)| {
                    let name = name.get_ref().clone().into_owned();
                    self.json(item, &format!("{key}.{name}")).map(|item| (name, item))
                })
                .collect::<Option<Map<_, _>>>()
                .map(Value::Object),
        }
    }

    /// Adds that a value is of the wrong kind, and is nothing.
    pub(crate) fn wrong<T>(
        &mut self,
        value: &Located<'_>,
        key: impl Into<String>,
        expected: impl Into<String>,
    ) -> Option<T> {
        self.refuse(value.span(), key, expected, words(value.get_ref()));
        None
    }
}

/// The place below `value` that a JSON pointer (RFC 6901) names, or the nearest place above it.
pub(crate) fn locate(value: &Located<'_>, pointer: &str) -> Range<usize> {
    let mut here = value;
    for step in pointer.split('/').skip(1) {
        let step = step.replace("~1", "/").replace("~0", "~");
        let below = match here.get_ref() {
            DeValue::Table(table) => table.get(step.as_str()),
            DeValue::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            DeValue::String(_)
            | DeValue::Integer(_)
            | DeValue::Float(_)
            | DeValue::Boolean(_)
            | DeValue::Datetime(_) => None,
        };
        match below {
            Some(below) => here = below,
            None => break,
        }
    }
    here.span()
}

/// A value in words, for messages.
pub(crate) fn words(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("the text {}", quoted(text)),
        DeValue::Integer(number) => format!("the number {number}"),
        DeValue::Float(number) => format!("the number {number}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(date) => format!("the date {date}"),
        DeValue::Array(_) => "an array".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_lines_and_characters_from_one() {
        let document = Document::new("tools.toml", "a = 1\nä = 2\n");
        let place = |offset| document.position(offset).to_string();
        assert_eq!((place(0), place(4)), ("tools.toml:1:1".into(), "tools.toml:1:5".into()));
        assert_eq!((place(6), place(8)), ("tools.toml:2:1".into(), "tools.toml:2:2".into()));
        assert_eq!((place(12), place(13)), ("tools.toml:2:6".into(), "tools.toml:3:1".into()));
    }

    #[test]
    fn a_pointer_leads_to_the_value_or_to_the_nearest_place_above() {
        let text = "s = { a = [1, { \"x/y\" = 2 }] }";
        let root = DeTable::parse(text).unwrap();
        let value = root.get_ref().get("s").unwrap();
        let at = |pointer| &text[locate(value, pointer)];
        assert_eq!((at("/a/0"), at("/a/1/x~1y"), at("/a/7")), ("1", "2", "[1, { \"x/y\" = 2 }]"));
        assert_eq!(at(""), "{ a = [1, { \"x/y\" = 2 }] }");
    }
}
