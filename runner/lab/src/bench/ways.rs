//! The same program by itself, in bubblewrap and in Docker, where these are installed.

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use super::BenchError;
use super::program::{INSIDE, Program, binary};
use super::report::WayName;
use crate::process::command;

/// Name of the image, which exists for as long as the comparison.
const IMAGE: &str = "toolcell-bench";

/// A way of running the program.
#[derive(Debug)]
pub(super) struct Other {
    name: WayName,
    program: PathBuf,
    args: Vec<String>,
    version: Option<String>,
    /// To be removed at the end.
    image: Option<String>,
}

/// All that are there.
pub(super) fn others(program: &Program) -> Result<Vec<Other>, BenchError> {
    let native = Other { name: WayName::Native, program: program.path(), args: Vec::new(), version: None, image: None };
    let mut others = vec![native];
    others.extend(bwrap(program));
    others.extend(docker()?);
    Ok(others)
}

/// The flags that come nearest to a cell: all namespaces, no capability, a read-only root with its own /proc, /dev and a
/// scratch. No limits, no filter, no Landlock, no receipt: bubblewrap alone has none of these.
fn bwrap(program: &Program) -> Option<Other> {
    let version = version("bwrap")?;
    let (dir, scratch) = (program.dir().to_string_lossy().into_owned(), (64 << 20).to_string());
    let mut args = vec!["--unshare-all", "--uid", "65534", "--gid", "65534", "--die-with-parent", "--new-session"];
    args.extend(["--cap-drop", "ALL", "--clearenv", "--ro-bind", "/usr", "/usr"]);
    args.extend(["--symlink", "usr/bin", "/bin", "--symlink", "usr/sbin", "/sbin"]);
    args.extend(["--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64"]);
    args.extend(["--proc", "/proc", "--dev", "/dev", "--size", &scratch, "--tmpfs", "/tmp"]);
    args.extend(["--ro-bind", &dir, "/programs", "--chdir", "/tmp", INSIDE]);
    let args = args.into_iter().map(str::to_owned).collect();
    Some(Other { name: WayName::Bwrap, program: "bwrap".into(), args, version: Some(version), image: None })
}

/// The line that labs type, on an image with nothing but the program. None where no engine answers.
fn docker() -> Result<Option<Other>, BenchError> {
    let mut asked = command("docker");
    let _asked = asked.args(["version", "--format", "{{.Server.Version}}"]);
    let Ok(answer) = output(&mut asked) else { return Ok(None) };
    if !answer.status.success() {
        return Ok(None);
    }
    let version = String::from_utf8_lossy(&answer.stdout).trim().to_owned();
    let image = format!("{IMAGE}:{}", uuid::Uuid::now_v7().simple());
    import(&image)?;
    let mut args = vec!["run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL"];
    args.extend(["--security-opt", "no-new-privileges", "--user", "65534:65534", "--cpus", "1", "--memory", "128m"]);
    args.extend(["--pids-limit", "32", "--workdir", "/programs", &image, INSIDE]);
    let args = args.into_iter().map(str::to_owned).collect();
    let (program, version) = ("docker".into(), Some(version));
    Ok(Some(Other { name: WayName::Docker, program, args, version, image: Some(image) }))
}

fn import(image: &str) -> Result<(), BenchError> {
    let failed = |source| BenchError::System { doing: "make an image", source };
    let (file, mut header) = (binary(), tar::Header::new_ustar());
    header.set_size(u64::try_from(file.len()).unwrap_or(0));
    header.set_mode(0o755);
    let mut archive = tar::Builder::new(Vec::new());
    let inside = INSIDE.trim_start_matches('/');
    archive.append_data(&mut header, inside, file.as_slice()).map_err(failed)?;
    let archive = archive.into_inner().map_err(failed)?;
    let mut starting = command("docker");
    let _starting =
        starting.args(["import", "-", image]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut running = starting.spawn().map_err(failed)?;
    if let Some(mut stdin) = running.stdin.take() {
        std::io::Write::write_all(&mut stdin, &archive).map_err(failed)?;
    }
    let done = running.wait_with_output().map_err(failed)?;
    if done.status.success() { Ok(()) } else { Err(other_failed(WayName::Docker, &done)) }
}

fn version(program: &str) -> Option<String> {
    let answer = output(command(program).arg("--version")).ok().filter(|answer| answer.status.success())?;
    Some(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
}

fn output(command: &mut Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).output()
}

fn other_failed(way: WayName, done: &Output) -> BenchError {
    let detail = format!("{}: {}", done.status, String::from_utf8_lossy(&done.stderr).trim());
    BenchError::Other { way: way.as_str(), detail }
}

impl Other {
    pub(super) fn name(&self) -> WayName {
        self.name
    }

    pub(super) fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Whether one run takes a good part of a second.
    pub(super) fn is_slow(&self) -> bool {
        self.name == WayName::Docker
    }

    /// Runs it once: start, exec, end, wait.
    pub(super) fn run(&self) -> Result<(), BenchError> {
        let mut starting = command(&self.program);
        let _starting = starting.args(&self.args).stdin(Stdio::null()).stdout(Stdio::null());
        if self.name != WayName::Docker {
            // Docker's client wants HOME; the others start with nothing, as a cell does. PATH is only to find them.
            let _starting = starting.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
        }
        let failed = |detail| BenchError::Other { way: self.name.as_str(), detail };
        let status = starting.status().map_err(|error| failed(error.to_string()))?;
        if status.success() { Ok(()) } else { Err(failed(status.to_string())) }
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        if let Some(image) = &self.image {
            let removed = output(command("docker").args(["rmi", "--force", image]));
            drop(removed);
        }
    }
}
