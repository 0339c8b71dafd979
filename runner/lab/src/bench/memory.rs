//! What the instance's processes hold: proportional set size (proc(5), smaps_rollup), which counts a page that several
//! share in parts, so that their sum is what the instance really takes.

use std::collections::BTreeMap;

use super::BenchError;
use super::report::Pss;

/// The process and all that descend from it.
pub(super) fn look(pid: u32) -> Result<Vec<Pss>, BenchError> {
    let failed = |source| BenchError::System { doing: "list processes", source };
    let mut parents = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let Some(number) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        // One that has ended meanwhile is nobody's.
        if let Some(parent) = parent_of(number) {
            let _none = parents.insert(number, parent);
        }
    }
    let mut found = vec![pid];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(child, _)| *child));
        at = at.saturating_add(1);
    }
    Ok(found.into_iter().map(|pid| Pss { process: name_of(pid), bytes: pss(pid) }).collect())
}

fn status(pid: u32, field: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).map(|value| value.trim().to_owned())
}

fn parent_of(pid: u32) -> Option<u32> {
    status(pid, "PPid")?.parse().ok()
}

fn name_of(pid: u32) -> String {
    // The launcher's child that opens mounts has its parent's command line and a name of its own.
    if status(pid, "Name").as_deref() == Some("toolcell-opener") {
        return "opener".to_owned();
    }
    // Its second word says which part it is; a copy of a part has the same.
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let second = words.split(|byte| *byte == 0).nth(1).map(|word| String::from_utf8_lossy(word).into_owned());
    second.filter(|word| !word.is_empty()).or_else(|| status(pid, "Name")).unwrap_or_else(|| "?".to_owned())
}

fn pss(pid: u32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let value = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_and_its_children_are_found() {
        let mut child = crate::process::command("sleep").arg("60").spawn().unwrap();
        // It is a copy of this process until it executes its own program.
        let seen = loop {
            let seen = look(std::process::id()).unwrap();
            if seen.iter().any(|one| one.process == "60") {
                break seen;
            }
        };
        child.kill().unwrap();
        let _status = child.wait().unwrap();
        assert!(seen.len() >= 2 && seen.iter().all(|one| one.bytes.is_some_and(|bytes| bytes > 0)), "{seen:?}");
    }
}
