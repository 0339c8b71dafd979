//! What the figures are of.

use std::path::Path;

use super::BenchError;
use super::report::{Machine, WayName};
use super::ways::Other;

pub(super) fn describe(folder: &Path, others: &[Other]) -> Result<Machine, BenchError> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let memory = field(&read("/proc/meminfo"), "MemTotal");
    let memory = memory.and_then(|value| value.trim_end_matches("kB").trim().parse::<u64>().ok());
    let version = |name: WayName| {
        others.iter().find(|other| other.name() == name).and_then(|other| other.version().map(str::to_owned))
    };
    let uname = rustix::system::uname();
    Ok(Machine {
        kernel: uname.release().to_string_lossy().into_owned(),
        architecture: uname.machine().to_string_lossy().into_owned(),
        processor: field(&read("/proc/cpuinfo"), "model name"),
        processors: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        memory_bytes: memory.and_then(|kib| kib.checked_mul(1024)),
        load: read("/proc/loadavg").split(' ').next().and_then(|load| load.parse().ok()),
        file_system: file_system(folder)?,
        bwrap: version(WayName::Bwrap),
        docker: version(WayName::Docker),
    })
}

/// The type of the file system that the state lies on: the mount with the longest path above it.
fn file_system(folder: &Path) -> Result<Option<String>, BenchError> {
    let failed = |source| BenchError::File { path: folder.to_owned(), source };
    let folder = folder.canonicalize().map_err(failed)?;
    let mounts = std::fs::read_to_string("/proc/self/mounts").map_err(failed)?;
    let above = mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let (point, kind) = (words.next()?, words.next()?);
        folder.starts_with(point).then_some((point.len(), kind))
    });
    Ok(above.max_by_key(|(length, _)| *length).map(|(_, kind)| kind.to_owned()))
}
