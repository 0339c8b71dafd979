//! What is in force: options over the settings file over defaults.

use std::path::{Path, PathBuf};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use toolcell_cell::CgroupError;
use toolcell_types::ControlId;

use super::error::{ServeError, file};
use crate::args::{LogFormat, ServeArgs, UID_BASES, cgroup_parent, socket_mode};
use crate::missing::GROUPS;
use crate::paths::Places;

/// Only the user who started the daemon.
const SOCKET_MODE: u32 = 0o600;

/// Everything that `serve` was told, complete. Paths are absolute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    pub(super) runtime: PathBuf,
    pub(super) socket: PathBuf,
    pub(super) state: PathBuf,
    pub(super) policy: Option<PathBuf>,
    /// As root named it.
    pub(super) uid_base: Option<u32>,
    pub(super) cgroup_parent: Option<String>,
    pub(super) socket_mode: u32,
    pub(super) idle_exit_s: Option<u64>,
    pub(super) accept_unavailable: Vec<ControlId>,
    pub(super) log_format: LogFormat,
    /// Of ablation mode: what its receipts are for. By option only, never from a file.
    pub(super) experiment: Option<String>,
}

impl Settings {
    /// Where groups cannot be had: nothing, if the operator accepted all that needs one as missing; else the refusal.
    pub(super) fn go_without_groups(&self, source: CgroupError, what: &'static str) -> Result<(), ServeError> {
        // A parent that was named and cannot be used is a mistake, not a machine without groups.
        if self.cgroup_parent.is_some() || !GROUPS.iter().all(|id| self.accept_unavailable.contains(id)) {
            return Err(ServeError::Cgroups { what, source });
        }
        tracing::warn!(error = %source, "cells have no groups, as was accepted");
        Ok(())
    }
}

/// `config.toml`: the options of `serve` with the unit at the end of the name.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    socket: Option<PathBuf>,
    state: Option<PathBuf>,
    policy: Option<PathBuf>,
    #[serde(deserialize_with = "uid_base")]
    uid_base: Option<u32>,
    #[serde(deserialize_with = "parent")]
    cgroup_parent: Option<String>,
    /// Octal, as a string: in TOML a bare 0600 is no number.
    #[serde(deserialize_with = "mode")]
    socket_mode: Option<u32>,
    #[serde(deserialize_with = "seconds")]
    idle_exit_s: Option<u64>,
    accept_unavailable: Vec<ControlId>,
    log_format: Option<LogFormat>,
}

/// Reads the settings file, if there is one, and lays the options over it.
pub(super) fn of(args: &ServeArgs, places: &Places) -> Result<Settings, ServeError> {
    let from_file = match &args.config {
        Some(path) => read(path)?,
        None if places.config_file().exists() => read(&places.config_file())?,
        None => File::default(),
    };
    merge(args, from_file, places, places.policy().is_dir())
}

fn read(path: &Path) -> Result<File, ServeError> {
    super::checks::is_operators_own(path)?;
    parse(path, &file("read", path, std::fs::read_to_string(path))?)
}

fn parse(path: &Path, text: &str) -> Result<File, ServeError> {
    toml::from_str(text).map_err(|source| ServeError::Settings { path: path.to_owned(), source })
}

fn merge(args: &ServeArgs, from_file: File, places: &Places, has_policy: bool) -> Result<Settings, ServeError> {
    let socket = args.socket.clone().or(from_file.socket).unwrap_or_else(|| places.socket());
    let state = args.state.clone().or(from_file.state).unwrap_or_else(|| places.state.clone());
    let policy = args.policy.clone().or(from_file.policy).or_else(|| has_policy.then(|| places.policy()));
    let accept_unavailable = match args.accept_unavailable.as_slice() {
        [] => from_file.accept_unavailable,
        typed => typed.to_vec(),
    };
    let (socket, state) = (absolute(socket)?, absolute(state)?);
    if args.ablation && (socket == places.socket() || state == places.state) {
        return Err(ServeError::AblationPlaces);
    }
    let experiment = args.ablation.then(|| args.experiment.clone().unwrap_or_else(new_experiment));
    Ok(Settings {
        runtime: places.runtime.clone(),
        socket,
        state,
        policy: policy.map(absolute).transpose()?,
        uid_base: args.uid_base.or(from_file.uid_base),
        cgroup_parent: args.cgroup_parent.clone().or(from_file.cgroup_parent),
        socket_mode: args.socket_mode.or(from_file.socket_mode).unwrap_or(SOCKET_MODE),
        idle_exit_s: args.idle_exit.or(from_file.idle_exit_s),
        accept_unavailable,
        log_format: args.log_format.or(from_file.log_format).unwrap_or(LogFormat::Human),
        experiment,
    })
}

