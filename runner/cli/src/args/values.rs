//! Values that are more than a text or a number: variables, mounts, call ids, controls.

use std::ops::RangeInclusive;

use toolcell_types::{BadId, CallId, ControlId};

/// First ids of 65536: below are those of people and services, and the last of all is nobody's.
pub(crate) const UID_BASES: RangeInclusive<i64> = 65_536..=4_294_901_758;

/// `-e NAME=VALUE`, or `-e NAME` for the value that NAME has here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnvArg {
    /// The variable.
    pub(crate) name: String,
    /// Its value; none is the caller's own.
    pub(crate) value: Option<String>,
}

/// A host path shown inside, read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MountArg {
    /// On the host, as typed.
    pub(crate) host: String,
    /// Inside; none is the same path.
    pub(crate) inside: Option<String>,
}

/// Why a value is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadValue {
    /// No variable.
    #[error("expected NAME=VALUE or NAME, where NAME is of the form [A-Za-z_][A-Za-z0-9_]*")]
    Env,
    /// docker's form of a mount, and something is wrong with it.
    #[error("expected HOST:INSIDE:ro with a path on this machine and an absolute path inside")]
    Volume,
    /// docker's form of a mount that can be written.
    #[error("add :ro, as writable mounts are not in this version: {host}:{inside}:ro")]
    Writable {
        /// On the host, as typed.
        host: String,
        /// Inside, as typed.
        inside: String,
    },
    /// Our form of a mount.
    #[error("expected HOST, HOST:INSIDE or HOST:INSIDE:ro with a path on this machine and an absolute path inside")]
    ReadOnly,
    /// No entry of the log.
    #[error("expected the index of an entry, a whole number, as `toolcell receipts` lists them")]
    Index,
    /// No control of that name.
    #[error("expected names of controls, as `controls` of an answer lists them, like landlock.net")]
    Control,
    /// A network.
    #[error("expected none: a cell has no network in this version")]
    Network,
    /// A socket mode.
    #[error("expected an octal mode from 0600 to 0666, like 0660")]
    Mode,
    /// A number of seconds.
    #[error("expected a whole number of seconds from 1 to 86400")]
    Seconds,
    /// A name of an experiment.
    #[error("expected a name of 1 to 64 letters, digits, '.', '_' or '-'")]
    Experiment,
    /// A place for cgroups.
    #[error("expected a path below the cgroup roots, like /labs, without . or ..")]
    CgroupParent,
    /// A working directory.
    #[error("expected an absolute path inside the cell, like /tmp")]
    Inside,
}

/// `-e`
pub(crate) fn env(text: &str) -> Result<EnvArg, BadValue> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let mut bytes = name.bytes();
    let head = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    if !head || !bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(BadValue::Env);
    }
    Ok(EnvArg { name: name.to_owned(), value })
}

/// `-v HOST:INSIDE:ro`. There are no named volumes, so that HOST always is a path, as with `--ro`.
pub(crate) fn volume(text: &str) -> Result<MountArg, BadValue> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [host, inside, "ro"] => mount(host, inside).ok_or(BadValue::Volume),
        [host, inside] | [host, inside, "rw"] if mount(host, inside).is_some() => {
            Err(BadValue::Writable { host: (*host).to_owned(), inside: (*inside).to_owned() })
        }
        _ => Err(BadValue::Volume),
    }
}

/// `--ro HOST[:INSIDE[:ro]]`
pub(crate) fn read_only(text: &str) -> Result<MountArg, BadValue> {
    let parts: Vec<&str> = text.split(':').collect();
    match parts.as_slice() {
        [host] if !host.is_empty() => Ok(MountArg { host: (*host).to_owned(), inside: None }),
        [host, inside] | [host, inside, "ro"] => mount(host, inside).ok_or(BadValue::ReadOnly),
        _ => Err(BadValue::ReadOnly),
    }
}

fn mount(host: &str, inside: &str) -> Option<MountArg> {
    let is_one = !host.is_empty() && inside.starts_with('/');
    is_one.then(|| MountArg { host: host.to_owned(), inside: Some(inside.to_owned()) })
}

/// `receipts INDEX`
pub(crate) fn index(text: &str) -> Result<u64, BadValue> {
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_whole).ok_or(BadValue::Index)
}

/// `-w`
pub(crate) fn inside(text: &str) -> Result<String, BadValue> {
    if text.starts_with('/') { Ok(text.to_owned()) } else { Err(BadValue::Inside) }
}

/// `--cgroup-parent`, relative to each cgroup root.
pub(crate) fn cgroup_parent(text: &str) -> Result<String, BadValue> {
    let path = text.strip_prefix('/').unwrap_or(text);
    let is_plain = |name: &str| !name.is_empty() && name != "." && name != "..";
    if path.split('/').all(is_plain) { Ok(path.to_owned()) } else { Err(BadValue::CgroupParent) }
}

/// `--network`
pub(crate) fn network(text: &str) -> Result<String, BadValue> {
    if text == "none" { Ok(text.to_owned()) } else { Err(BadValue::Network) }
}

