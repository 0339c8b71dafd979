//! Files that a cell must not see, and whether one was changed.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::{AblationError, Secret};
use crate::ablation::words::Instrument;

/// What everybody may enter and nobody but us may list.
const ENTERED: u32 = 0o711;

/// The files of one call, in a folder of their own that goes with them.
#[derive(Debug)]
pub(super) struct Files {
    folder: Option<tempfile::TempDir>,
    targets: Vec<(PathBuf, Stamp)>,
}

/// All that changes when a file is changed: ctime does with content, mode, owner, names and attributes (inode(7)).
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    mode: u32,
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let seen = path.symlink_metadata()?;
        Ok(Self { inode: seen.ino(), size: seen.size(), mode: seen.mode(), changed: (seen.ctime(), seen.ctime_nsec()) })
    }
}

impl Files {
    pub(super) fn make(
        needs: &[Instrument],
        parent: &Path,
        secret: &Secret,
        arguments: &mut Vec<(&'static str, String)>,
    ) -> Result<Self, AblationError> {
        let failed = |source| AblationError::System { doing: "make the files of a probe", source };
        let mut files = Self { folder: None, targets: Vec::new() };
        for need in needs {
            let (mode, text) = match need {
                Instrument::OpenFile => (0o644, secret.text()),
                Instrument::OwnFile => (0o600, secret.text()),
                Instrument::Target => (0o666, ""),
                Instrument::OwnTarget => (0o600, ""),
                // A socket lies there as well.
                Instrument::Socket => {
                    files.enter(parent).map_err(failed)?;
                    continue;
                }
                Instrument::Tcp
                | Instrument::Udp
                | Instrument::Abstract
                | Instrument::Victim
                | Instrument::Shm
                | Instrument::Msg
                | Instrument::Sem
                | Instrument::Mqueue
                | Instrument::Hostname => continue,
            };
            let path = files.enter(parent).map_err(failed)?.join(need.as_str());
            std::fs::write(&path, text).map_err(failed)?;
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
            if text.is_empty() {
                files.targets.push((path.clone(), Stamp::of(&path).map_err(failed)?));
            }
            arguments.push((need.as_str(), path.to_string_lossy().into_owned()));
        }
        Ok(files)
    }

    /// The folder, once it is needed.
    fn enter(&mut self, parent: &Path) -> io::Result<&Path> {
        if self.folder.is_none() {
            let folder = tempfile::Builder::new().prefix("toolcell-outside-").tempdir_in(parent)?;
            std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(ENTERED))?;
            self.folder = Some(folder);
        }
        self.folder().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_ref().map(tempfile::TempDir::path)
    }

    /// Whether a target is not what it was. One that is gone or replaced is changed as well.
    pub(super) fn were_changed(&self) -> Result<bool, AblationError> {
        for (path, before) in &self.targets {
            match Stamp::of(path) {
                Ok(now) if now == *before => {}
                Ok(_) => return Ok(true),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
                Err(source) => return Err(AblationError::System { doing: "look at a file of a probe", source }),
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_is_touched_in_any_way_is_changed_and_one_that_is_read_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let acts: [fn(&Path); 5] = [
            |path| std::fs::write(path, "x").unwrap(),
            |path| std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap(),
            |path| std::fs::remove_file(path).unwrap(),
            |path| std::fs::hard_link(path, path.with_extension("more")).unwrap(),
            |path| std::fs::rename(path, path.with_extension("away")).unwrap(),
        ];
        for act in acts {
            let (mut arguments, secret) = (Vec::new(), Secret::fresh().unwrap());
            let files = Files::make(&[Instrument::Target], parent.path(), &secret, &mut arguments).unwrap();
            let path = PathBuf::from(&arguments[0].1);
            // Time stamps are those of the last tick.
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(std::fs::read(&path).unwrap(), b"");
            assert!(!files.were_changed().unwrap());
            act(&path);
            assert!(files.were_changed().unwrap());
        }
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0, "all of it goes");
    }

    #[test]
    fn a_secret_file_holds_it_with_its_mode_in_a_folder_that_can_be_entered() {
        let (parent, secret, mut arguments) = (tempfile::tempdir().unwrap(), Secret::fresh().unwrap(), Vec::new());
        let needs = [Instrument::OpenFile, Instrument::OwnFile];
        let files = Files::make(&needs, parent.path(), &secret, &mut arguments).unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(files.folder().unwrap()), ENTERED);
        for ((name, path), expected) in arguments.iter().zip([0o644, 0o600]) {
            assert_eq!(mode(Path::new(path)), expected, "{name}");
            assert_eq!(std::fs::read_to_string(path).unwrap(), secret.text());
        }
        let none = Files::make(&[Instrument::Tcp], parent.path(), &secret, &mut arguments).unwrap();
        assert!(none.folder().is_none() && !none.were_changed().unwrap());
    }
}
