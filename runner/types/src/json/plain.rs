//! A look at a text without making a value of it: whether [`super::parse_strict`] takes it, and every number in it is
//! written the one way that it is read. Such a text can be read into a type at once, as nothing would come out otherwise.

use std::borrow::Cow;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};

use super::{DEPTH_MAX, NODES_MAX, RESERVED, within};
use crate::BODY_MAX_BYTES;

/// Whether the text is strict JSON and has no number with a point or an exponent. If not, [`super::parse_strict`] says
/// what is wrong, or what value it is.
#[must_use]
pub fn is_plain(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    if bytes.len() > BODY_MAX_BYTES || text.starts_with('\u{feff}') {
        return false;
    }
    let mut nodes = 0;
    let mut reader = serde_json::Deserializer::from_str(text);
    Plain { nodes: &mut nodes, depth: 0 }.deserialize(&mut reader).and_then(|()| reader.end()).is_ok()
}

/// Looks at one value at a depth, counting.
struct Plain<'a> {
    nodes: &'a mut usize,
    depth: usize,
}

impl Plain<'_> {
    fn inside(&mut self) -> Plain<'_> {
        Plain { nodes: self.nodes, depth: self.depth + 1 }
    }
}

fn no<T, E: de::Error>() -> Result<T, E> {
    Err(E::custom("not plain"))
}

impl<'de> DeserializeSeed<'de> for Plain<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        *self.nodes += 1;
        if *self.nodes > NODES_MAX { no() } else { reader.deserialize_any(self) }
    }
}

impl<'de> Visitor<'de> for Plain<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: de::Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: de::Error>(self, _flag: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: de::Error>(self, n: u64) -> Result<(), E> {
        if within(n).is_ok() { Ok(()) } else { no() }
    }

    fn visit_i64<E: de::Error>(self, n: i64) -> Result<(), E> {
        if within(n.unsigned_abs()).is_ok() { Ok(()) } else { no() }
    }

    fn visit_f64<E: de::Error>(self, _x: f64) -> Result<(), E> {
        no()
    }

    fn visit_str<E: de::Error>(self, _text: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        if self.depth >= DEPTH_MAX {
            return no();
        }
        while items.next_element_seed(self.inside())?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        if self.depth >= DEPTH_MAX {
            return no();
        }
        let mut keys = Vec::new();
        while let Some(Key(key)) = members.next_key()? {
            if key.starts_with(RESERVED) {
                return no();
            }
            keys.push(key);
            members.next_value_seed(self.inside())?;
        }
        keys.sort_unstable();
        if keys.windows(2).any(|pair| matches!(pair, [a, b] if a == b)) { no() } else { Ok(()) }
    }
}

/// A member's name, not copied where it stands in the text as it is.
struct Key<'de>(Cow<'de, str>);

impl<'de> de::Deserialize<'de> for Key<'de> {
    fn deserialize<D: de::Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        struct Name;
        impl<'de> Visitor<'de> for Name {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a member's name")
            }

            fn visit_borrowed_str<E: de::Error>(self, name: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(name)))
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(name.to_owned())))
            }
        }
        reader.deserialize_str(Name)
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse_strict;
    use super::*;

    #[test]
    fn what_is_plain_reads_the_same_without_the_strict_reader() {
        for text in
            ["1", "-5", "null", r#"{"a":[1,{"b":"c\u00e9","d":{}}],"":true}"#, r#" [ "x" , 0 ] "#, "9007199254740991"]
        {
            assert!(is_plain(text.as_bytes()), "{text}");
            let at_once: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(parse_strict(text.as_bytes()).unwrap(), at_once, "{text}");
        }
    }

    #[test]
    fn what_the_strict_reader_refuses_is_not_plain() {
        let (deep, fits) = (["[".repeat(33), "]".repeat(33)].concat(), ["[".repeat(32), "]".repeat(32)].concat());
        let many = format!("[{}1]", "1,".repeat(NODES_MAX));
        for text in [
            "",
            "{",
            "1 2",
            "-0",
            "9007199254740992",
            "-9007199254740992",
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":1,"\u0061":2}"#,
            r#"[{"k":{"x":1,"x":1}}]"#,
            r#"{"a":{"$serde_json::private::RawValue":"{}"}}"#,
            r#"{"$serde_json::private::Number":"1"}"#,
            r#""\ud800""#,
            "\u{feff}1",
            deep.as_str(),
            many.as_str(),
        ] {
            assert!(parse_strict(text.as_bytes()).is_err() && !is_plain(text.as_bytes()), "{text}");
        }
        assert!(!is_plain(b"\"\xff\"") && is_plain(fits.as_bytes()));
    }

    #[test]
    fn a_number_with_a_point_or_an_exponent_is_left_to_the_strict_reader() {
        for text in ["1.0", "[1e3]", "0.5", r#"{"a":-1.5}"#] {
            assert!(parse_strict(text.as_bytes()).is_ok() && !is_plain(text.as_bytes()), "{text}");
        }
    }
}
