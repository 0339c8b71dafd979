//! Puts the probes of `tests/probes` into the program, so that `toolcell ablate` needs no files beside it.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What is taken: programs, and what C programs include.
const KINDS: [&str; 4] = ["c", "h", "py", "sh"];

fn main() -> Result<(), Box<dyn Error>> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).ok_or(format!("{name} is not set"));
    let folder = variable("CARGO_MANIFEST_DIR")?.join("../../tests/probes").canonicalize()?;
    say(&format!("cargo::rerun-if-changed={}", folder.display()));
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().and_then(|kind| kind.to_str()).is_some_and(|kind| KINDS.contains(&kind)) {
            files.push(path);
        }
    }
    files.sort();
    let mut list = "&[\n".to_owned();
    for path in &files {
        let name = path.file_name().and_then(|name| name.to_str()).ok_or("a probe's name is UTF-8")?;
        say(&format!("cargo::rerun-if-changed={}", path.display()));
        writeln!(list, "    ({name:?}, include_str!({:?})),", text(path)?)?;
    }
    list.push_str("]\n");
    std::fs::write(variable("OUT_DIR")?.join("probes.rs"), list)?;
    Ok(())
}

fn text(path: &Path) -> Result<&str, &'static str> {
    path.to_str().ok_or("the path of the sources is UTF-8")
}

/// This is how a build script speaks to cargo.
fn say(line: &str) {
    println!("{line}");
}
