//! One probe: its program and what it declares.

use serde::Serialize;
use toolcell_types::{ControlId, LimitsPatch};

use super::header::{self, Header, HeaderError};
use super::words::{Class, Instrument, Kind, Witness};

/// What a probe is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// Python.
    Python,
    /// POSIX shell.
    Shell,
    /// C, linked statically.
    C,
}

impl Language {
    /// By the end of a file's name.
    pub(super) fn of(extension: &str) -> Option<Self> {
        match extension {
            "py" => Some(Self::Python),
            "sh" => Some(Self::Shell),
            "c" => Some(Self::C),
            _ => None,
        }
    }
}

/// One probe.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Probe {
    pub(super) id: String,
    pub(super) language: Language,
    #[serde(skip)]
    pub(super) text: String,
    #[serde(flatten)]
    pub(super) header: Header,
}

impl Probe {
    /// Reads a file.
    pub(super) fn read(file: &str, language: Language, text: &str) -> Result<Self, HeaderError> {
        Ok(Self { id: file.to_owned(), language, text: text.to_owned(), header: header::read(file, text, language)? })
    }

    /// Its name: that of its file.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name without the end, which a compiled one has.
    pub(super) fn stem(&self) -> &str {
        self.id.rsplit_once('.').map_or(&self.id, |(stem, _)| stem)
    }

    /// What it is written in.
    #[must_use]
    pub fn language(&self) -> Language {
        self.language
    }

    /// Class of attack.
    #[must_use]
    pub fn class(&self) -> Class {
        self.header.class
    }

    /// The act, in one sentence.
    #[must_use]
    pub fn tries(&self) -> &str {
        &self.header.tries
    }

    /// The controls each of which stops it, in the order of all reports.
    #[must_use]
    pub fn stopped_by(&self) -> &[ControlId] {
        &self.header.stopped_by
    }

    /// What it is given.
    #[must_use]
    pub fn needs(&self) -> &[Instrument] {
        &self.header.needs
    }

    /// Who has to have seen that it got through.
    #[must_use]
    pub fn witness(&self) -> &[Witness] {
        &self.header.witness
    }

    /// Limits of its call.
    #[must_use]
    pub fn limits(&self) -> &LimitsPatch {
        &self.header.limits
    }

    /// Attack or posture.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.header.kind
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.header.source.as_deref()
    }
}
