//! The seven namespaces: what is one's own is there, what is outside cannot be reached by its name.

use std::io;

use nix::libc;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Pid;
use toolcell_sys::MessageQueue;
use toolcell_types::ControlId;
use toolcell_types::doctor::{Outer, Side, Trial};

use super::{fails, works};

/// A file to be given away; in the scratch.
const FILE: &str = "/tmp/.survey-owner";

/// Ids: a file of one's own is there; the host's root has no number here that it could be given to. Without a namespace of
/// its own, or with root in its map, the kernel would answer EPERM or do it.
pub(super) fn user() -> Trial {
    let made = std::fs::File::create(FILE).map(drop);
    let given = std::os::unix::fs::chown(FILE, Some(0), None);
    let removed = std::fs::remove_file(FILE);
    Trial {
        id: ControlId::NamespaceUser,
        allowed: works("make a file of its own", &made.and(removed)),
        forbidden: fails("give a file of its own to user 0", &given, &[libc::EINVAL]),
    }
}

/// Mounts: the image is there, the host's own folder is not.
pub(super) fn mount(outer: &Outer) -> Trial {
    const ACT: &str = "find a folder of the host's by its path";
    let forbidden = match &outer.path {
        Some(path) => fails(ACT, &std::fs::symlink_metadata(path), &[libc::ENOENT]),
        None => Side::not_tried(ACT, "the launcher knew of none"),
    };
    Trial { id: ControlId::NamespaceMount, allowed: works("list /usr", &std::fs::read_dir("/usr")), forbidden }
}

/// Numbers up to which a process of the cell could have them as well: more than are started before this one.
const OWN_PIDS: i32 = 256;

/// Processes: one's own can be named, the launcher cannot, and /proc shows nobody else.
pub(super) fn pid(outer: &Outer) -> Trial {
    const ACT: &str = "signal the launcher by its number, and see others in /proc";
    let own = rustix::process::getpid();
    let seen = others_in_proc(own.as_raw_nonzero().get());
    let forbidden = match (&seen, Pid::from_raw(outer.pid).filter(|_| outer.pid > OWN_PIDS)) {
        (Ok(0), Some(launcher)) => {
            fails(ACT, &rustix::process::test_kill_process(launcher).map_err(io::Error::from), &[libc::ESRCH])
        }
        // A small number could be one of the cell's own processes.
        (Ok(0), None) => Side::tried("see others in /proc", "there is nobody", true),
        (Ok(others), _) => Side::tried(ACT, format!("/proc shows {others} others"), false),
        (Err(_), _) => Side::tried(ACT, format!("/proc: {}", super::word(&seen)), false),
    };
    let signalled = rustix::process::test_kill_process(own).map_err(io::Error::from);
    Trial { id: ControlId::NamespacePid, allowed: works("signal itself", &signalled), forbidden }
}

fn others_in_proc(own: i32) -> io::Result<usize> {
    let mut others = 0;
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        others += usize::from(name.to_str().and_then(|name| name.parse::<i32>().ok()).is_some_and(|pid| pid != own));
    }
    Ok(others)
}

/// Network: a pair of sockets works, the launcher's abstract socket is not there, and no interface but loopback is. The
/// launcher had reached that socket from where it stands.
pub(super) fn net(outer: &Outer) -> Trial {
    const ACT: &str = "connect to an abstract socket of the host's";
    let pair = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
        .map_err(Into::into);
    let forbidden = match &outer.socket {
        Some(name) => {
            let mut side = fails(ACT, &connect(name), &[libc::ECONNREFUSED]);
            let interfaces = interfaces();
            if !interfaces.iter().all(|name| name == "lo") {
                side = Side::tried("see an interface of the host's", interfaces.join(", "), false);
            }
            side
        }
        None => Side::not_tried(ACT, "the launcher could not listen at one"),
    };
    Trial { id: ControlId::NamespaceNet, allowed: works("make a pair of sockets", &pair), forbidden }
}

/// Connects to an abstract socket (unix(7)).
pub(super) fn connect(name: &str) -> io::Result<()> {
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    Ok(rustix::net::connect(&socket, &SocketAddrUnix::new_abstract_name(name.as_bytes())?)?)
}

fn interfaces() -> Vec<String> {
    let text = std::fs::read_to_string("/proc/self/net/dev").unwrap_or_default();
    text.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// System V IPC: a queue of one's own can be made, the launcher's is not there.
pub(super) fn ipc(outer: &Outer) -> Trial {
    const ACT: &str = "find a message queue of the host's by its key";
    let forbidden = match outer.queue {
        Some(key) => fails(ACT, &MessageQueue::find(key), &[libc::ENOENT]),
        None => Side::not_tried(ACT, "the launcher could not make one"),
    };
    Trial {
        id: ControlId::NamespaceIpc,
        allowed: works("make a message queue", &MessageQueue::make(libc::IPC_PRIVATE)),
        forbidden,
    }
}

/// Host name: there is one, and it is not the host's.
pub(super) fn uts(outer: &Outer) -> Trial {
    const ACT: &str = "read the host's name";
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    let forbidden = match outer.host_name.as_str() {
        "" | "cell" => Side::not_tried(ACT, "the host's name could be a cell's"),
        host => Side::tried(ACT, format!("it reads {name:?}"), name != host),
    };
    Trial {
        id: ControlId::NamespaceUts,
        allowed: Side::tried("read a name", format!("{name:?}"), !name.is_empty()),
        forbidden,
    }
}

/// Groups: one's own is named, and nothing of the way to it.
pub(super) fn cgroup() -> Trial {
    let read = std::fs::read_to_string("/proc/self/cgroup");
    let text = read.as_deref().unwrap_or_default();
    let shown: Vec<&str> =
        text.lines().filter_map(|line| line.splitn(3, ':').nth(2)).filter(|path| *path != "/").collect();
    let got = if shown.is_empty() { "every path is /".to_owned() } else { shown.join(" ") };
    Trial {
        id: ControlId::NamespaceCgroup,
        allowed: works("read /proc/self/cgroup", &read),
        forbidden: Side::tried("see where in the host's groups it is", got, read.is_ok() && shown.is_empty()),
    }
}
