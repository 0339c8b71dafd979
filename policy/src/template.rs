//! Argument vectors with places for a call's arguments.
//!
//! `"{x}"` stands for one whole argument, `"{x...}"` for each item of an array of texts (none if it is left out).
//! Nothing is ever joined, split, quoted or seen by a shell: an argument's text reaches the program byte for byte, or
//! the call is refused. A brace that is meant as such is written twice: `{{`, `}}`.

use serde_json::{Map, Value};
use toolcell_types::json;

use crate::bounds;

/// One element of an argument vector in a policy file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Itself.
    Literal(String),
    /// `{x}`: one argument.
    One(String),
    /// `{x...}`: as many arguments as the array has items.
    Each(String),
}

/// Why an argument cannot be handed to a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfit {
    /// JSON pointer into the arguments.
    pub(crate) path: String,
    /// What it has to be.
    pub(crate) expected: &'static str,
    /// What it is.
    pub(crate) got: String,
}

/// What an element has to look like.
pub(crate) const PIECE: &str =
    "a text without NUL in which {name} or {name...} stands alone and braces meant as such are doubled";

impl Piece {
    /// Reads one element.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        if let Some(name) = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            let (name, each) = name.strip_suffix("...").map_or((name, false), |name| (name, true));
            if is_name(name) {
                return Some(if each { Self::Each(name.to_owned()) } else { Self::One(name.to_owned()) });
            }
        }
        bounds::argument(&[text]).ok()?;
        unbrace(text).map(Self::Literal)
    }

    /// One spelling of it, for digests.
    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Literal(text) => serde_json::json!({ "text": text }),
            Self::One(name) => serde_json::json!({ "argument": name }),
            Self::Each(name) => serde_json::json!({ "arguments": name }),
        }
    }

    /// The argument that it stands for, if any.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::One(name) | Self::Each(name) => Some(name),
        }
    }
}

/// The argument vector of a call.
///
/// # Errors
/// The first argument that no program can be given.
pub(crate) fn expand(pieces: &[Piece], args: &Map<String, Value>) -> Result<Vec<String>, Unfit> {
    let mut argv = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match piece {
            Piece::Literal(text) => argv.push(text.clone()),
            Piece::One(name) => argv.push(one(name, args.get(name))?),
            Piece::Each(name) => each(name, args.get(name), &mut argv)?,
        }
    }
    match argv.first().map(String::is_empty) {
        Some(false) => Ok(argv),
        _ => Err(Unfit { path: String::new(), expected: "name a program", got: "nothing to run".to_owned() }),
    }
}

/// One argument: a text as it is, numbers and truth values as JSON writes them.
pub(crate) fn one(name: &str, value: Option<&Value>) -> Result<String, Unfit> {
    const SCALAR: &str = "be a text, a number or a truth value";
    let path = format!("/{name}");
    let unfit = |got: String| Unfit { path: path.clone(), expected: SCALAR, got };
    let text = match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(number @ Value::Number(_)) => json::canonical(number)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .map_err(|wrong| unfit(wrong.to_string()))?,
        Some(Value::Array(_) | Value::Object(_) | Value::Null) => {
            return Err(unfit("another kind of value".to_owned()));
        }
        None => return Err(unfit("nothing".to_owned())),
    };
    fit(&text, || path.clone())?;
    Ok(text)
}

fn each(name: &str, value: Option<&Value>, argv: &mut Vec<String>) -> Result<(), Unfit> {
    const TEXTS: &str = "be an array of texts";
    let items = match value {
        None => return Ok(()),
        Some(Value::Array(items)) => items,
        Some(_) => {
            return Err(Unfit { path: format!("/{name}"), expected: TEXTS, got: "another kind of value".to_owned() });
        }
    };
    for (index, item) in items.iter().enumerate() {
        let path = || format!("/{name}/{index}");
        let Some(text) = item.as_str() else {
            return Err(Unfit { path: path(), expected: TEXTS, got: "another kind of value".to_owned() });
        };
        fit(text, path)?;
        argv.push(text.to_owned());
    }
    Ok(())
}

fn fit(text: &str, path: impl FnOnce() -> String) -> Result<(), Unfit> {
    const FIT: &str = "be a text without NUL and below 131072 bytes; larger input goes by standard input or a mount";
    bounds::argument(&[text]).map_err(|got| Unfit { path: path(), expected: FIT, got })
}

