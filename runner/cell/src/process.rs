//! One process as /proc shows it from outside (proc(5)).

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt as _;
use std::path::PathBuf;

use zeroize::Zeroize as _;

use crate::cgroup::CgroupError;
use crate::kernel_file;
use crate::mountinfo::{self, Mount};
use crate::wiped::Wiped;

/// Why the process could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    /// A file of the process could not be read.
    #[error("cannot read {path}")]
    File {
        /// Which.
        path: PathBuf,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// A group could not be read.
    #[error("cannot read the cell's groups")]
    Cgroup {
        /// Why.
        #[from]
        source: CgroupError,
    },
}

/// A value of the process, or why not.
pub(crate) type Read<T> = Result<T, ReadError>;

pub(crate) fn at(path: &std::path::Path) -> impl Fn(io::Error) -> ReadError {
    let path = path.to_owned();
    move |source| ReadError::File { path: path.clone(), source }
}

/// Room for the mounts of a cell with as many and as long paths as there may be, each byte escaped.
const MOUNTINFO_BYTES: usize = 512 * 1024;

/// One process under /proc (proc(5)).
pub(crate) struct Process {
    pub(crate) root: PathBuf,
}

/// /proc/PID/status as fields.
pub(crate) struct Status(BTreeMap<String, String>);

impl Status {
    pub(crate) fn text(&self, field: &str) -> &str {
        self.0.get(field).map_or("", String::as_str)
    }

    pub(crate) fn number(&self, field: &str) -> Option<u64> {
        self.text(field).parse().ok()
    }
}

impl Process {
    /// By its number, or `self`.
    pub(crate) fn new(pid: &str) -> Self {
        Self { root: PathBuf::from("/proc").join(pid) }
    }

    pub(crate) fn text(&self, name: &str) -> Read<String> {
        let path = self.root.join(name);
        kernel_file::read_text(&path).map_err(at(&path))
    }

    pub(crate) fn namespace(&self, name: &str) -> Read<String> {
        let path = self.root.join("ns").join(name);
        Ok(fs::read_link(&path).map_err(at(&path))?.to_string_lossy().into_owned())
    }

    pub(crate) fn status(&self) -> Read<Status> {
        let text = self.text("status")?;
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Ok(Status(fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect()))
    }

    pub(crate) fn id_maps(&self) -> Read<Vec<String>> {
        let squeeze = |text: String| {
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>()
        };
        let mut maps = squeeze(self.text("uid_map")?);
        maps.extend(squeeze(self.text("gid_map")?));
        Ok(maps)
    }

    /// Names of the network interfaces in the process's namespace.
    pub(crate) fn interfaces(&self) -> Read<Vec<String>> {
        let text = self.text("net/dev")?;
        Ok(text
            .lines()
            .skip(2)
            .filter_map(|line| line.split_once(':'))
            .map(|(name, _)| name.trim().to_owned())
            .collect())
    }

    /// Its mounts, without what each is the root of.
    pub(crate) fn mounts(&self) -> Read<Vec<Mount>> {
        let path = self.root.join("mountinfo");
        // It names host paths of the caller's, and the next cell is a copy of this memory.
        let mut lines = Wiped::with_capacity(MOUNTINFO_BYTES);
        kernel_file::read_into(&path, &mut lines).map_err(at(&path))?;
        let mut mounts: Vec<Mount> = mountinfo::mounts(&lines).collect();
        for mount in &mut mounts {
            std::mem::take(&mut mount.root).into_os_string().into_vec().zeroize();
        }
        Ok(mounts)
    }

    /// How many descriptors are open, and which of them execve(2) leaves open.
    pub(crate) fn descriptors(&self) -> Read<(u64, Vec<i64>)> {
        // Not `fd`, whose entries only the process's own user may list (proc(5)).
        let dir = self.root.join("fdinfo");
        let (mut count, mut kept) = (0, Vec::new());
        for entry in fs::read_dir(&dir).map_err(at(&dir))? {
            let name = entry.map_err(at(&dir))?.file_name().to_string_lossy().into_owned();
            count += 1;
            let info = self.text(&format!("fdinfo/{name}"))?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).map_or("", str::trim);
            let closes = i64::from_str_radix(flags, 8).is_ok_and(|flags| flags & i64::from(nix::libc::O_CLOEXEC) != 0);
            if !closes {
                kept.push(name.parse().unwrap_or(-1));
            }
        }
        kept.sort_unstable();
        Ok((count, kept))
    }
}
