//! Sockets on the host that everybody may connect to and that a mount shows.

use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use tempfile::TempDir;
use toolcell_tests::{Instance, Live, Need, Request, command, eventually, needs, program_on_host, run};

use super::{EPERM, results, stdout};

const EISCONN: &str = "106";

/// Every act of `attack_sockets.c` with its result inside and outside.
const ACTS: &[(&str, &str, &str)] = &[
    ("connect_stream", EPERM, "ok"),
    ("connect_datagram", EPERM, "ok"),
    ("sendto_datagram", EPERM, "ok"),
    ("sendto_raw", EPERM, "ok"),
    ("sendto_flags", EPERM, "ok"),
    ("sendto_high_bits", EPERM, "ok"),
    ("sendto_pair", EPERM, "ok"),
    ("sendmsg_datagram", EPERM, "ok"),
    ("sendmmsg_datagram", EPERM, "ok"),
    ("sendmsg_pair", EPERM, "ok"),
    ("sendmmsg_pair", EPERM, "ok"),
    ("sendmsg_raw_pair", EPERM, "ok"),
    ("sendmsg_pair_high_bits", EPERM, "ok"),
    ("sendto_low_half_null", EPERM, EISCONN),
    ("sendmsg_packet_pair", "ok", "ok"),
    ("sendmsg_stream_pair", EISCONN, EISCONN),
    ("talk_over_a_pair", "ok", "ok"),
    ("listen_to_own", "ok", "ok"),
];

/// Two sockets of the host in a directory that everybody may read.
struct Open {
    dir: TempDir,
    stream: UnixListener,
    datagram: UnixDatagram,
}

impl Open {
    fn new() -> Self {
        let dir = tempfile::tempdir_in("/var/tmp").unwrap();
        let all = |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        all(dir.path(), 0o755);
        let (stream, datagram) = (dir.path().join("stream"), dir.path().join("datagram"));
        let this = Self {
            dir,
            stream: UnixListener::bind(&stream).unwrap(),
            datagram: UnixDatagram::bind(&datagram).unwrap(),
        };
        all(&stream, 0o777);
        all(&datagram, 0o777);
        this.stream.set_nonblocking(true).unwrap();
        this.datagram.set_nonblocking(true).unwrap();
        this
    }

    fn path(&self) -> String {
        self.dir.path().to_string_lossy().into_owned()
    }

    /// How many connections and datagrams have come in since the last look.
    fn arrived(&self) -> (usize, usize) {
        let all = |mut take: Box<dyn FnMut() -> std::io::Result<()> + '_>| {
            let mut count = 0;
            loop {
                match take() {
                    Ok(()) => count += 1,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return count,
                    Err(error) => panic!("{error}"),
                }
            }
        };
        let connections = all(Box::new(|| self.stream.accept().map(drop)));
        let datagrams = all(Box::new(|| self.datagram.recv(&mut [0_u8; 8]).map(|_bytes| ())));
        (connections, datagrams)
    }
}

#[test]
fn a_socket_in_a_mount_leads_nowhere_and_outside_it_leads_to_the_host() {
    needs!(Need::Root);
    let open = Open::new();
    let instance = Instance::start();
    let request = Request::program("attack_sockets", &["/shown", "/tmp"]).mount(&open.path(), "/shown");
    let inside = results(&stdout(&instance.call(&request)));
    assert_eq!(open.arrived(), (0, 0), "nothing of a cell comes in: {inside:?}");

    let work = tempfile::tempdir().unwrap();
    std::fs::set_permissions(work.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let mut program = command(program_on_host("attack_sockets"));
    program.arg(open.path()).arg(work.path()).uid(54_321).gid(54_321);
    let mut outside = Live::start(&mut program);
    // A queue of datagrams is short, and who sends waits for room.
    let mut arrived = (0, 0);
    eventually("the program's end", || {
        let ended = outside.has_ended();
        let (connections, datagrams) = open.arrived();
        arrived = (arrived.0 + connections, arrived.1 + datagrams);
        ended.then_some(())
    });
    let outside = results(&outside.finish().expect_code(0).text());
    let expected: usize = ACTS.iter().filter(|(_, inside, outside)| *inside == EPERM && *outside == "ok").count();
    assert_eq!(arrived, (1, expected - 1), "the control: everybody outside gets through: {outside:?}");

    let of = |seen: Option<&String>| seen.map_or("none", String::as_str).to_owned();
    let seen: Vec<(&str, String, String)> =
        ACTS.iter().map(|(act, _, _)| (*act, of(inside.get(*act)), of(outside.get(*act)))).collect();
    let expected: Vec<(&str, String, String)> =
        ACTS.iter().map(|(act, inside, outside)| (*act, (*inside).to_owned(), (*outside).to_owned())).collect();
    assert_eq!(seen, expected);
    assert_eq!(inside.len(), ACTS.len(), "every act has a rule");
}

/// Talks to sockets of its own in argv[1], and tries one of the host's in argv[2].
const OWN: &str = "
import socket as s, sys
def attempt(name, act):
    try:
        act()
        print(name, 'ok')
    except OSError as error:
        print(name, error.errno)
def stream():
    server = s.socket(s.AF_UNIX)
    server.bind(sys.argv[1] + '/s')
    server.listen(1)
    client = s.socket(s.AF_UNIX)
    client.connect(sys.argv[1] + '/s')
    client.send(b'x')
    assert server.accept()[0].recv(1) == b'x'
def datagram():
    server = s.socket(s.AF_UNIX, s.SOCK_DGRAM)
    server.bind(sys.argv[1] + '/d')
    s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b'x', sys.argv[1] + '/d')
    assert server.recv(1) == b'x'
def pair():
    one, two = s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)
    one.send(b'x')
    assert two.recv(1) == b'x'
attempt('stream', stream)
attempt('datagram', datagram)
attempt('pair', pair)
attempt('host', lambda: s.socket(s.AF_UNIX).connect(sys.argv[2]))
";

#[test]
fn a_cell_without_mounts_may_connect_to_its_own_sockets() {
    needs!(Need::Root, Need::Tool("python3"));
    let open = Open::new();
    let instance = Instance::start();
    let host = format!("{}/stream", open.path());
    let request = |host: &str| Request::exec(&["/usr/bin/python3", "-I", "-c", OWN, "/tmp", host]);
    let sealed = stdout(&instance.call(&request(&host)));
    assert_eq!(sealed, "stream ok\ndatagram ok\npair ok\nhost 2\n");
    let shown = stdout(&instance.call(&request("/shown/stream").mount(&open.path(), "/shown")));
    assert_eq!(shown, "stream 1\ndatagram 1\npair 1\nhost 1\n", "a mount is the price");
    assert_eq!(open.arrived(), (0, 0));

    let work = tempfile::tempdir().unwrap();
    let mut python = command("/usr/bin/python3");
    python.args(["-I", "-c", OWN]).arg(work.path()).arg(&host);
    let outside = run(&mut python).expect_code(0).text();
    assert_eq!(outside, "stream ok\ndatagram ok\npair ok\nhost ok\n", "the control");
    assert_eq!(open.arrived(), (1, 0));
}
