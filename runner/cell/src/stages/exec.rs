//! The last steps: the plan's second half, the working directory, and execve(2).

use std::convert::Infallible;
use std::ffi::{CString, OsStr};
use std::io::Read as _;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt as _;

use nix::errno::Errno;
use toolcell_types::plan::{GO_MAX_BYTES, Go};

use crate::record::{At as _, Op, Probes, Record, Stage, StageError, WORD_GO};

/// Reads and checks the half that the launcher passed on unread.
pub(super) fn read_plan(file: BorrowedFd<'_>) -> Result<Go, StageError> {
    super::stdio::require_seals(file, Stage::Go)?;
    let copy = file.try_clone_to_owned().at(Stage::Go, Op::ReadPlan)?;
    let mut file = std::fs::File::from(copy);
    std::io::Seek::rewind(&mut file).at(Stage::Go, Op::ReadPlan)?;
    let mut bytes = Vec::new();
    let _bytes = (&file).take(GO_MAX_BYTES + 1).read_to_end(&mut bytes).at(Stage::Go, Op::ReadPlan)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > GO_MAX_BYTES {
        return Err(StageError::new(Stage::Go, Op::Decode, nix::libc::E2BIG));
    }
    let bad = StageError::new(Stage::Go, Op::Decode, nix::libc::EINVAL);
    let go: Go = postcard::from_bytes(&bytes).map_err(|_error| bad)?;
    let clean = |text: &str| !text.as_bytes().contains(&0);
    let names =
        go.env.iter().all(|(name, value)| !name.is_empty() && !name.contains('=') && clean(name) && clean(value));
    let argv = go.argv.first().is_some_and(|program| !program.is_empty()) && go.argv.iter().all(|arg| clean(arg));
    if names && argv && go.cwd.starts_with('/') && clean(&go.cwd) { Ok(go) } else { Err(bad) }
}

/// Enters the working directory inside.
pub(super) fn enter_directory(go: &Go) -> Result<(), StageError> {
    rustix::process::chdir(go.cwd.as_str()).at(Stage::Cwd, Op::WorkingDir)
}

/// Says that nothing but exec is left, and waits for the word.
pub(super) fn arm(control: BorrowedFd<'_>, probes: Probes) -> Result<(), StageError> {
    let _sent = rustix::net::send(control, &Record::Armed(probes).encode(), rustix::net::SendFlags::NOSIGNAL)
        .at(Stage::Exec, Op::Send)?;
    super::namespaces::wait_for(control, WORD_GO, Stage::Exec)
}

/// Becomes the tool. A name without a slash is looked up in the PATH inside, as execvp(3) does: what is not there or
/// no directory is passed over, "not permitted" is remembered, anything else ends the search. With an environment that
/// is not clean the launcher's own comes along.
pub(super) fn execute(go: &Go, is_env_clean: bool) -> Result<Infallible, StageError> {
    let failed = |errno: Errno| StageError::new(Stage::Exec, Op::Exec, errno as i32);
    let bad = |_nul: std::ffi::NulError| StageError::new(Stage::Go, Op::Decode, nix::libc::EINVAL);
    let args = go.argv.iter().map(|arg| CString::new(arg.as_bytes())).collect::<Result<Vec<_>, _>>().map_err(bad)?;
    let mut env = go
        .env
        .iter()
        .map(|(name, value)| CString::new(format!("{name}={value}")))
        .collect::<Result<Vec<_>, _>>()
        .map_err(bad)?;
    if !is_env_clean {
        env.extend(launchers_own(go));
    }
    let program = go.argv.first().map(String::as_str).unwrap_or_default();
    if program.contains('/') {
        let path = CString::new(program).map_err(bad)?;
        return nix::unistd::execve(&path, &args, &env).map_err(failed);
    }
    let path = go.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_str()).unwrap_or_default();
    let mut verdict = Errno::ENOENT;
    for dir in path.split(':').filter(|dir| dir.starts_with('/')) {
        let full = std::path::Path::new(dir).join(OsStr::from_bytes(program.as_bytes()));
        let full = CString::new(full.as_os_str().as_bytes()).map_err(bad)?;
        match nix::unistd::execve(&full, &args, &env) {
            Ok(never) => match never {},
            Err(Errno::ENOENT | Errno::ENOTDIR) => {}
            Err(Errno::EACCES) => verdict = Errno::EACCES,
            Err(errno) => return Err(failed(errno)),
        }
    }
    Err(failed(verdict))
}

/// The variables that the launcher was started with, but for those that the plan has itself.
fn launchers_own(go: &Go) -> impl Iterator<Item = CString> {
    let own = std::env::vars_os().filter(|(name, _)| go.env.iter().all(|(given, _)| name != given.as_str()));
    own.filter_map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok())
}
