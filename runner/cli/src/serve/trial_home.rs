//! The folder of a trial of `doctor`: its state and its log, on the file system that the named state is or will be on.
//!
//! Guarantees: its name is random; it is locked (flock(2)) as long as the trial lives, and goes with it, whoever owns what
//! is in it by then. What a killed `doctor` left, a private key among it, goes with the next that looks there: a folder of
//! that name that is this user's own and that nobody has locked.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};

use super::contained;
use super::error::{ServeError, call, file};
use crate::render;

/// What the name of every such folder begins with. Hidden, as it may lie between other people's files.
const PREFIX: &str = ".toolcell-doctor-";
/// Of the trial's instance within.
const STATE: &str = "state";
/// So often another name is tried.
const NAMES_MAX: u32 = 8;
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// One folder, for the time of one trial.
#[derive(Debug)]
pub(crate) struct TrialHome {
    path: PathBuf,
    socket: PathBuf,
    _lock: OwnedFd,
}

impl TrialHome {
    /// Makes one in `base`, after what killed ones left there is gone; its socket is to lie in `runtime`.
    pub(super) fn make(base: &Path, runtime: &Path) -> Result<Self, ServeError> {
        sweep(base, runtime);
        for _name in 1..NAMES_MAX {
            if let Some(home) = Self::try_make(base, runtime)? {
                return Ok(home);
            }
        }
        let why = io::Error::new(io::ErrorKind::AlreadyExists, "every name that was tried is taken");
        file("make a folder in", base, Err(why))
    }

    /// None if somebody who sweeps was faster than our lock.
    fn try_make(base: &Path, runtime: &Path) -> Result<Option<Self>, ServeError> {
        let token = token()?;
        let path = base.join(format!("{PREFIX}{token}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            // The user has named what is around it, and has not heard of this folder.
            other => file("make a folder in", base, other)?,
        }
        let Some(lock) = lock(&path) else { return Ok(None) };
        Ok(Some(Self { path, socket: socket(runtime, &token), _lock: lock }))
    }

    /// The state of the trial's instance.
    pub(crate) fn state(&self) -> PathBuf {
        self.path.join(STATE)
    }

    /// What its `serve` says.
    pub(crate) fn log(&self) -> PathBuf {
        self.path.join("serve.log")
    }

    /// Where it listens: beside the socket of a daemon of one's own.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }
}

impl Drop for TrialHome {
    fn drop(&mut self) {
        if let Err(error) = remove(&self.path) {
            render::say(&format!("{} could not be removed: {error}", self.path.display()));
        }
    }
}

/// A name that nobody else has: 64 random bits.
pub(super) fn token() -> Result<String, ServeError> {
    let mut random = [0_u8; 8];
    call("getrandom", getrandom::fill(&mut random).map_err(io::Error::other))?;
    Ok(format!("{:016x}", u64::from_be_bytes(random)))
}

fn socket(runtime: &Path, token: &str) -> PathBuf {
    runtime.join(format!("doctor-{token}.sock"))
}

/// Whether a file of this name in a state folder is a trial's, and none of the state.
pub(super) fn is_one(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// Removes what killed ones left in `base`. What cannot be removed is told and stays.
pub(super) fn sweep(base: &Path, runtime: &Path) {
    let entries = std::fs::read_dir(base).into_iter().flatten().filter_map(Result::ok);
    for entry in entries {
        let Some(token) = entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)).map(str::to_owned)
        else {
            continue;
        };
        let path = entry.path();
        let own = rustix::process::geteuid().as_raw();
        let is_ours = path.symlink_metadata().is_ok_and(|seen| seen.is_dir() && seen.uid() == own);
        // The instance in it may live on for a while without the one that asked.
        let Some(_lock) = is_ours.then(|| lock(&path)).flatten() else { continue };
        if is_held(&path.join(STATE)) {
            continue;
        }
        match remove(&path) {
            Ok(()) => tracing::info!(path = %path.display(), "what a killed doctor left was removed"),
            Err(error) => tracing::warn!(path = %path.display(), %error, "what a killed doctor left stays"),
        }
        let socket = socket(runtime, &token);
        if let Err(error) = std::fs::remove_file(&socket)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(path = %socket.display(), %error, "what a killed doctor left stays");
        }
    }
}

