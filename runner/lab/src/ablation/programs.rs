//! C probes as programs: compiled here, or taken from a folder.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::battery::Battery;
use super::error::AblationError;
use super::probe::{Language, Probe};
use crate::process;

/// Most lines of a compiler's words that are told.
const WORDS_MAX: usize = 3;

/// Why a probe cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NotRun {
    pub(super) why: String,
}

/// What is written to the standard input of each probe's cell, by name.
#[derive(Debug, Default)]
pub(super) struct Programs {
    texts: BTreeMap<String, Result<Vec<u8>, NotRun>>,
}

impl Programs {
    /// Those of all probes. `compiled` is a folder in which C programs lie by name, so that none is compiled.
    pub(super) fn make(battery: &Battery, compiled: Option<&Path>) -> Result<Self, AblationError> {
        let mut programs = Self::default();
        let mut workshop = None;
        for probe in battery.probes() {
            let text = match (probe.language(), compiled) {
                (Language::Python | Language::Shell, _) => Ok(probe.text.clone().into_bytes()),
                (Language::C, Some(folder)) => taken(folder, probe.stem()),
                (Language::C, None) => {
                    if workshop.is_none() {
                        workshop = Some(Workshop::make(battery)?);
                    }
                    workshop.as_ref().map_or_else(|| Err(no_compiler()), |workshop| workshop.compile(probe))
                }
            };
            let _none = programs.texts.insert(probe.id().to_owned(), text);
        }
        Ok(programs)
    }

    pub(super) fn of(&self, probe: &Probe) -> Result<&[u8], NotRun> {
        match self.texts.get(probe.id()) {
            Some(Ok(text)) => Ok(text),
            Some(Err(not_run)) => Err(not_run.clone()),
            None => Err(NotRun { why: "nobody made its program".to_owned() }),
        }
    }
}

fn taken(folder: &Path, name: &str) -> Result<Vec<u8>, NotRun> {
    let path = folder.join(name);
    std::fs::read(&path).map_err(|error| NotRun { why: format!("{} cannot be read: {error}", path.display()) })
}

fn no_compiler() -> NotRun {
    let why =
        "there is no C compiler here: install gcc and libc6-dev, or name a folder of compiled ones with --programs";
    NotRun { why: why.to_owned() }
}

/// A private folder in which is compiled, and which goes with it.
#[derive(Debug)]
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    fn make(battery: &Battery) -> Result<Self, AblationError> {
        let system = |source| AblationError::System { doing: "make a folder to compile in", source };
        let folder = tempfile::Builder::new().prefix("toolcell-probes-").tempdir().map_err(system)?;
        for (name, text) in battery.included() {
            std::fs::write(folder.path().join(name), text).map_err(system)?;
        }
        Ok(Self { folder })
    }

    fn compile(&self, probe: &Probe) -> Result<Vec<u8>, NotRun> {
        let source = self.path(probe.id());
        let program = self.path(probe.stem());
        let not_run = |error: &io::Error| NotRun { why: format!("its program cannot be made: {error}") };
        std::fs::write(&source, &probe.text).map_err(|error| not_run(&error))?;
        let mut compiler = process::command("cc");
        let _compiler = compiler.args(["-O1", "-static", "-o"]).arg(&program).arg(&source).stdin(Stdio::null());
        let done = match compiler.output() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(no_compiler()),
            done => done.map_err(|error| not_run(&error))?,
        };
        if !done.status.success() {
            let words = String::from_utf8_lossy(&done.stderr);
            let words: Vec<&str> = words.lines().filter(|line| line.contains("error")).take(WORDS_MAX).collect();
            return Err(NotRun { why: format!("cc does not compile it ({}): {}", done.status, words.join("; ")) });
        }
        std::fs::read(&program).map_err(|error| not_run(&error))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}
