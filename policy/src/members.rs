//! The members of a request, one by one: which are known, of which kind, and which are not in this version.
//!
//! Read by hand and not by a derive: a derived reader also takes an array where an object is meant and null where
//! nothing is meant, and stops at the first finding without saying where it stands.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use toolcell_types::{CallId, CallRequest, LimitName, LimitsPatch, MountSpec, StdinSpec};

use crate::malformed::Malformed;
use crate::refusal::{listed, quoted};
use crate::request::Ablation;

/// What a member's value has to be.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Number,
    Object,
    Array,
    TextOrObject,
}

/// Every member of the contract. The last column: refused in this version as soon as it holds something.
const MEMBERS: [(&str, Kind, bool); 17] = [
    ("call_id", Kind::Text, false),
    ("tool", Kind::Text, false),
    ("args", Kind::Object, false),
    ("key", Kind::Text, true),
    ("session", Kind::Text, true),
    ("limits", Kind::Object, false),
    ("mounts", Kind::Array, false),
    ("files", Kind::Array, true),
    ("outputs", Kind::Array, true),
    ("env", Kind::Object, false),
    ("stdin", Kind::TextOrObject, false),
    ("expect_revision", Kind::Text, true),
    ("expect_policy", Kind::Text, true),
    ("deadline_ms", Kind::Number, false),
    ("preconditions", Kind::Array, true),
    ("labels", Kind::Object, false),
    ("salt", Kind::Text, false),
];

/// The one member that is refused with a code of its own.
const ABLATE: &str = "ablate";

/// Reads a request; what is wrong but does not hinder reading on is added to `found`.
///
/// # Errors
/// The first member without which there is no request.
pub(crate) fn read(
    mut members: Map<String, Value>,
    ablation: Ablation,
    found: &mut Vec<Malformed>,
) -> Result<CallRequest, Malformed> {
    members.retain(|name, value| match known(name, value, ablation) {
        Ok(()) => true,
        Err(wrong) => {
            found.push(wrong);
            false
        }
    });
    let env = texts("env", members.remove("env"), found);
    let labels = texts("labels", members.remove("labels"), found);
    let limits = limits(members.remove("limits"), found);
    let mounts = mounts(members.remove("mounts"), found);
    let stdin = stdin(members.remove("stdin"), found);
    let deadline_ms = deadline(members.remove("deadline_ms"), found);
    let ablate = ablated(members.remove(ABLATE), found);
    Ok(CallRequest {
        call_id: CallId::new(&text("call_id", members.remove("call_id"))?)?,
        tool: text("tool", members.remove("tool"))?,
        args: match members.remove("args") {
            Some(Value::Object(args)) => args,
            other => return Err(missing("args", Kind::Object, other.as_ref())),
        },
        salt: members.remove("salt").and_then(|salt| salt.as_str().map(ToOwned::to_owned)),
        key: None,
        session: None,
        limits,
        mounts,
        files: Vec::new(),
        outputs: Vec::new(),
        env,
        stdin,
        expect_revision: None,
        expect_policy: None,
        deadline_ms,
        preconditions: Vec::new(),
        labels,
        ablate,
    })
}

/// What a value is, in words.
pub(crate) fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => format!("the number {number}"),
        Value::String(_) => "a text".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// Names of controls; what they name is looked at with the other bounds.
fn ablated(value: Option<Value>, found: &mut Vec<Malformed>) -> Vec<String> {
    let Some(Value::Array(items)) = value else { return Vec::new() };
    let mut names = Vec::with_capacity(items.len());
    for (index, item) in items.into_iter().enumerate() {
        match item.as_str() {
            Some(name) => names.push(name.to_owned()),
            None => found.push(Malformed::value(format!("ablate[{index}]"), "the name of a control", kind(&item))),
        }
    }
    names
}

