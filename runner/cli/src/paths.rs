//! Where things are by default, by who asks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Runtime folder, state and configuration of a daemon that root started.
const ROOT_RUNTIME: &str = "/run/toolcell";
const ROOT_STATE: &str = "/var/lib/toolcell";
const ROOT_CONFIG: &str = "/etc/toolcell";

/// Which variable an ordinary user lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Missing {
    /// XDG_RUNTIME_DIR, for which there is no other place by default.
    Runtime,
    /// HOME, or those of XDG that stand for folders in it.
    Home,
}

/// What an ordinary user's daemon is started with of its environment: what the places are found by.
pub(crate) const VARIABLES: [&str; 4] = ["HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];

/// The default places of one user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Places {
    /// Socket, start lock and log of a daemon that `run` started.
    pub(crate) runtime: PathBuf,
    /// Key, ledger, kept output.
    pub(crate) state: PathBuf,
    /// `config.toml` and `policy/`.
    pub(crate) config: PathBuf,
}

impl Places {
    /// Those of this process's user.
    pub(crate) fn of_process() -> Result<Self, Missing> {
        Self::of(rustix::process::geteuid().is_root(), &|name| std::env::var_os(name))
    }

    /// Those of root, or of an ordinary user with these variables.
    fn of(is_root: bool, variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Missing> {
        if is_root {
            return Ok(Self { runtime: ROOT_RUNTIME.into(), state: ROOT_STATE.into(), config: ROOT_CONFIG.into() });
        }
        // The XDG base directory specification: a relative path is to be ignored.
        let folder = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = folder("HOME");
        let below_home = |path: &str| home.as_ref().map(|home| home.join(path));
        let either = |name: &str, path: &str| folder(name).or_else(|| below_home(path)).ok_or(Missing::Home);
        Ok(Self {
            runtime: folder("XDG_RUNTIME_DIR").ok_or(Missing::Runtime)?.join("toolcell"),
            state: either("XDG_STATE_HOME", ".local/state")?.join("toolcell"),
            config: either("XDG_CONFIG_HOME", ".config")?.join("toolcell"),
        })
    }

    /// The socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.runtime.join("toolcell.sock")
    }

    /// What holds back a second start.
    pub(crate) fn start_lock(&self) -> PathBuf {
        self.runtime.join("start.lock")
    }

    /// Where a daemon that `run` started writes.
    pub(crate) fn log(&self) -> PathBuf {
        self.runtime.join("serve.log")
    }

    /// The settings file.
    pub(crate) fn config_file(&self) -> PathBuf {
        self.config.join("config.toml")
    }

    /// The policy folder.
    pub(crate) fn policy(&self) -> PathBuf {
        self.config.join("policy")
    }

    /// The public key beside the ledger, for verification without a daemon.
    pub(crate) fn public_key(state: &Path) -> PathBuf {
        state.join("signer").join("public.pem")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(name: &str) -> Option<OsString> {
        match name {
            "HOME" => Some("/home/u".into()),
            "XDG_RUNTIME_DIR" => Some("/run/user/7".into()),
            "XDG_CONFIG_HOME" => Some("relative".into()),
            _ => None,
        }
    }

    #[test]
    fn root_has_the_places_of_the_system() {
        let places = Places::of(true, &|_| None).unwrap();
        assert_eq!(places.socket(), Path::new("/run/toolcell/toolcell.sock"));
        assert_eq!(places.state, Path::new("/var/lib/toolcell"));
        assert_eq!(places.config_file(), Path::new("/etc/toolcell/config.toml"));
        assert_eq!(places.policy(), Path::new("/etc/toolcell/policy"));
        assert_eq!(places.log(), Path::new("/run/toolcell/serve.log"));
        assert_eq!(Places::public_key(&places.state), Path::new("/var/lib/toolcell/signer/public.pem"));
    }

    #[test]
    fn a_user_has_those_of_the_xdg_base_directories() {
        let places = Places::of(false, &variables).unwrap();
        assert_eq!(places.socket(), Path::new("/run/user/7/toolcell/toolcell.sock"));
        assert_eq!(places.state, Path::new("/home/u/.local/state/toolcell"));
        assert_eq!(places.config, Path::new("/home/u/.config/toolcell"));
    }

    #[test]
    fn a_user_without_a_runtime_folder_or_a_home_has_no_places_and_is_told_which() {
        assert_eq!(Places::of(false, &|_| None), Err(Missing::Runtime));
        let without_home = |name: &str| variables(name).filter(|_| name != "HOME");
        assert_eq!(Places::of(false, &without_home), Err(Missing::Home));
    }
}
