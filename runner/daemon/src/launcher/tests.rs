//! Against a launcher of cardboard at the other end of a socket pair.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd as _;

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SocketFlags, SocketType, socketpair,
};
use toolcell_types::plan::{CallerIds, EndCause, FromLauncher, PlanUsage, Prepare};
use toolcell_types::{ControlSet, Limits};

use super::*;

fn pair() -> (Arc<Launcher>, OwnedFd) {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap();
    (Launcher::connect(ours).unwrap(), theirs)
}

fn plan_packet(cell: CellId, descriptors: Vec<OwnedFd>) -> Packet {
    let prepare = Prepare {
        limits: Limits::default(),
        image: Vec::new(),
        mounts: Vec::new(),
        caller: CallerIds { uid: 1, gid: 2, groups: vec![3] },
        ablated: ControlSet::EMPTY,
    };
    Packet::new(&ToLauncher::Arm { cell, has_stdin: false, prepare }, descriptors).unwrap()
}

fn answer(socket: &OwnedFd, message: &FromLauncher, descriptors: &[&OwnedFd]) {
    let bytes = postcard::to_stdvec(message).unwrap();
    let fds: Vec<_> = descriptors.iter().map(|fd| fd.as_fd()).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(&fds)));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(&bytes)], &mut control, SendFlags::NOSIGNAL).unwrap();
}

/// The next packet and how many descriptors came with it.
fn take(socket: &OwnedFd) -> (Vec<u8>, usize) {
    let mut buffer = vec![0; PACKET_MAX_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(&mut buffer)];
    let received = rustix::net::recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC).unwrap();
    let rights = control.drain().map(|message| match message {
        RecvAncillaryMessage::ScmRights(rights) => rights.count(),
        RecvAncillaryMessage::ScmCredentials(_) | _ => 0,
    });
    let rights = rights.sum();
    buffer.truncate(received.bytes);
    (buffer, rights)
}

fn report() -> EndReport {
    EndReport { cause: EndCause::Exited(0), limits_hit: Vec::new(), usage: PlanUsage::default(), tree_gone: true }
}

#[tokio::test]
async fn a_plan_arrives_with_its_descriptor_and_the_events_come_back() {
    let (launcher, theirs) = pair();
    let go = std::fs::File::open("/dev/null").unwrap();
    let id = launcher.next_cell();
    let mut cell = launcher.arm(id, plan_packet(id, vec![go.into()])).unwrap();
    let (bytes, rights) = take(&theirs);
    assert_eq!(rights, 1);
    let ToLauncher::Arm { cell: sent, prepare, .. } = postcard::from_bytes(&bytes).unwrap() else { panic!() };
    assert_eq!((sent, prepare.caller.groups), (CellId(1), vec![3]));

    let (out, mut out_writer) = std::io::pipe().unwrap();
    let (err, _err_writer) = std::io::pipe().unwrap();
    answer(&theirs, &FromLauncher::Armed { cell: id, controls: Vec::new() }, &[&out.into(), &err.into()]);
    let Some(CellEvent::Armed { stdout, .. }) = cell.next().await else { panic!() };
    std::io::Write::write_all(&mut out_writer, b"x").unwrap();
    let mut byte = [0];
    assert_eq!(rustix::io::read(&stdout, &mut byte), Ok(1));

    cell.go().unwrap();
    let (bytes, rights) = take(&theirs);
    assert_eq!(rights, 0);
    let ToLauncher::Go { cell: let_go } = postcard::from_bytes(&bytes).unwrap() else { panic!() };
    assert_eq!(let_go, id);

    cell.kill(KillReason::Cancelled).unwrap();
    let (bytes, rights) = take(&theirs);
    assert_eq!(rights, 0);
    let ToLauncher::Kill { cell: killed, reason } = postcard::from_bytes(&bytes).unwrap() else { panic!() };
    assert_eq!((killed, reason), (id, KillReason::Cancelled));

    answer(&theirs, &FromLauncher::Ended { cell: id, report: report() }, &[]);
    assert!(matches!(cell.next().await, Some(CellEvent::Ended { report }) if report.tree_gone));
    assert!(cell.next().await.is_none());
}