fn known(name: &str, value: &Value, ablation: Ablation) -> Result<(), Malformed> {
    if name == ABLATE && ablation == Ablation::Taken {
        return if value.is_array() { Ok(()) } else { Err(missing(ABLATE, Kind::Array, Some(value))) };
    }
    if name == ABLATE {
        let nothing = value.as_array().is_some_and(Vec::is_empty);
        return if nothing { Ok(()) } else { Err(Malformed::Ablation) };
    }
    let Some((member, kind, later)) = MEMBERS.into_iter().find(|(member, ..)| *member == name) else {
        let known = listed_members();
        return Err(Malformed::Unknown { member: quoted(name), known });
    };
    if later && value.as_array().is_none_or(|items| !items.is_empty()) {
        return Err(Malformed::NotInThisVersion { member });
    }
    if kind.takes(value) { Ok(()) } else { Err(missing(member, kind, Some(value))) }
}

fn listed_members() -> String {
    let now = MEMBERS.iter().filter(|(.., later)| !later).map(|(member, ..)| *member);
    listed(now)
}

impl Kind {
    fn takes(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::TextOrObject => value.is_string() || value.is_object(),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Number => "a whole number",
            Self::Object => "an object",
            Self::Array => "an array",
            Self::TextOrObject => r#"a text or {"base64":"…"}"#,
        }
    }
}

fn missing(member: &str, expected: Kind, got: Option<&Value>) -> Malformed {
    Malformed::value(member, expected.words(), got.map_or_else(|| "nothing".to_owned(), kind))
}

fn text(member: &str, value: Option<Value>) -> Result<String, Malformed> {
    match value {
        Some(Value::String(text)) => Ok(text),
        other => Err(missing(member, Kind::Text, other.as_ref())),
    }
}

/// Members whose every value is a text.
fn texts(member: &str, value: Option<Value>, found: &mut Vec<Malformed>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let Some(Value::Object(texts)) = value else { return out };
    for (name, value) in texts {
        let Value::String(text) = value else {
            found.push(Malformed::value(format!("{member}[{}]", quoted(&name)), Kind::Text.words(), kind(&value)));
            continue;
        };
        out.insert(name, text);
    }
    out
}

fn limits(value: Option<Value>, found: &mut Vec<Malformed>) -> LimitsPatch {
    let Some(Value::Object(limits)) = value else { return LimitsPatch::default() };
    let before = found.len();
    for (name, value) in &limits {
        let Some(limit) = LimitName::ALL.into_iter().find(|limit| limit.as_str() == name) else {
            let known = listed(LimitName::ALL.into_iter().map(LimitName::as_str));
            found.push(Malformed::Unknown { member: format!("limits[{}]", quoted(name)), known });
            continue;
        };
        let (least, most) = limit.bounds();
        if value.as_u64().is_none_or(|n| n < least || n > most) {
            let expected = format!("a whole number from {least} to {most}");
            found.push(Malformed::value(format!("limits.{}", limit.as_str()), expected, kind(value)));
        }
    }
    if found.len() > before {
        return LimitsPatch::default();
    }
    serde_json::from_value(Value::Object(limits)).unwrap_or_else(|source| {
        found.push(Malformed::value("limits", "an object of whole numbers", source.to_string()));
        LimitsPatch::default()
    })
}

fn mounts(value: Option<Value>, found: &mut Vec<Malformed>) -> Vec<MountSpec> {
    let Some(Value::Array(items)) = value else { return Vec::new() };
    let mut mounts = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        if !item.is_object() {
            found.push(Malformed::value(format!("mounts[{index}]"), Kind::Object.words(), kind(&item)));
            continue;
        }
        match serde_json::from_value(item) {
            Ok(mount) => mounts.push(mount),
            Err(source) => found.push(Malformed::Mount { index, source }),
        }
    }
    mounts
}

fn stdin(value: Option<Value>, found: &mut Vec<Malformed>) -> Option<StdinSpec> {
    match value? {
        Value::String(text) => Some(StdinSpec::Text(text)),
        Value::Object(mut members) => match (members.remove("base64"), members.is_empty()) {
            (Some(Value::String(base64)), true) => Some(StdinSpec::Base64 { base64 }),
            _ => {
                let got = "an object with other members or another value";
                found.push(Malformed::value("stdin", Kind::TextOrObject.words(), got));
                None
            }
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

fn deadline(value: Option<Value>, found: &mut Vec<Malformed>) -> Option<u64> {
    let value = value?;
    let millis = value.as_u64();
    if millis.is_none() {
        found.push(Malformed::value("deadline_ms", Kind::Number.words(), kind(&value)));
    }
    millis
}
