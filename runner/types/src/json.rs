//! Strict JSON in, canonical JSON out: one text has one meaning, and one meaning has one text.
//!
//! [`parse_strict`] takes the profile "strict I-JSON" (RFC 7493, narrowed) and nothing else: UTF-8 without a byte order
//! mark, no duplicate member at any depth, no lone surrogate, numbers within ±(2^53−1) and never `-0`, at most
//! [`DEPTH_MAX`] levels, [`NODES_MAX`] values and [`BODY_MAX_BYTES`] bytes. [`canonical`] writes the RFC 8785 form.
//!
//! Guarantees: `parse_strict(canonical(v)) == v` for every `v` that came from `parse_strict` (as long as the canonical
//! form, a little longer where numbers were written with exponents, keeps within the size), so a digest of the
//! canonical form names exactly the value that is used. To that end a whole number has one form, however it was
//! written: `1.0` and `1e0` are read as `1`. A number with a fraction is the nearest double (a literal too small for
//! one is 0). Does not: hash, normalise Unicode (RFC 8785 leaves text as it is), or know any schema.

mod plain;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

pub use self::plain::is_plain;
use crate::BODY_MAX_BYTES;

/// How names begin that serde_json uses among its own parts (its features `raw_value` and `arbitrary_precision`).
const RESERVED: &str = "$serde_json::private::";
/// Most levels of arrays and objects inside one another; `[]` is one level.
pub const DEPTH_MAX: usize = 32;
/// Most values in one text, containers included, member names not.
pub const NODES_MAX: usize = 10_000;
/// Largest magnitude of a number: 2^53 − 1, up to where every whole number is a double of its own.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

/// Why a text is not strict JSON. Lines and columns count from 1, columns in bytes.
#[derive(Debug, thiserror::Error)]
pub enum StrictJsonError {
    /// More bytes than any text may have.
    #[error("the JSON text is {got} bytes long, at most {most} are taken")]
    TooLong {
        /// Its length in bytes.
        got: usize,
        /// The longest that is taken, in bytes.
        most: usize,
    },
    /// Some bytes are not UTF-8.
    #[error("the JSON text is not UTF-8 from byte {at} on")]
    NotUtf8 {
        /// Offset of the first byte that is not, from 0.
        at: usize,
        /// What the decoder said.
        source: std::str::Utf8Error,
    },
    /// It starts with U+FEFF.
    #[error("the JSON text starts with a byte order mark")]
    ByteOrderMark,
    /// An object has the same member twice.
    #[error("member {key:?} stands twice in one object, the second time at line {line} column {column}")]
    DuplicateMember {
        /// The member's name, cut to 64 characters.
        key: String,
        /// Line of the second one.
        line: usize,
        /// Column at which it was noticed.
        column: usize,
    },
    /// A member whose name makes serde_json, whose features a dependency may choose, read the object as something else.
    #[error(
        "member {key:?} has a name that a reader of JSON gives a meaning of its own, at line {line} column {column}"
    )]
    ReservedMember {
        /// The member's name, cut to 64 characters.
        key: String,
        /// Line.
        line: usize,
        /// Column at which it was noticed.
        column: usize,
    },
    /// A number beyond ±(2^53−1).
    #[error("{at} is {got} (line {line} column {column}), beyond \u{b1}{NUMBER_MAX}, where whole numbers get lost")]
    NumberTooLarge {
        /// Where it stands, as in `limits.wall_ms`.
        at: String,
        /// The number, as its nearest double if it is very large.
        got: String,
        /// Line.
        line: usize,
        /// Column at which it was noticed.
        column: usize,
    },
    /// `-0`, which is 0 for some readers and not for others.
    #[error("{at} is -0 (line {line} column {column})")]
    NegativeZero {
        /// Where it stands.
        at: String,
        /// Line.
        line: usize,
        /// Column at which it was noticed.
        column: usize,
    },
    /// Arrays and objects inside one another, too many.
    #[error("the JSON text is nested deeper than {DEPTH_MAX} levels at line {line} column {column}")]
    TooDeep {
        /// Line.
        line: usize,
        /// Column at which it was noticed.
        column: usize,
    },
    /// Too many values.
    #[error("the JSON text holds more than {NODES_MAX} values, noticed at line {line} column {column}")]
    TooManyValues {
        /// Line.
        line: usize,
        /// Column at which it was noticed.
        column: usize,
    },
    /// No JSON, something behind the JSON, a lone surrogate, or a number that no double can hold.
    #[error("the text is not JSON: {source}")]
    Syntax {
        /// What the parser said, with line and column.
        source: serde_json::Error,
    },
}

