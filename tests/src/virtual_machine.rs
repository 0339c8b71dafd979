//! A small machine with another kernel and version 2 of cgroups alone, in which this very test binary runs again.
//!
//! QEMU emulates it in software, so that it works wherever the suite does. The initramfs only finds the disk, which holds
//! what the suite is carried in. Results come over the first serial line, the kernel's own words over the second.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::carried::{self, Report, busybox, copy, make_dir, write};
use crate::command::{command, run, workspace_root};
use crate::place::{fresh_dir, target_dir};

/// Memory of the machine, MiB.
const MEMORY_MIB: u32 = 1536;

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
    Report::read(text, begin.elapsed())
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
    carried::make_root(&root);
    copy(&workspace_root().join("tests/vm/start.sh"), &root.join("suite/start.sh"));
    write(&root.join("suite/words"), &words.join(" "));
    let disk = dir.join("disk");
    let mut mke2fs = command("mke2fs");
    mke2fs.args(["-q", "-t", "ext4", "-E", "root_owner=0:0", "-d"]).arg(&root).arg(&disk).arg("2G");
    assert_eq!(run(&mut mke2fs).expect_code(0).code, 0);
    fs::remove_dir_all(&root).expect("the folder of the disk can be removed");
    disk
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