/// The lock of the folder at this path; none if somebody else has it, or has removed it.
fn lock(path: &Path) -> Option<OwnedFd> {
    let folder = rustix::fs::open(path, FOLDER, Mode::empty()).ok()?;
    rustix::fs::flock(&folder, FlockOperation::NonBlockingLockExclusive).ok()?;
    let (locked, named) = (rustix::fs::fstat(folder.as_fd()).ok()?, rustix::fs::lstat(path).ok()?);
    ((locked.st_dev, locked.st_ino) == (named.st_dev, named.st_ino)).then_some(folder)
}

/// Whether an instance has this state.
fn is_held(state: &Path) -> bool {
    match File::open(state) {
        Ok(folder) => rustix::fs::flock(&folder, FlockOperation::NonBlockingLockShared).is_err(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Removes it with all that is in it. What was given to the ids of an instance may be root's no more, where root has not
/// the privilege of a machine's (`CAP_DAC_OVERRIDE`): then by the same way by which it was given.
fn remove(path: &Path) -> io::Result<()> {
    let all = || match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    };
    contained::with_root_s_privilege(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        entries.map(|name| name.into_string().unwrap()).collect()
    }

    #[test]
    fn a_home_goes_with_its_trial_and_all_that_is_in_it() {
        let base = tempfile::tempdir().unwrap();
        let home = TrialHome::make(base.path(), base.path()).unwrap();
        std::fs::create_dir_all(home.state().join("signer")).unwrap();
        std::fs::write(home.log(), "x").unwrap();
        assert!(names(base.path()).iter().all(|name| is_one(name)), "{:?}", names(base.path()));
        drop(home);
        assert_eq!(names(base.path()), Vec::<String>::new());
    }

    #[test]
    fn what_a_killed_one_left_goes_with_the_next_and_what_somebody_has_stays() {
        let base = tempfile::tempdir().unwrap();
        let runtime = tempfile::tempdir().unwrap();
        let living = TrialHome::make(base.path(), runtime.path()).unwrap();
        let left = base.path().join(format!("{PREFIX}0000000000000001"));
        std::fs::create_dir_all(left.join("state/signer")).unwrap();
        std::fs::write(left.join("state/signer/key.pem"), "secret").unwrap();
        let socket = socket(runtime.path(), "0000000000000001");
        drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
        // The instance of that one still runs.
        let held = base.path().join(format!("{PREFIX}0000000000000002"));
        std::fs::create_dir_all(held.join("state")).unwrap();
        let state = File::open(held.join("state")).unwrap();
        rustix::fs::flock(&state, FlockOperation::LockExclusive).unwrap();
        std::fs::write(base.path().join("diary"), "mine").unwrap();

        let next = TrialHome::make(base.path(), runtime.path()).unwrap();
        assert!(!left.exists() && !socket.exists() && held.exists());
        assert!(living.path.exists() && next.path.exists() && living.path != next.path);
        drop(state);
        sweep(base.path(), runtime.path());
        drop((living, next));
        assert_eq!(names(base.path()), ["diary"]);
    }

    #[test]
    fn a_link_of_that_name_and_a_folder_of_somebody_else_stay() {
        let base = tempfile::tempdir().unwrap();
        let victim = tempfile::tempdir().unwrap();
        let link = base.path().join(format!("{PREFIX}a"));
        std::os::unix::fs::symlink(victim.path(), &link).unwrap();
        let other = base.path().join(format!("{PREFIX}b"));
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::chown(&other, Some(70_005), None).unwrap();
        sweep(base.path(), base.path());
        assert!(link.symlink_metadata().is_ok() && victim.path().exists() && other.exists());
    }
}