impl StrictJsonError {
    /// What the sender should do.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::TooLong { .. } => "send less, for instance large input as a mounted file",
            Self::NotUtf8 { .. } => "encode the text as UTF-8; send other bytes as {\"base64\":\"\u{2026}\"}",
            Self::ByteOrderMark => "leave out the first three bytes (EF BB BF)",
            Self::DuplicateMember { .. } => "send each member once",
            Self::ReservedMember { .. } => "give the member another name",
            Self::NumberTooLarge { .. } => "send a smaller number, or a larger one as a string",
            Self::NegativeZero { .. } => "send 0",
            Self::TooDeep { .. } => "flatten the value, or send it as a string",
            Self::TooManyValues { .. } => "send bulk data as one string, as standard input or as a mounted file",
            Self::Syntax { .. } => "send exactly one JSON value (RFC 8259)",
        }
    }
}

/// Why a value has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// A number beyond ±(2^53−1) or `-0`: two values would get the same text.
    #[error("the number {number} has no canonical form, it must lie within \u{b1}{NUMBER_MAX} and not be -0")]
    Number {
        /// The number as it is printed.
        number: String,
    },
    /// The writer failed.
    #[error("cannot write the canonical form")]
    Write {
        /// What it said.
        source: serde_json::Error,
    },
}

/// Reads exactly one strict JSON value.
///
/// # Errors
/// [`StrictJsonError`] says what is wrong and where; nothing is repaired or ignored.
pub fn parse_strict(bytes: &[u8]) -> Result<Value, StrictJsonError> {
    if bytes.len() > BODY_MAX_BYTES {
        return Err(StrictJsonError::TooLong { got: bytes.len(), most: BODY_MAX_BYTES });
    }
    let text =
        std::str::from_utf8(bytes).map_err(|source| StrictJsonError::NotUtf8 { at: source.valid_up_to(), source })?;
    if text.starts_with('\u{feff}') {
        return Err(StrictJsonError::ByteOrderMark);
    }
    let mut seen = Seen::default();
    let mut reader = serde_json::Deserializer::from_str(text);
    let parsed = Strict { seen: &mut seen, depth: 0 }.deserialize(&mut reader);
    match parsed.and_then(|value| reader.end().map(|()| value)) {
        Ok(value) => Ok(value),
        Err(source) => Err(seen.explain(source)),
    }
}

/// Writes the RFC 8785 form.
///
/// # Errors
/// [`CanonicalError::Number`] if the value cannot have come from [`parse_strict`].
pub fn canonical(value: &Value) -> Result<Vec<u8>, CanonicalError> {
    check_numbers(value)?;
    serde_json_canonicalizer::to_vec(value).map_err(|source| CanonicalError::Write { source })
}

