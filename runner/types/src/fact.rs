//! What a control was asked for and what was seen of it, as a few named scalars.

use serde::{Deserialize, Serialize};

/// One value of a fact. Encodes in postcard as an enum and turns into plain JSON by [`Facts::to_json`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fact {
    /// A whole number; the unit ends the fact's name.
    Int(i64),
    /// A short text.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A short list of texts.
    List(Vec<String>),
    /// A short list of numbers.
    Ints(Vec<i64>),
}

impl From<u64> for Fact {
    fn from(n: u64) -> Self {
        Self::Int(i64::try_from(n).unwrap_or(i64::MAX))
    }
}

impl From<bool> for Fact {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<&str> for Fact {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Fact {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Named facts in the order they were put in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts(pub Vec<(String, Fact)>);

impl Facts {
    /// No facts yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one fact; meant to be chained.
    #[must_use]
    pub fn with(mut self, name: &str, fact: impl Into<Fact>) -> Self {
        self.0.push((name.to_owned(), fact.into()));
        self
    }

    /// The JSON object that stands in answers and receipts. A number that I-JSON cannot hold (RFC 7493, 2.2), as a limit
    /// of the kernel's that is none, is given as a text.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let members = self.0.iter().map(|(name, fact)| {
            let number = |n: i64| -> serde_json::Value {
                if n.unsigned_abs() < 1 << 53 { n.into() } else { n.to_string().into() }
            };
            let value = match fact {
                Fact::Int(n) => number(*n),
                Fact::Text(text) => text.clone().into(),
                Fact::Flag(flag) => (*flag).into(),
                Fact::List(items) => items.clone().into(),
                Fact::Ints(items) => items.iter().map(|item| number(*item)).collect(),
            };
            (name.clone(), value)
        });
        serde_json::Value::Object(members.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_json_loses_are_texts() {
        let facts = Facts::new().with("most", (1_u64 << 53) - 1).with("more", 1_u64 << 53).with("none", u64::MAX);
        let json = facts.with("all", Fact::Ints(vec![-1, i64::MIN])).to_json();
        assert_eq!(json["most"], (1_u64 << 53) - 1);
        assert_eq!((&json["more"], &json["none"]), (&"9007199254740992".into(), &"9223372036854775807".into()));
        assert_eq!(json["all"], serde_json::json!([-1, "-9223372036854775808"]));
        crate::json::parse_strict(json.to_string().as_bytes()).unwrap();
    }
}
