//! The three parts that `serve` starts: each takes over its fixed descriptors and hands them to its crate.

use std::os::fd::OwnedFd;

use anyhow::Context as _;
use rustix::fs::{Mode, OFlags};
use toolcell_sys::{RootBind, become_user, inherited_fd, private_root};

use crate::args::{DaemonArgs, LauncherArgs, SignerArgs};
use crate::logs;

/// The part with the key: an empty root with its one folder, no privilege, no network.
pub(crate) fn signer(args: &SignerArgs) -> anyhow::Result<()> {
    enter(args.log_format, c"toolcell-signer")?;
    let socket = taken(3)?;
    let folder = taken(4)?;
    let bind = RootBind { source: std::os::fd::AsFd::as_fd(&folder), at: "signer", read_only: false };
    private_root(&[bind]).context("cannot enter a root of its own")?;
    // The old descriptor leads into the old mount tree; the new one cannot leave the new root.
    drop(folder);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let state = rustix::fs::open("/signer", flags, Mode::empty()).context("cannot open its folder")?;
    become_user(args.uid, args.gid)?;
    toolcell_signer::run(toolcell_signer::SignerConfig { state, socket })?;
    Ok(())
}

/// The part that builds cells, and whose end is the end of all.
pub(crate) fn launcher(args: &LauncherArgs) -> anyhow::Result<()> {
    logs::begin(args.log_format)?;
    name(c"toolcell-launch")?;
    let config = toolcell_cell::LauncherConfig {
        daemon: taken(3)?,
        daemon_pidfd: taken(4)?,
        signer_pidfd: taken(5)?,
        locks: vec![taken(6)?, taken(7)?],
        uid_base: args.uid_base,
        instance: args.instance.clone(),
        cgroup_parent: args.cgroup_parent.clone(),
        deny_paths: args.deny_path.clone(),
        unlink: args.unlink.clone(),
        runtime_dir: args.runtime_dir.clone(),
    };
    toolcell_cell::run(config)?;
    Ok(())
}

/// A session of its own: Ctrl-C in a terminal reaches the launcher alone, which ends the others in order.
fn enter(format: crate::args::LogFormat, process: &std::ffi::CStr) -> anyhow::Result<()> {
    logs::begin(format)?;
    rustix::process::setsid().context("cannot leave the session")?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    name(process)
}

/// What ps shows as the command's name; the program itself is called "exe" after an exec of /proc/self/exe.
fn name(process: &std::ffi::CStr) -> anyhow::Result<()> {
    rustix::thread::set_name(process).context("cannot name the process")
}

fn taken(number: i32) -> anyhow::Result<OwnedFd> {
    inherited_fd(number)
        .with_context(|| format!("descriptor {number} is not there: this part is started by `toolcell serve`"))
}

/// The part that speaks HTTP.
pub(crate) fn daemon(_args: &DaemonArgs) -> anyhow::Result<()> {
    anyhow::bail!("not linked")
}