fn check_numbers(value: &Value) -> Result<(), CanonicalError> {
    match value {
        Value::Number(number) if whole_or_fraction(number).is_err() => {
            Err(CanonicalError::Number { number: number.to_string() })
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Ok(()),
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(members) => members.values().try_for_each(check_numbers),
    }
}

fn whole_or_fraction(number: &Number) -> Result<Number, Broken> {
    if let Some(n) = number.as_u64() {
        return within(n).map(|()| Number::from(n));
    }
    if let Some(n) = number.as_i64() {
        return within(n.unsigned_abs()).map(|()| Number::from(n));
    }
    number.as_f64().ok_or(Broken::NumberTooLarge).and_then(from_double)
}

fn within(magnitude: u64) -> Result<(), Broken> {
    if magnitude > NUMBER_MAX { Err(Broken::NumberTooLarge) } else { Ok(()) }
}

/// A double in its one form. Each double beyond 2^53 is a whole number, so one bound holds for both kinds.
fn from_double(x: f64) -> Result<Number, Broken> {
    const BOUND: f64 = 9_007_199_254_740_991.0;
    if x == 0.0 && x.is_sign_negative() {
        return Err(Broken::NegativeZero);
    }
    if x.is_nan() || x.abs() > BOUND {
        return Err(Broken::NumberTooLarge);
    }
    if x.fract() == 0.0 {
        #[expect(clippy::cast_possible_truncation, reason = "x is whole and within ±(2^53−1): the cast is exact")]
        return Ok(Number::from(x as i64));
    }
    Number::from_f64(x).ok_or(Broken::NumberTooLarge)
}

/// Which rule of the profile was broken; serde's own error type cannot carry it.
enum Broken {
    Duplicate(String),
    Reserved(String),
    NumberTooLarge,
    NegativeZero,
    TooDeep,
    TooManyValues,
}

#[derive(Default)]
struct Seen {
    nodes: usize,
    broken: Option<Broken>,
    /// The number that broke a rule.
    got: String,
    /// Where the broken rule stands, innermost first.
    path: Vec<String>,
}

impl Seen {
    fn breaks<E: de::Error>(&mut self, rule: Broken) -> E {
        self.broken = Some(rule);
        E::custom("not strict JSON")
    }

    fn explain(self, source: serde_json::Error) -> StrictJsonError {
        let (line, column) = (source.line(), source.column());
        match self.broken {
            None => StrictJsonError::Syntax { source },
            Some(Broken::Duplicate(key)) => StrictJsonError::DuplicateMember { key, line, column },
            Some(Broken::Reserved(key)) => StrictJsonError::ReservedMember { key, line, column },
            Some(Broken::NumberTooLarge) => {
                StrictJsonError::NumberTooLarge { at: place(&self.path), got: self.got, line, column }
            }
            Some(Broken::NegativeZero) => StrictJsonError::NegativeZero { at: place(&self.path), line, column },
            Some(Broken::TooDeep) => StrictJsonError::TooDeep { line, column },
            Some(Broken::TooManyValues) => StrictJsonError::TooManyValues { line, column },
        }
    }
}

/// A path as messages have it: `limits.wall_ms`, `argv[2]`.
fn place(path: &[String]) -> String {
    let whole: String = path.iter().rev().map(String::as_str).collect();
    if whole.is_empty() { "the number".to_owned() } else { whole.strip_prefix('.').unwrap_or(&whole).to_owned() }
}

/// One step of a path; what is no plain name is quoted and cut.
fn step(key: &str) -> String {
    let is_plain =
        (1..=64).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b));
    if is_plain { format!(".{key}") } else { format!(".{:?}", key.chars().take(64).collect::<String>()) }
}

/// Reads one value at a depth, counting.
struct Strict<'a> {
    seen: &'a mut Seen,
    depth: usize,
}

impl Strict<'_> {
    fn inside(&mut self) -> Strict<'_> {
        Strict { seen: self.seen, depth: self.depth + 1 }
    }

    fn enter<E: de::Error>(&mut self) -> Result<(), E> {
        if self.depth >= DEPTH_MAX { Err(self.seen.breaks(Broken::TooDeep)) } else { Ok(()) }
    }

    fn number<E: de::Error>(self, number: Result<Number, Broken>, written: impl std::fmt::Display) -> Result<Value, E> {
        number.map(Value::Number).map_err(|rule| {
            self.seen.got = written.to_string();
            self.seen.breaks(rule)
        })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        self.seen.nodes += 1;
        if self.seen.nodes > NODES_MAX {
            return Err(self.seen.breaks(Broken::TooManyValues));
        }
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: de::Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<Value, E> {
        self.number(within(n).map(|()| Number::from(n)), n)
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<Value, E> {
        self.number(within(n.unsigned_abs()).map(|()| Number::from(n)), n)
    }

    fn visit_f64<E: de::Error>(self, x: f64) -> Result<Value, E> {
        self.number(from_double(x), format_args!("{x:e}"))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
        Ok(Value::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut out = Vec::new();
        loop {
            match items.next_element_seed(self.inside()) {
                Ok(Some(item)) => out.push(item),
                Ok(None) => return Ok(Value::Array(out)),
                Err(error) => {
                    self.seen.path.push(format!("[{}]", out.len()));
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut out = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if key.starts_with(RESERVED) {
                return Err(self.seen.breaks(Broken::Reserved(key.chars().take(64).collect())));
            }
            if out.contains_key(&key) {
                return Err(self.seen.breaks(Broken::Duplicate(key.chars().take(64).collect())));
            }
            match members.next_value_seed(self.inside()) {
                Ok(value) => drop(out.insert(key, value)),
                Err(error) => {
                    self.seen.path.push(step(&key));
                    return Err(error);
                }
            }
        }
        Ok(Value::Object(out))
    }
}

#[cfg(test)]
mod tests;