fn new_experiment() -> String {
    uuid::Uuid::now_v7().to_string()
}

fn absolute(path: PathBuf) -> Result<PathBuf, ServeError> {
    let made = std::path::absolute(&path);
    file("make an absolute path of", path, made)
}

fn uid_base<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let base = u32::deserialize(from)?;
    if UID_BASES.contains(&i64::from(base)) {
        return Ok(Some(base));
    }
    Err(D::Error::custom(format!("expected a user id from {} to {}", UID_BASES.start(), UID_BASES.end())))
}

fn parent<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    cgroup_parent(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

fn mode<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    socket_mode(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    match u64::deserialize(from)? {
        seconds @ 1..=86_400 => Ok(Some(seconds)),
        _ => Err(D::Error::custom("expected a whole number of seconds from 1 to 86400")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places { runtime: "/run/t".into(), state: "/state".into(), config: "/etc/t".into() }
    }

    fn from(text: &str) -> Result<File, ServeError> {
        parse(Path::new("/etc/t/config.toml"), text)
    }

    #[test]
    fn without_anything_the_defaults_hold() {
        let settings = merge(&ServeArgs::default(), File::default(), &places(), false).unwrap();
        assert_eq!(
            settings,
            Settings {
                runtime: "/run/t".into(),
                socket: "/run/t/toolcell.sock".into(),
                state: "/state".into(),
                policy: None,
                uid_base: None,
                cgroup_parent: None,
                socket_mode: 0o600,
                idle_exit_s: None,
                accept_unavailable: Vec::new(),
                log_format: LogFormat::Human,
                experiment: None,
            }
        );
    }

    #[test]
    fn the_default_policy_folder_is_taken_where_it_is() {
        let settings = merge(&ServeArgs::default(), File::default(), &places(), true).unwrap();
        assert_eq!(settings.policy.as_deref(), Some(Path::new("/etc/t/policy")));
    }

    #[test]
    fn options_win_over_the_file_and_the_file_over_the_defaults() {
        let args = ServeArgs { socket: Some("/a.sock".into()), socket_mode: Some(0o660), ..ServeArgs::default() };
        let text = "socket = '/b.sock'\nstate = '/b'\nsocket_mode = '0666'\nidle_exit_s = 5\nlog_format = 'json'\n\
                    accept_unavailable = ['landlock.net']\nuid_base = 70000\ncgroup_parent = '/labs'\n";
        let settings = merge(&args, from(text).unwrap(), &places(), false).unwrap();
        assert_eq!(settings.socket, Path::new("/a.sock"));
        assert_eq!(settings.state, Path::new("/b"));
        assert_eq!((settings.socket_mode, settings.idle_exit_s, settings.uid_base), (0o660, Some(5), Some(70_000)));
        assert_eq!(settings.accept_unavailable, [ControlId::LandlockNet]);
        assert_eq!((settings.log_format, settings.cgroup_parent.as_deref()), (LogFormat::Json, Some("labs")));
    }

    #[test]
    fn a_mistake_in_the_file_is_told_with_its_line() {
        for bad in [
            "sokcet = '/a'",
            "socket_mode = 384",
            "socket_mode = '0777'",
            "uid_base = 0",
            "uid_base = 4294967295",
            "idle_exit_s = 0",
            "cgroup_parent = '../x'",
            "accept_unavailable = ['seccom']",
            "log_format = 'xml'",
            "state = 1",
        ] {
            let error = from(&format!("\n{bad}\n")).unwrap_err().to_string();
            assert!(error.starts_with("/etc/t/config.toml: TOML parse error at line 2"), "{bad}: {error}");
        }
    }
}