/// Whether a text can name an argument.
pub(crate) fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let head = bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    head && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The text with doubled braces made single; nothing if a single brace is left.
fn unbrace(text: &str) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if matches!(c, '{' | '}') && chars.next() != Some(c) {
            return None;
        }
        out.push(c);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn pieces(texts: &[&str]) -> Vec<Piece> {
        texts.iter().map(|text| Piece::parse(text).expect(text)).collect()
    }

    fn args(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn a_placeholder_stands_alone_and_a_brace_is_doubled() {
        assert_eq!(Piece::parse("{x}"), Some(Piece::One("x".into())));
        assert_eq!(Piece::parse("{x...}"), Some(Piece::Each("x".into())));
        assert_eq!(Piece::parse("{{print $1}}"), Some(Piece::Literal("{print $1}".into())));
        assert_eq!(Piece::parse("{{x}}"), Some(Piece::Literal("{x}".into())));
        for wrong in ["--file={x}", "{x} ", "{", "}", "{}", "{...}", "{1x}", "{x..}", "{x}{y}", "{ x }", "a\0"] {
            assert_eq!(Piece::parse(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn text_that_looks_like_shell_or_like_a_placeholder_stays_one_argument() {
        let hostile = "a b; rm -rf / 'x' \"y\" $(id) `id` {x} {y...} \n\t*";
        let argv = expand(&pieces(&["echo", "{x}"]), &args(json!({"x": hostile, "y": ["no"]}))).unwrap();
        assert_eq!(argv, ["echo", hostile]);
    }

    #[test]
    fn numbers_and_truth_values_are_written_as_json_writes_them() {
        let argv = expand(&pieces(&["p", "{a}", "{b}", "{c}"]), &args(json!({"a": -3, "b": 0.5, "c": true}))).unwrap();
        assert_eq!(argv, ["p", "-3", "0.5", "true"]);
    }

    #[test]
    fn an_array_left_out_is_no_argument_and_an_empty_text_is_one() {
        assert_eq!(expand(&pieces(&["p", "{x...}"]), &args(json!({}))).unwrap(), ["p"]);
        assert_eq!(expand(&pieces(&["p", "{x...}"]), &args(json!({"x": [""]}))).unwrap(), ["p", ""]);
        assert_eq!(expand(&pieces(&["p", "{x}"]), &args(json!({"x": ""}))).unwrap(), ["p", ""]);
    }

    #[test]
    fn what_no_program_can_be_given_is_refused_with_its_place() {
        let longest = "x".repeat(bounds::ARGUMENT_MAX_BYTES - 1);
        assert!(expand(&pieces(&["p", "{x}"]), &args(json!({"x": longest}))).is_ok());
        let too_long = "x".repeat(bounds::ARGUMENT_MAX_BYTES);
        for (value, path) in [
            (json!({"x": "a\u{0}b"}), "/x"),
            (json!({"x": too_long}), "/x"),
            (json!({"x": ["a", "b\u{0}"]}), "/x"),
            (json!({}), "/x"),
            (json!({"x": null}), "/x"),
        ] {
            assert_eq!(expand(&pieces(&["p", "{x}"]), &args(value)).unwrap_err().path, path);
        }
        for (value, path) in
            [(json!({"x": ["a", "b\u{0}"]}), "/x/1"), (json!({"x": [1]}), "/x/0"), (json!({"x": "a"}), "/x")]
        {
            assert_eq!(expand(&pieces(&["p", "{x...}"]), &args(value)).unwrap_err().path, path);
        }
        for value in [json!({}), json!({"x": []}), json!({"x": ["", "a"]})] {
            assert_eq!(expand(&pieces(&["{x...}"]), &args(value)).unwrap_err().path, "");
        }
    }

    /// A piece, and what it must become, with the arguments that it asks for.
    fn any_piece() -> impl Strategy<Value = (Piece, Vec<String>)> {
        let text = "[^\0]{0,20}";
        prop_oneof![
            text.prop_map(|text| (Piece::Literal(text.clone()), vec![text])),
            text.prop_map(|text| (Piece::One(String::new()), vec![text])),
            prop::collection::vec(text, 0..5).prop_map(|texts| (Piece::Each(String::new()), texts)),
        ]
    }

    proptest! {
        #[test]
        fn expansion_never_splits_and_never_joins(parts in prop::collection::vec(any_piece(), 0..8)) {
            let (mut pieces, mut members) = (vec![Piece::Literal("program".into())], Map::new());
            let mut expected = vec!["program".to_owned()];
            for (index, (piece, texts)) in parts.into_iter().enumerate() {
                let name = format!("a{index}");
                pieces.push(match piece {
                    Piece::Literal(text) => Piece::Literal(text),
                    Piece::One(_) => {
                        members.insert(name.clone(), json!(texts[0]));
                        Piece::One(name)
                    }
                    Piece::Each(_) => {
                        members.insert(name.clone(), json!(texts));
                        Piece::Each(name)
                    }
                });
                expected.extend(texts);
            }
            prop_assert_eq!(expand(&pieces, &members).unwrap(), expected);
        }

        #[test]
        fn a_literal_written_with_doubled_braces_is_itself(text in "[^\0]{0,40}") {
            let doubled = text.replace('{', "{{").replace('}', "}}");
            prop_assert_eq!(Piece::parse(&doubled), Some(Piece::Literal(text)));
        }
    }
}
