//! The three parts that `serve` starts: each takes over its fixed descriptors and hands them to its crate.

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use anyhow::Context as _;
use rustix::fs::Mode;
use toolcell_cell::CellIds;
use toolcell_confinement::User;
use toolcell_sys::inherited_fd;

use crate::args::{DaemonArgs, LauncherArgs, LogFormat, SignerArgs, SurveyProbeArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{logs, missing};

/// The part with the key: an empty root with its one folder, no privilege, no network.
pub(crate) fn signer(args: &SignerArgs) -> Result<Exit, Failure> {
    logs::begin(args.log_format).map_err(fault)?;
    enter(c"toolcell-signer").map_err(fault)?;
    let _lock = taken(5).map_err(fault)?;
    let config = seal(args).map_err(fault)?;
    toolcell_signer::run(config).map_err(|error| {
        let remedy = error.remedy();
        Failure::new(Exit::Failed, error, remedy)
    })?;
    Ok(Exit::Ok)
}

/// Gives up everything but the one folder and the socket.
fn seal(args: &SignerArgs) -> anyhow::Result<toolcell_signer::SignerConfig> {
    let (socket, folder) = (taken(3)?, taken(4)?);
    let user = match args.rootless {
        true => User::Remain,
        false => User::Become { uid: args.uid, gid: args.gid },
    };
    let state = toolcell_signer::confine(folder, user).context("the signer could not confine itself")?;
    Ok(toolcell_signer::SignerConfig { state, socket, is_ablation: args.ablation })
}

/// The part that speaks HTTP. It gives up its privilege itself, once it has read the policy.
pub(crate) fn daemon(args: &DaemonArgs) -> Result<Exit, Failure> {
    enter(c"toolcell-daemon").map_err(fault)?;
    let [listener, launcher, signer, state, ready] = [3, 4, 5, 6, 7].map(taken);
    let config = toolcell_daemon::DaemonConfig {
        listener: listener.map_err(fault)?,
        launcher: launcher.map_err(fault)?,
        signer: signer.map_err(fault)?,
        state: state.map_err(fault)?,
        ready: ready.map_err(fault)?,
        policy: args.has_policy.then(|| taken(8)).transpose().map_err(fault)?,
        uid: args.uid,
        gid: args.gid,
        operator_uids: vec![args.operator_uid],
        instance: args.instance.clone(),
        experiment: args.experiment.clone(),
        build: args.build.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        idle_exit: args.idle_exit.map(Duration::from_secs),
        accept_unavailable: args.accept_unavailable.clone(),
        is_rootless: args.rootless,
        // What else is missing the launcher finds out while it builds a cell, and says why.
        unavailable: missing::of_instance(!args.rootless, args.no_groups.as_deref(), args.no_ids.as_deref()),
        leftovers_gone: !args.leftovers_unseen,
        socket_path: args.socket.clone(),
        log_format: match args.log_format {
            LogFormat::Human => toolcell_daemon::LogFormat::Human,
            LogFormat::Json => toolcell_daemon::LogFormat::Json,
        },
    };
    toolcell_daemon::run(config).map_err(|error| {
        let remedy = error.remedy();
        Failure::new(Exit::Failed, error, remedy)
    })?;
    Ok(Exit::Ok)
}

/// The part that builds cells, and whose end is the end of all.
pub(crate) fn launcher(args: &LauncherArgs) -> Result<Exit, Failure> {
    logs::begin(args.log_format).map_err(fault)?;
    name(c"toolcell-launch").map_err(fault)?;
    // Folders that it makes in a cell are for the cell's user, who is nobody's owner or group.
    rustix::process::umask(Mode::from_raw_mode(0o022));
    toolcell_sys::keep_nothing_over_exec().map_err(|error| fault(error.into()))?;
    let [daemon, daemon_pidfd, signer_pidfd, state] = [3, 4, 5, 6].map(taken);
    let mut locks = vec![state.map_err(fault)?];
    let ids = match (args.cell_uids, args.cell_gids, args.cells) {
        (Some(uid), Some(gid), Some(cells)) => {
            locks.push(taken(7).map_err(fault)?);
            CellIds::Range { uid, gid, cells }
        }
        _ => CellIds::Own,
    };
    let config = toolcell_cell::LauncherConfig {
        daemon: daemon.map_err(fault)?,
        daemon_pidfd: daemon_pidfd.map_err(fault)?,
        signer_pidfd: signer_pidfd.map_err(fault)?,
        locks,
        ids,
        is_rootless: args.rootless,
        instance: args.instance.clone(),
        cgroup_parent: args.cgroup_parent.clone(),
        deny_paths: args.deny_path.clone(),
        accept_unavailable: args.accept_unavailable.clone(),
        is_ablation: args.ablation,
        unlink: args.unlink.clone(),
        runtime_dir: args.runtime_dir.clone(),
    };
    toolcell_cell::run(config).map_err(|error| {
        let remedy = error.remedy();
        Failure::new(Exit::Failed, error, remedy)
    })?;
    Ok(Exit::Ok)
}

/// What runs in a survey's cell. Its words are the launcher's.
pub(crate) fn survey_probe(args: &SurveyProbeArgs) -> Result<Exit, Failure> {
    let code = toolcell_doctor::probe::run(&args.words).map_err(|error| fault(error.into()))?;
    Ok(Exit::Program(code))
}

/// A session of its own: Ctrl-C in a terminal reaches the launcher alone, which ends the others in order.
fn enter(process: &CStr) -> anyhow::Result<()> {
    rustix::process::setsid().context("cannot leave the session")?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    name(process)
}

/// What ps shows as the command's name; after an exec of /proc/self/exe it would be "exe".
fn name(process: &CStr) -> anyhow::Result<()> {
    rustix::thread::set_name(process).context("cannot name the process")
}

fn taken(number: i32) -> anyhow::Result<OwnedFd> {
    let taken = inherited_fd(number);
    taken.with_context(|| format!("descriptor {number} is not there: `toolcell serve` starts this part"))
}

fn fault(error: anyhow::Error) -> Failure {
    Failure::plain(Exit::Failed, error)
}