#[tokio::test]
async fn a_cell_that_nobody_waits_for_any_more_is_killed_unless_it_is_over() {
    let (launcher, theirs) = pair();
    let ids = [launcher.next_cell(), launcher.next_cell()];
    let [left, mut over] = ids.map(|id| launcher.arm(id, plan_packet(id, Vec::new())).unwrap());
    answer(&theirs, &FromLauncher::Ended { cell: ids[1], report: report() }, &[]);
    assert!(matches!(over.next().await, Some(CellEvent::Ended { .. })));
    take(&theirs);
    take(&theirs);
    drop(over);
    drop(left);
    let (bytes, _) = take(&theirs);
    let ToLauncher::Kill { cell, .. } = postcard::from_bytes(&bytes).unwrap() else { panic!() };
    assert_eq!(cell, ids[0]);
}

#[tokio::test]
async fn events_reach_the_cell_that_they_name_and_unknown_cells_are_passed_over() {
    let (launcher, theirs) = pair();
    let ids = [launcher.next_cell(), launcher.next_cell()];
    assert_ne!(ids[0], ids[1]);
    let mut cells = ids.map(|id| launcher.arm(id, plan_packet(id, Vec::new())).unwrap());
    answer(&theirs, &FromLauncher::Ended { cell: CellId(77), report: report() }, &[]);
    let fault = LaunchFault::BadPlan { detail: "x".to_owned() };
    answer(&theirs, &FromLauncher::Refused { cell: ids[1], fault, tree_gone: true }, &[]);
    answer(&theirs, &FromLauncher::Ended { cell: ids[0], report: report() }, &[]);
    assert!(matches!(cells[0].next().await, Some(CellEvent::Ended { .. })));
    assert!(matches!(cells[1].next().await, Some(CellEvent::Refused { tree_gone: true, .. })));
}

#[tokio::test]
async fn when_the_launcher_goes_every_cell_hears_so_and_nothing_more_is_launched() {
    let (launcher, theirs) = pair();
    let id = launcher.next_cell();
    let mut cell = launcher.arm(id, plan_packet(id, Vec::new())).unwrap();
    drop(theirs);
    assert!(cell.next().await.is_none());
    launcher.failed().await;
    assert!(launcher.failure().is_some());
    let id = launcher.next_cell();
    assert!(launcher.arm(id, plan_packet(id, Vec::new())).is_err());
}

#[tokio::test]
async fn an_armed_cell_without_its_pipes_or_nonsense_ends_the_connection() {
    let (launcher, theirs) = pair();
    answer(&theirs, &FromLauncher::Armed { cell: CellId(1), controls: Vec::new() }, &[]);
    launcher.failed().await;
    assert!(matches!(*launcher.failure().unwrap(), LauncherError::Protocol { .. }));

    let (launcher, theirs) = pair();
    let mut none = SendAncillaryBuffer::default();
    rustix::net::sendmsg(&theirs, &[IoSlice::new(&[250; 3])], &mut none, SendFlags::NOSIGNAL).unwrap();
    launcher.failed().await;
    assert!(matches!(*launcher.failure().unwrap(), LauncherError::Encoding { .. }));
}

#[tokio::test]
async fn a_third_descriptor_ends_the_connection() {
    let (launcher, theirs) = pair();
    let files = [(); 3].map(|()| OwnedFd::from(std::fs::File::open("/dev/null").unwrap()));
    answer(&theirs, &FromLauncher::Armed { cell: CellId(1), controls: Vec::new() }, &[&files[0], &files[1], &files[2]]);
    launcher.failed().await;
    assert!(matches!(*launcher.failure().unwrap(), LauncherError::Protocol { .. }));
}

#[test]
fn a_packet_that_is_too_large_is_not_sent() {
    let long = "/x".repeat(PACKET_MAX_BYTES);
    let prepare = Prepare {
        limits: Limits::default(),
        image: Vec::new(),
        mounts: vec![toolcell_types::plan::PlanMount { host: &long, inside: "/x", within: "/" }],
        caller: CallerIds { uid: 1, gid: 2, groups: Vec::new() },
        ablated: ControlSet::EMPTY,
    };
    let message = ToLauncher::Arm { cell: CellId(1), has_stdin: false, prepare };
    assert!(matches!(Packet::new(&message, Vec::new()), Err(LauncherError::Protocol { .. })));
}
