//! All probes: those in the program, or those of a folder.

use std::path::{Path, PathBuf};

use regex::Regex;
use serde::Serialize;

use super::header::HeaderError;
use super::probe::{Language, Probe};

/// What `tests/probes` held when the program was built: name and text of each.
const EMBEDDED: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/probes.rs"));
/// What a folder of probes may hold besides probes and what they include.
const DOCUMENTS: [&str; 2] = ["md", "toml"];
/// Of a text that C programs include.
const INCLUDED: &str = "h";

/// Probes, by class and by name.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Battery {
    probes: Vec<Probe>,
    #[serde(skip)]
    /// Name and text of what C programs include.
    included: Vec<(String, String)>,
}

/// Why there is no battery.
#[derive(Debug, thiserror::Error)]
pub enum BatteryError {
    /// A header cannot be taken.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// A file that is no probe.
    #[error("{name} is no probe: it is neither Python (.py), nor shell (.sh), nor C (.c)")]
    Kind {
        /// Its name.
        name: String,
    },
    /// The folder cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// Folder or file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Nothing is left.
    #[error("there is no probe{}", of.as_ref().map(|of| format!(" whose name or class matches {of}")).unwrap_or_default())]
    Empty {
        /// What they were to match.
        of: Option<String>,
    },
}

impl BatteryError {
    /// What to do about it, in one sentence.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Header(error) => error.remedy(),
            Self::Kind { .. } => "take it out of the folder, or give it the end of its language".to_owned(),
            Self::File { .. } => "name a folder of probes: --probes-dir DIR".to_owned(),
            Self::Empty { .. } => "see all of them: toolcell ablate --list".to_owned(),
        }
    }
}

impl Battery {
    /// The probes in the program.
    ///
    /// # Errors
    /// [`BatteryError::Header`]: then the program was built from a broken one.
    pub fn embedded() -> Result<Self, BatteryError> {
        Self::of(EMBEDDED.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect())
    }

    /// The probes of a folder; what lies deeper is not looked at.
    ///
    /// # Errors
    /// [`BatteryError`], naming file and line.
    pub fn of_folder(folder: &Path) -> Result<Self, BatteryError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| BatteryError::File { path, source }
        };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed(folder))? {
            let entry = entry.map_err(failed(folder))?;
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            let is_hidden = name.starts_with('.') || name.ends_with('~');
            if is_hidden || path.is_dir() || DOCUMENTS.contains(&extension(&name)) {
                continue;
            }
            files.push((name, std::fs::read_to_string(&path).map_err(failed(&path))?));
        }
        Self::of(files)
    }

    fn of(mut files: Vec<(String, String)>) -> Result<Self, BatteryError> {
        files.sort();
        let mut battery = Self::default();
        for (name, text) in files {
            if extension(&name) == INCLUDED {
                battery.included.push((name, text));
                continue;
            }
            let language = Language::of(extension(&name)).ok_or_else(|| BatteryError::Kind { name: name.clone() })?;
            battery.probes.push(Probe::read(&name, language, &text)?);
        }
        battery.probes.sort_by(|one, other| (one.class(), one.id()).cmp(&(other.class(), other.id())));
        Ok(battery)
    }

    /// Those alone whose name or class matches.
    ///
    /// # Errors
    /// [`BatteryError::Empty`]: none does.
    pub fn matching(mut self, pattern: Option<&Regex>) -> Result<Self, BatteryError> {
        if let Some(pattern) = pattern {
            self.probes.retain(|probe| pattern.is_match(probe.id()) || pattern.is_match(probe.class().as_str()));
        }
        if self.probes.is_empty() {
            return Err(BatteryError::Empty { of: pattern.map(|pattern| pattern.as_str().to_owned()) });
        }
        Ok(self)
    }

    /// The probes, by class and by name.
    #[must_use]
    pub fn probes(&self) -> &[Probe] {
        &self.probes
    }

    /// Name and text of each file that C programs include.
    pub(super) fn included(&self) -> &[(String, String)] {
        &self.included
    }
}

fn extension(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# class: network\n# tries: nothing\n# stopped-by: seccomp\n";

    fn files(names: &[&str]) -> Vec<(String, String)> {
        names.iter().map(|name| ((*name).to_owned(), TEXT.to_owned())).collect()
    }

    #[test]
    fn what_is_in_the_program_can_be_read() {
        let battery = Battery::embedded().unwrap();
        assert_eq!(battery.probes().len() + battery.included().len(), EMBEDDED.len());
    }

    #[test]
    fn a_file_of_another_kind_and_a_broken_header_are_named() {
        assert!(matches!(Battery::of(files(&["a.rb"])), Err(BatteryError::Kind { name }) if name == "a.rb"));
        let error = Battery::of(vec![("x.sh".to_owned(), "echo\n".to_owned())]).unwrap_err();
        assert_eq!(error.to_string(), "x.sh:1: class is missing");
    }

    #[test]
    fn a_folder_may_hold_documents_and_what_c_includes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.sh", "a.py", "README.md", "opens.toml", "probe.h", ".a.py.swp"] {
            std::fs::write(folder.path().join(name), TEXT).unwrap();
        }
        std::fs::create_dir(folder.path().join("old")).unwrap();
        let battery = Battery::of_folder(folder.path()).unwrap();
        assert_eq!(battery.probes().iter().map(Probe::id).collect::<Vec<_>>(), ["a.py", "b.sh"]);
        assert_eq!(battery.included()[0].0, "probe.h");
        assert!(Battery::of_folder(Path::new("/nonexistent")).is_err());
    }

    #[test]
    fn probes_are_chosen_by_name_or_class() {
        let battery = || Battery::of(files(&["a.py", "b.sh"])).unwrap();
        let chosen = |pattern: &str| battery().matching(Some(&Regex::new(pattern).unwrap()));
        assert_eq!(chosen("^a.py$").unwrap().probes().len(), 1);
        assert_eq!(chosen("^network$").unwrap().probes().len(), 2);
        assert_eq!(chosen("^c$").unwrap_err().to_string(), "there is no probe whose name or class matches ^c$");
        assert_eq!(battery().matching(None).unwrap().probes().len(), 2);
    }
}
