//! What the suite is carried in to another machine: a root file system of busybox, the binary under test, this very test
//! binary, the libraries of both, the compiled programs, and the script that runs it. And what it reports from there.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::command::{command, run, toolcell_path, workspace_root};
use crate::programs::{compiled_probes, programs_dir};

/// What the suite's core did there.
#[derive(Debug, Default)]
pub struct Report {
    /// Tests that passed.
    pub passed: Vec<String>,
    /// Tests that failed.
    pub failed: Vec<String>,
    /// Tests that need something that the machine does not have, with what.
    pub skipped: Vec<String>,
    /// Whether the suite came to its end.
    pub is_complete: bool,
    /// Everything that was printed.
    pub text: String,
    /// From the start to the end.
    pub took: Duration,
}

impl Report {
    /// Reads libtest's lines, `test NAME ... ok`, and those of `suite.sh`.
    pub(crate) fn read(text: String, took: Duration) -> Self {
        let mut report = Self::default();
        let mut skipped = BTreeSet::new();
        for line in text.lines() {
            if let Some(skip) = line.strip_prefix("skip: ") {
                skipped.insert(skip.to_owned());
            }
            match line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) {
                Some((name, "ok")) => report.passed.push(name.to_owned()),
                Some((name, _)) => report.failed.push(name.to_owned()),
                None => {}
            }
        }
        report.passed.retain(|name| !skipped.iter().any(|skip| skip.starts_with(&format!("{name}: "))));
        report.skipped = skipped.into_iter().collect();
        report.is_complete = text.contains("\nsuite: ") && text.contains("\nmachine: off");
        Self { text, took, ..report }
    }
}

/// Makes it.
pub(crate) fn make_root(root: &Path) {
    for name in ["usr/bin", "usr/lib", "usr/lib64", "etc", "proc", "sys", "dev", "tmp", "run", "var/tmp", "suite"] {
        make_dir(&root.join(name));
    }
    for name in ["tmp", "var/tmp"] {
        fs::set_permissions(root.join(name), fs::Permissions::from_mode(0o1777)).expect("its mode can be set");
    }
    for (name, target) in [("bin", "usr/bin"), ("sbin", "usr/bin"), ("lib", "usr/lib"), ("lib64", "usr/lib64")] {
        symlink(target, root.join(name)).expect("a link can be made");
    }
    symlink("bin", root.join("usr/sbin")).expect("a link can be made");
    write(&root.join("etc/passwd"), "root:x:0:0:root:/:/bin/sh\n");
    write(&root.join("etc/shadow"), "root:*:20000:0:99999:7:::\n");
    copy(&busybox(), &root.join("usr/bin/busybox"));
    for applet in run(command("busybox").arg("--list")).expect_code(0).text().lines() {
        if applet != "busybox" {
            symlink("busybox", root.join("usr/bin").join(applet)).expect("a link can be made");
        }
    }
    let own = std::env::current_exe().expect("the test binary has a path");
    let programs = [(toolcell_path(), "suite/toolcell"), (own, "suite/e2e"), (tool("unshare"), "usr/bin/unshare")];
    for (program, into) in &programs {
        place(program, root, into);
    }
    for (folder, into) in [(programs_dir(), "suite/programs"), (compiled_probes(), "suite/probes")] {
        make_dir(&root.join(into));
        for entry in fs::read_dir(folder).expect("the programs can be listed") {
            let entry = entry.expect("an entry");
            copy(&entry.path(), &root.join(into).join(entry.file_name()));
        }
    }
    copy(&workspace_root().join("tests/carried/suite.sh"), &root.join("suite/suite.sh"));
}

/// A program without its debugging symbols, and its libraries where it looks for them.
fn place(program: &Path, root: &Path, into: &str) {
    let into = root.join(into);
    drop(fs::remove_file(&into));
    assert_eq!(run(command("strip").arg("--strip-debug").arg("-o").arg(&into).arg(program)).expect_code(0).code, 0);
    for library in libraries(program) {
        // As on the host, /lib is a link into /usr.
        let relative = library.strip_prefix("/").expect("ldd names absolute paths");
        let target = if relative.starts_with("usr") { root.join(relative) } else { root.join("usr").join(relative) };
        make_dir(target.parent().expect("a library lies in a folder"));
        copy(&library, &target);
    }
}

/// What ldd(1) says that a program loads: `libc.so.6 => /lib/libc.so.6 (0x0)`, or the loader by itself.
fn libraries(program: &Path) -> BTreeSet<PathBuf> {
    let text = run(command("ldd").arg(program)).expect_code(0).text();
    let words = text.lines().filter_map(|line| line.split_whitespace().find(|word| word.starts_with('/')));
    words.map(PathBuf::from).collect()
}

pub(crate) fn busybox() -> PathBuf {
    let busybox = tool("busybox");
    assert_ne!(
        run(command("ldd").arg(&busybox)).code,
        0,
        "{} is not static: install busybox-static",
        busybox.display()
    );
    busybox
}

fn tool(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").expect("there is a PATH");
    let found = std::env::split_paths(&path).map(|dir| dir.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("no {name} in PATH"))
}

pub(crate) fn make_dir(path: &Path) {
    fs::create_dir_all(path).expect("a folder can be made");
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::write(path, text).expect("a file can be written");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_line_by_line() {
        let text = "machine: Linux 6.1\nrunning 3 tests\ntest a::one ... ok\ntest a::two ... FAILED\ntest b::three ... ok\n\
                    test result: FAILED. 2 passed\nsuite: 101\nskip: b::three: skipped, needs Tool(\"python3\")\n\
                    machine: off\n";
        let report = Report::read(text.to_owned(), Duration::ZERO);
        assert_eq!((report.passed, report.failed), (vec!["a::one".to_owned()], vec!["a::two".to_owned()]));
        assert_eq!(report.skipped.len(), 1);
        assert!(report.is_complete);
        assert!(!Report::read("machine: Linux 6.1\ntest a::one ... ok\n".to_owned(), Duration::ZERO).is_complete);
    }
}