/// `--call-id` and ids of calls.
pub(crate) fn call_id(text: &str) -> Result<CallId, BadId> {
    CallId::new(text)
}

/// `--accept-unavailable`
pub(crate) fn control(text: &str) -> Result<ControlId, BadValue> {
    ControlId::parse(text).ok_or(BadValue::Control)
}

/// `--socket-mode`
pub(crate) fn mode(text: &str) -> Result<u32, BadValue> {
    let octal = !text.is_empty() && text.len() <= 4 && text.bytes().all(|byte| matches!(byte, b'0'..=b'7'));
    match u32::from_str_radix(text, 8) {
        // Connecting takes write permission; others than the owner get it or not, the owner always.
        Ok(mode) if octal && mode & 0o600 == 0o600 && mode & !0o666 == 0 => Ok(mode),
        Ok(_) | Err(_) => Err(BadValue::Mode),
    }
}

/// `--idle-exit`
pub(crate) fn seconds(text: &str) -> Result<u64, BadValue> {
    match text.parse() {
        Ok(seconds) if (1..=86_400).contains(&seconds) && !text.starts_with('+') => Ok(seconds),
        Ok(_) | Err(_) => Err(BadValue::Seconds),
    }
}

/// `--experiment`
pub(crate) fn experiment(text: &str) -> Result<String, BadValue> {
    let is_plain = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-'));
    if (1..=64).contains(&text.len()) && is_plain(text) { Ok(text.to_owned()) } else { Err(BadValue::Experiment) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_have_a_value_or_take_the_caller_s() {
        let arg = |name: &str, value: Option<&str>| EnvArg { name: name.to_owned(), value: value.map(str::to_owned) };
        assert_eq!(env("A=b=c"), Ok(arg("A", Some("b=c"))));
        assert_eq!(env("A="), Ok(arg("A", Some(""))));
        assert_eq!(env("_a1"), Ok(arg("_a1", None)));
        for bad in ["", "=x", "1A=x", "A B=x", "ä=x", "A-B=x"] {
            assert_eq!(env(bad), Err(BadValue::Env), "{bad}");
        }
    }

    #[test]
    fn docker_s_mounts_must_be_read_only_paths() {
        let arg = MountArg { host: "./data".to_owned(), inside: Some("/data".to_owned()) };
        assert_eq!(volume("./data:/data:ro"), Ok(arg));
        assert_eq!(volume("data:/d:ro"), read_only("data:/d"), "a name is a relative path, as with --ro");
        for bad in ["/a:b:ro", "/a", "", "/a:/b:ro:z", "::", ":/b:ro", ":/b", "/a:b"] {
            assert_eq!(volume(bad), Err(BadValue::Volume), "{bad}");
        }
    }

    #[test]
    fn docker_s_writable_mounts_are_told_what_to_add() {
        for writable in ["./a:/b", "./a:/b:rw"] {
            let told = volume(writable).unwrap_err().to_string();
            assert_eq!(told, "add :ro, as writable mounts are not in this version: ./a:/b:ro", "{writable}");
        }
    }

    #[test]
    fn our_mounts_are_the_same_path_inside_unless_told() {
        assert_eq!(read_only("data"), Ok(MountArg { host: "data".to_owned(), inside: None }));
        assert_eq!(read_only("/a:/b"), Ok(MountArg { host: "/a".to_owned(), inside: Some("/b".to_owned()) }));
        assert_eq!(read_only("/a:/b:ro"), read_only("/a:/b"));
        for bad in ["", ":/b", "/a:b", "/a:", "/a:/b:rw", "/a:ro", ":/b:ro"] {
            assert_eq!(read_only(bad), Err(BadValue::ReadOnly), "{bad}");
        }
    }

    #[test]
    fn an_index_is_a_whole_number() {
        assert_eq!((index("0"), index("17")), (Ok(0), Ok(17)));
        for bad in ["", "abc", "-1", "+1", "1.0", "99999999999999999999"] {
            assert_eq!(index(bad), Err(BadValue::Index), "{bad}");
        }
    }

    #[test]
    fn socket_modes_give_read_and_write_only() {
        assert_eq!(mode("0600"), Ok(0o600));
        assert_eq!(mode("666"), Ok(0o666));
        for bad in ["", "0", "0777", "0066", "600x", "00600", "+600", "0689"] {
            assert_eq!(mode(bad), Err(BadValue::Mode), "{bad}");
        }
    }

    #[test]
    fn a_cgroup_parent_stays_below_the_roots() {
        assert_eq!(cgroup_parent("/labs/a").as_deref(), Ok("labs/a"));
        assert_eq!(cgroup_parent("labs").as_deref(), Ok("labs"));
        for bad in ["", "/", "//etc", "/labs/", "../x", "/labs/..", "/./x"] {
            assert_eq!(cgroup_parent(bad), Err(BadValue::CgroupParent), "{bad}");
        }
    }

    #[test]
    fn only_the_network_none_exists() {
        assert!(network("none").is_ok() && network("host").is_err() && network("").is_err());
    }
}
