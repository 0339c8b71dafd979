//! What a probe declares in the comments of its first lines, read strictly: a typing error must not weaken a claim.

use serde::Serialize;
use toolcell_types::{BadLimit, ControlId, LimitName, Limits, LimitsPatch};

use super::probe::Language;
use super::words::{Class, Instrument, Kind, Witness};

/// The keys, in the order of the contract.
const KEYS: [&str; 8] = ["class", "tries", "stopped-by", "needs", "witness", "limits", "kind", "source"];

/// What a probe declares.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Header {
    pub(super) class: Class,
    pub(super) tries: String,
    /// In the order of all reports.
    pub(super) stopped_by: Vec<ControlId>,
    pub(super) needs: Vec<Instrument>,
    pub(super) witness: Vec<Witness>,
    pub(super) limits: LimitsPatch,
    pub(super) kind: Kind,
    pub(super) source: Option<String>,
}

/// A header that cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {fault}")]
pub struct HeaderError {
    /// Name of the file.
    pub file: String,
    /// The line, from 1; that of the header's end where something is missing.
    pub line: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// What is wrong with a header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// No `key: value`.
    #[error("a comment of the header is `key: value`, and an empty comment ends the header; this is neither")]
    NoPair,
    /// A key that the contract does not know.
    #[error("the key {key:?} is unknown; the keys are {}", KEYS.join(", "))]
    Key {
        /// As it stands there.
        key: String,
    },
    /// A key that stands there twice, or a word in it.
    #[error("{what:?} stands here twice")]
    Twice {
        /// Which.
        what: String,
    },
    /// A word that this key does not take.
    #[error("{key} does not take {word:?}")]
    Word {
        /// The key.
        key: &'static str,
        /// The word.
        word: String,
    },
    /// A limit outside of what is sane.
    #[error(transparent)]
    Limit(#[from] BadLimit),
    /// A key that has to be there, or its value.
    #[error("{key} is missing")]
    Missing {
        /// Which.
        key: &'static str,
    },
    /// A witness of something that the probe is not given.
    #[error("the witness {witness} sees nothing, as the probe is not given what it stands at: add to needs")]
    Blind {
        /// Which.
        witness: &'static str,
    },
}

impl HeaderError {
    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> String {
        format!("correct line {} of {} by the contract, tests/probes/README.md", self.line, self.file)
    }
}

/// Reads the header of a file.
pub(super) fn read(file: &str, text: &str, language: Language) -> Result<Header, HeaderError> {
    let at = |line: usize, fault: Fault| HeaderError { file: file.to_owned(), line, fault };
    let mut draft = Draft::default();
    let mut end = 1;
    for (number, comment) in comments(text, language) {
        end = number;
        if comment.is_empty() {
            break;
        }
        let (key, value) = comment.split_once(':').ok_or_else(|| at(number, Fault::NoPair))?;
        draft.take(key.trim(), value.trim()).map_err(|fault| at(number, fault))?;
    }
    draft.finish().map_err(|fault| at(end, fault))
}

/// The comments of the first lines, without their marks, each with the number of its line.
fn comments(text: &str, language: Language) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index.saturating_add(1), line.trim_end()));
    let lines = lines.skip_while(move |(_, line)| line.starts_with("#!") && language != Language::C);
    lines.map_while(move |(number, line)| {
        let bare = match language {
            Language::Python | Language::Shell => line.strip_prefix('#'),
            Language::C => line.strip_prefix("//"),
        };
        bare.map(|bare| (number, bare.trim()))
    })
}

#[derive(Debug, Default)]
struct Draft {
    seen: Vec<&'static str>,
    class: Option<Class>,
    tries: Option<String>,
    stopped_by: Vec<ControlId>,
    needs: Vec<Instrument>,
    witness: Vec<Witness>,
    limits: LimitsPatch,
    kind: Option<Kind>,
    source: Option<String>,
}

impl Draft {
    fn take(&mut self, key: &str, value: &str) -> Result<(), Fault> {
        let known = KEYS.into_iter().find(|known| *known == key);
        let key = known.ok_or_else(|| Fault::Key { key: key.to_owned() })?;
        if self.seen.contains(&key) {
            return Err(Fault::Twice { what: key.to_owned() });
        }
        if value.is_empty() {
            return Err(Fault::Missing { key });
        }
        self.seen.push(key);
        match key {
            "class" => self.class = Some(word(key, value, Class::parse)?),
            "tries" => self.tries = Some(value.to_owned()),
            "stopped-by" => {
                self.stopped_by = words(key, value, ControlId::parse)?;
                self.stopped_by.sort();
            }
            "needs" => self.needs = words(key, value, Instrument::parse)?,
            "witness" => self.witness = words(key, value, Witness::parse)?,
            "limits" => self.limits = limits(key, value)?,
            "kind" => self.kind = Some(word(key, value, Kind::parse)?),
            _source => self.source = Some(value.to_owned()),
        }
        Ok(())
    }

    fn finish(self) -> Result<Header, Fault> {
        let missing = |key| Fault::Missing { key };
        let class = self.class.ok_or_else(|| missing("class"))?;
        let tries = self.tries.ok_or_else(|| missing("tries"))?;
        if self.stopped_by.is_empty() {
            return Err(missing("stopped-by"));
        }
        let is_blind = |witness: &&Witness| {
            let places = witness.stands_at();
            !places.is_empty() && !places.iter().any(|place| self.needs.contains(place))
        };
        if let Some(witness) = self.witness.iter().find(is_blind) {
            return Err(Fault::Blind { witness: witness.as_str() });
        }
        Ok(Header {
            class,
            tries,
            stopped_by: self.stopped_by,
            needs: self.needs,
            witness: self.witness,
            limits: self.limits,
            kind: self.kind.unwrap_or(Kind::Attack),
            source: self.source,
        })
    }
}

fn word<T>(key: &'static str, value: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, Fault> {
    parse(value).ok_or_else(|| Fault::Word { key, word: value.to_owned() })
}

fn words<T: PartialEq>(
    key: &'static str,
    value: &str,
    parse: impl Fn(&str) -> Option<T> + Copy,
) -> Result<Vec<T>, Fault> {
    let mut all = Vec::new();
    for text in value.split_whitespace() {
        let one = word(key, text, parse)?;
        if all.contains(&one) {
            return Err(Fault::Twice { what: text.to_owned() });
        }
        all.push(one);
    }
    Ok(all)
}

/// `wall_ms=2000 pids=16`
fn limits(key: &'static str, value: &str) -> Result<LimitsPatch, Fault> {
    let mut members = serde_json::Map::new();
    for text in value.split_whitespace() {
        let bad = || Fault::Word { key, word: text.to_owned() };
        let (name, number) = text.split_once('=').ok_or_else(bad)?;
        let name = LimitName::ALL.into_iter().find(|known| known.as_str() == name).ok_or_else(bad)?;
        let number: u64 = number.parse().ok().filter(|_| !number.starts_with('+')).ok_or_else(bad)?;
        if members.insert(name.as_str().to_owned(), number.into()).is_some() {
            return Err(Fault::Twice { what: name.as_str().to_owned() });
        }
    }
    let patch: LimitsPatch = serde_json::from_value(members.into())
        .map_err(|error| Fault::Word { key, word: format!("{value}: {error}") })?;
    patch.over(&Limits::default()).validate()?;
    Ok(patch)
}

#[cfg(test)]
mod tests;
