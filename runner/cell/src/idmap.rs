//! A caller's own files, readable for the tool: the kernel shows what belongs to the caller on disk as the tool's, in
//! one mount and nowhere else (mount_setattr(2), MOUNT_ATTR_IDMAP). Nothing on disk changes.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

use nix::sched::CloneFlags;
use rustix::fs::{Mode, OFlags};

use crate::ids::Id;
use crate::workshop::end_at_once;

/// A user namespace that says "the caller's are the tool's". It has no process: it lives as long as a mount uses it.
pub(crate) fn caller_as_tool(caller: Id, tool: Id) -> io::Result<OwnedFd> {
    let (wait, hold) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    // A namespace begins with a process; this one waits until it is killed, or until nobody is left to kill it.
    let child = toolcell_sys::clone_process(CloneFlags::CLONE_NEWUSER.bits(), None, || {
        let mut byte = [0_u8; 1];
        match toolcell_sys::close_except(&[wait.as_raw_fd()]) {
            Ok(()) => i32::from(rustix::io::retry_on_intr(|| rustix::io::read(&wait, &mut byte)).is_err()),
            Err(_error) => 1,
        }
    })
    .map_err(|error| io::Error::from_raw_os_error(error.errno()))?;
    let process = format!("/proc/{}", child.pid.as_raw_nonzero());
    let write = |name: &str, from: u32, to: u32| {
        let file = std::fs::OpenOptions::new().write(true).open(format!("{process}/{name}"));
        file.and_then(|mut file| io::Write::write_all(&mut file, format!("{from} {to} 1").as_bytes()))
    };
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let users = write("uid_map", caller.uid, tool.uid)
        .and_then(|()| write("gid_map", caller.gid, tool.gid))
        .and_then(|()| Ok(rustix::fs::open(format!("{process}/ns/user"), flags, Mode::empty())?));
    end_at_once(&child);
    let _until_here = hold.as_fd();
    users
}
