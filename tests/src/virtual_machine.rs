//! A small machine with another kernel and version 2 of cgroups alone, in which this very test binary runs again.
//!
//! QEMU emulates it in software, so that it works wherever the suite does. The initramfs only finds the disk; the disk
//! is a root file system of busybox, the binary under test, the test binary, the libraries of both, and the compiled
//! programs. Results come over the first serial line, the kernel's own words over the second.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::command::{command, run, toolcell_path, workspace_root};
use crate::place::{fresh_dir, target_dir};
use crate::programs::programs_dir;

/// Memory of the machine, MiB.
const MEMORY_MIB: u32 = 1536;

/// What the suite's core did in the machine.
#[derive(Debug, Default)]
pub struct Report {
    /// Tests that passed.
    pub passed: Vec<String>,
    /// Tests that failed.
    pub failed: Vec<String>,
    /// Tests that need something that the machine does not have, with what.
    pub skipped: Vec<String>,
    /// Whether the suite came to its end and the machine was turned off.
    pub is_complete: bool,
    /// Everything that was printed.
    pub text: String,
    /// From the start of the machine to its end.
    pub took: Duration,
}

/// Boots the machine and runs this test binary there with these words on its command line.
///
/// # Panics
/// If the machine cannot be made.
#[must_use]
pub fn run_in_virtual_machine(words: &[&str], limit: Duration) -> Report {
    let kernel = kernel();
    let dir = fresh_dir();
    let initramfs = pack_initramfs(dir.path(), &kernel);
    let disk = make_disk(dir.path(), words);
    let begin = Instant::now();
    let text = boot(dir.path(), [&kernel.join("vmlinuz"), &initramfs, &disk], limit);
    Report { took: begin.elapsed(), ..read(text) }
}

/// The kernel's folder, downloaded once.
fn kernel() -> PathBuf {
    let folder = target_dir().join("vm/kernel");
    let mut script = command("bash");
    script.arg(workspace_root().join("tests/vm/kernel.sh")).arg(&folder);
    assert_eq!(run(&mut script).expect_code(0).code, 0);
    folder
}

fn pack_initramfs(dir: &Path, kernel: &Path) -> PathBuf {
    let root = dir.join("initramfs");
    for name in ["bin", "dev", "disk", "modules"] {
        make_dir(&root.join(name));
    }
    copy(&busybox(), &root.join("bin/busybox"));
    copy(&workspace_root().join("tests/vm/boot.sh"), &root.join("init"));
    for entry in fs::read_dir(kernel).expect("the kernel's folder can be listed") {
        let entry = entry.expect("an entry");
        if entry.path().extension().is_some_and(|extension| extension == "ko") {
            copy(&entry.path(), &root.join("modules").join(entry.file_name()));
        }
    }
    let packed = dir.join("initramfs.cpio");
    let script = "cd \"$1\" && find . | cpio --quiet --create --format=newc > \"$2\"";
    let mut pack = command("sh");
    pack.args(["-c", script, "sh"]).arg(&root).arg(&packed);
    assert_eq!(run(&mut pack).expect_code(0).code, 0);
    packed
}

fn make_disk(dir: &Path, words: &[&str]) -> PathBuf {
    let root = dir.join("root");
    for name in ["usr/bin", "usr/lib", "usr/lib64", "etc", "proc", "sys", "dev", "tmp", "run", "var/tmp", "suite"] {
        make_dir(&root.join(name));
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
        place(program, &root, into);
    }
    make_dir(&root.join("suite/programs"));
    for entry in fs::read_dir(programs_dir()).expect("the programs can be listed") {
        let entry = entry.expect("an entry");
        copy(&entry.path(), &root.join("suite/programs").join(entry.file_name()));
    }
    copy(&workspace_root().join("tests/vm/start.sh"), &root.join("suite/start.sh"));
    write(&root.join("suite/words"), &words.join(" "));
    let disk = dir.join("disk");
    let mut mke2fs = command("mke2fs");
    mke2fs.args(["-q", "-t", "ext4", "-E", "root_owner=0:0", "-d"]).arg(&root).arg(&disk).arg("2G");
    assert_eq!(run(&mut mke2fs).expect_code(0).code, 0);
    fs::remove_dir_all(&root).expect("the folder of the disk can be removed");
    disk
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

fn busybox() -> PathBuf {
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

/// Runs the machine to its end, or to the limit, and gives back its first serial line.
fn boot(dir: &Path, [kernel, initramfs, disk]: [&Path; 3], limit: Duration) -> String {
    let (results, console) = (dir.join("results"), dir.join("console"));
    let mut qemu = command("qemu-system-x86_64");
    qemu.args(["-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", &MEMORY_MIB.to_string()]);
    qemu.args(["-display", "none", "-no-reboot", "-nodefaults", "-kernel"]).arg(kernel).arg("-initrd").arg(initramfs);
    // Without what guards real processors: switching page tables at every system call is what emulation does worst.
    qemu.args(["-append", "console=ttyS1 quiet panic=-1 mitigations=off"]);
    qemu.arg("-drive").arg(format!("file={},if=virtio,format=raw,cache=unsafe", disk.display()));
    qemu.arg("-serial").arg(format!("file:{}", results.display()));
    qemu.arg("-serial").arg(format!("file:{}", console.display()));
    let mut machine = qemu.stdout(Stdio::null()).spawn().expect("qemu starts");
    let end = Instant::now() + limit;
    while machine.try_wait().expect("our own child can be waited for").is_none() {
        if Instant::now() > end {
            machine.kill().expect("our own child can be killed");
            machine.wait().expect("our own child can be waited for");
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).replace('\r', "");
    let results = text(&results);
    if results.contains("machine: off") { results } else { format!("{results}\n--- console\n{}", text(&console)) }
}

/// Reads libtest's lines, `test NAME ... ok`, and those of `start.sh`.
fn read(text: String) -> Report {
    let mut report = Report::default();
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
    Report { text, ..report }
}

fn make_dir(path: &Path) {
    fs::create_dir_all(path).expect("a folder can be made");
}

fn copy(from: &Path, to: &Path) {
    fs::copy(from, to).unwrap_or_else(|error| panic!("{} to {}: {error}", from.display(), to.display()));
}

fn write(path: &Path, text: &str) {
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
        let report = read(text.to_owned());
        assert_eq!((report.passed, report.failed), (vec!["a::one".to_owned()], vec!["a::two".to_owned()]));
        assert_eq!(report.skipped.len(), 1);
        assert!(report.is_complete);
        assert!(!read("machine: Linux 6.1\ntest a::one ... ok\n".to_owned()).is_complete);
    }
}
