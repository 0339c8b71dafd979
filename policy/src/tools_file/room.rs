//! How far a call may go: limits, their maxima, and what it may add.

use std::collections::BTreeSet;

use toolcell_types::{LimitName, Limits, LimitsPatch};

use crate::document::{Document, Section, locate, words};
use crate::tool::Allow;
use crate::tools_file::{ID, is_id};
use crate::{bounds, paths};

/// Keys of `allow`.
pub(super) const ALLOW_KEYS: [&str; 4] = ["env", "mounts", "stdin", "image"];

/// The limits of a call that states none.
pub(super) fn limits(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<Limits> {
    read_limits(document, section, "limits", &Limits::default())
}

fn read_limits(document: &mut Document<'_>, section: &Section<'_, '_>, key: &str, base: &Limits) -> Option<Limits> {
    let Some(value) = section.find(key) else { return Some(*base) };
    let table = document.table(value, section.key(key))?;
    let before = document.faults.len();
    document.only(&table, &LimitName::ALL.map(LimitName::as_str), &[]);
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

pub(super) fn max_limits(document: &mut Document<'_>, section: &Section<'_, '_>, limits: &Limits) -> Option<Limits> {
    let most = read_limits(document, section, "max_limits", limits)?;
    let Some(value) = section.find("max_limits") else { return Some(most) };
    let before = document.faults.len();
    for name in LimitName::ALL {
        let (least, got) = (limits.value(name), most.value(name));
        if got < least {
            let key = section.key(&format!("max_limits.{}", name.as_str()));
            let span = locate(value, &format!("/{}", name.as_str()));
            document.refuse(span, key, format!("at least the tool's own limit, {least}"), format!("the number {got}"));
        }
    }
    (document.faults.len() == before).then_some(most)
}

pub(super) fn allow(document: &mut Document<'_>, section: &Section<'_, '_>) -> Option<Allow> {
    let Some(value) = section.find("allow") else { return Some(Allow::default()) };
    let table = document.table(value, section.key("allow"))?;
    let before = document.faults.len();
    document.only(&table, &ALLOW_KEYS, &[]);
    let is_variable = |name: &str| name == "*" || bounds::variable(name, "").is_ok();
    let env = set(document, &table, "env", ("\"*\" or a name [A-Za-z_][A-Za-z0-9_]*", &is_variable));
    let mounts = set(document, &table, "mounts", (paths::ABSOLUTE, &paths::is_absolute));
    let images = set(document, &table, "image", (&format!("named {ID}"), &is_id));
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
    let items = document.items(value, &table.key(key), &format!("an array, each item {expected}"));
    for (key, item) in items.unwrap_or_default() {
        match document.text(item, &key) {
            Some(text) if is_right(text) => drop(out.insert(text.to_owned())),
            Some(_) => document.refuse(item.span(), key, expected, words(item.get_ref())),
            None => {}
        }
    }
    out
}
