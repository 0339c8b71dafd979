//! What a cell really is, read from outside of the tool's process while it waits for the word to exec.
//!
//! Each control is compared: what was asked for, what the kernel says now. Only what agrees is `enforced`.

mod item;
mod limits;
mod mounts;

use std::collections::BTreeMap;

use toolcell_types::plan::LaunchFault;
use toolcell_types::{ControlId, ControlReport, ControlSet, ControlState, Fact, Facts, Limits, Verification};

use self::item::{Item, with_tries};
use crate::cgroup::Cgroup;
use crate::devtree::Nodes;
use crate::ids::Ids;
use crate::process::{Process, Read, Status};
use crate::record::Probes;
use crate::stages::{Abi, FilterSet};

/// What holds of the launcher itself, for comparison. Read once.
#[derive(Debug)]
pub(crate) struct Outside {
    namespaces: BTreeMap<&'static str, String>,
    seccomp_filters: u64,
}

const NAMESPACES: [(ControlId, &str); 7] = [
    (ControlId::NamespaceUser, "user"),
    (ControlId::NamespaceMount, "mnt"),
    (ControlId::NamespacePid, "pid"),
    (ControlId::NamespaceNet, "net"),
    (ControlId::NamespaceIpc, "ipc"),
    (ControlId::NamespaceUts, "uts"),
    (ControlId::NamespaceCgroup, "cgroup"),
];

impl Outside {
    /// Reads the launcher's own namespaces and filters.
    pub(crate) fn read() -> Read<Self> {
        let own = Process::new("self");
        let namespaces = NAMESPACES.iter().map(|(_, name)| Ok((*name, own.namespace(name)?))).collect::<Read<_>>()?;
        Ok(Self { namespaces, seccomp_filters: own.status()?.number("Seccomp_filters").unwrap_or(0) })
    }
}

/// Everything that the report compares with.
pub(crate) struct Expected<'a> {
    /// Host number of the tool's process.
    pub(crate) tool: i32,
    /// Who init and tool are.
    pub(crate) ids: Ids,
    /// Where device nodes come from.
    pub(crate) nodes: Nodes,
    /// Limits of the attempt.
    pub(crate) limits: &'a Limits,
    /// The cell's groups.
    pub(crate) group: &'a Cgroup,
    /// Installed filters.
    pub(crate) filters: &'a FilterSet,
    /// Landlock's level.
    pub(crate) landlock: Abi,
    /// What the tool's process found.
    pub(crate) probes: Probes,
    /// What the two clocks were started with and what they have left.
    pub(crate) clocks: Clocks,
    /// Controls that were switched off.
    pub(crate) ablated: ControlSet,
    /// Who init and tool are if none is.
    pub(crate) own_ids: Ids,
    /// The launcher's own.
    pub(crate) outside: &'a Outside,
}

impl Expected<'_> {
    /// Whether this machine, or this instance, cannot have the control at all: it is no switch's doing that it is off.
    fn lacks(&self, id: ControlId) -> bool {
        const OF_GROUPS: [ControlId; 4] =
            [ControlId::CgroupMemory, ControlId::CgroupCpu, ControlId::CgroupPids, ControlId::CpuClock];
        (OF_GROUPS.contains(&id) && self.group.is_absent())
            || (id == ControlId::LandlockNet && !self.landlock.has_net())
            || (id == ControlId::LandlockScope && !self.landlock.has_scope())
            || (id == ControlId::IdentityUnprivileged && self.own_ids.is_own)
    }
}

/// The two clocks of a cell, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Clocks {
    /// What the wall clock was started with.
    pub(crate) wall_us: u64,
    /// What it has left.
    pub(crate) wall_left_us: u64,
    /// When the processor time is looked at next: at the earliest moment at which the tree can have used it up, which
    /// for less than one processor is later than the limit.
    pub(crate) cpu_look_us: u64,
    /// What is left until then. 0 where nothing counts the tree's time: there is no such clock then.
    pub(crate) cpu_left_us: u64,
}

/// By which a cell is judged.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    /// Controls that the operator accepted as unavailable.
    pub(crate) accepted: Vec<ControlId>,
    /// What runs in it is the launcher's own, so that what is missing is only said.
    pub(crate) is_survey: bool,
}

/// Compares all 29 and reports them in the order of the list. A control that was switched off is reported so once it was
/// seen not to hold; so is one that falls with it and does not.
///
/// # Errors
/// [`LaunchFault::Control`] for the first required control that does not hold and that the operator did not accept, but in
/// a survey;
/// [`LaunchFault::Stage`] when the process could not be read.
pub(crate) fn report(expected: &Expected<'_>, terms: &Terms) -> Result<Vec<ControlReport>, LaunchFault> {
    let items = compare(expected).map_err(|error| LaunchFault::Stage {
        stage: "read-back".to_owned(),
        errno: nix::libc::EPROTO,
        detail: describe(&error),
    })?;
    let fallen = expected.ablated.falling();
    ControlId::ALL
        .into_iter()
        .map(|id| {
            let item =
                items.iter().find(|item| item.id == id).ok_or_else(|| refuse(id, "nothing was read back for it"))?;
            let required = id.is_required_by_default() && !terms.accepted.contains(&id);
            let is_asked_off = expected.ablated.has(id);
            let state = if is_asked_off && item.holds {
                return Err(still_holds(item));
            } else if item.holds {
                ControlState::Enforced
            } else if (is_asked_off || fallen.has(id)) && !expected.lacks(id) {
                ControlState::Ablated
            } else if !required || terms.is_survey {
                ControlState::Unavailable
            } else {
                let seen = format!("asked for {}, seen {}", item.requested.to_json(), item.observed.to_json());
                return Err(refuse(id, &seen));
            };
            let (requested, observed) = (item.requested.clone(), item.observed.clone());
            Ok(ControlReport { id, state, verification: item.verification, required, requested, observed })
        })
        .collect()
}

/// A switch that does not switch shows nothing.
fn still_holds(item: &Item) -> LaunchFault {
    LaunchFault::Control {
        id: item.id,
        detail: format!("it was switched off and holds all the same: seen {}", item.observed.to_json()),
        remedy: "leave it on here: on this machine something else keeps it".to_owned(),
    }
}

fn refuse(id: ControlId, detail: &str) -> LaunchFault {
    LaunchFault::Control { id, detail: detail.to_owned(), remedy: toolcell_doctor::remedies::does_not_hold(id) }
}

/// An error with all its causes in one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(current) = cause {
        text = format!("{text}: {current}");
        cause = current.source();
    }
    text
}

fn compare(expected: &Expected<'_>) -> Read<Vec<Item>> {
    let process = Process::new(&expected.tool.to_string());
    let status = process.status()?;
    let mounts = process.mounts()?;
    let mut items = namespaces(&process, expected)?;
    items.extend(mounts::mount_items(&process, &mounts, expected.nodes)?);
    items.extend(landlock(expected));
    items.extend(status_items(&process, &status, expected)?);
    items.extend(limits::group_items(&process, expected)?);
    items.push(limits::rlimits(&process, expected)?);
    let items = items.into_iter().map(|item| with_tries(item, &expected.probes));
    let mut items: Vec<Item> = items.collect();
    items.push(limits::tmp_quota(&process, expected.limits)?);
    items.extend(own_items(expected));
    Ok(items)
}

fn namespaces(process: &Process, expected: &Expected<'_>) -> Read<Vec<Item>> {
    let mut items = Vec::with_capacity(NAMESPACES.len());
    for (id, name) in NAMESPACES {
        let link = process.namespace(name)?;
        let own = expected.outside.namespaces.get(name);
        let mut holds = own.is_some_and(|outside| *outside != link);
        let mut requested = Facts::new().with("own", true);
        let mut observed = Facts::new().with("own", holds).with("link", link);
        if id == ControlId::NamespaceUser {
            let wanted = expected.ids.maps().concat();
            let maps = process.id_maps()?;
            holds = holds && maps == wanted;
            requested = requested.with("ids", Fact::List(wanted));
            observed = observed.with("ids", Fact::List(maps));
        }
        if id == ControlId::NamespaceNet {
            let up = process.interfaces()?;
            holds = holds && up.iter().all(|name| name == "lo");
            requested = requested.with("interfaces", Fact::List(vec!["lo".to_owned()]));
            observed = observed.with("interfaces", Fact::List(up));
        }
        items.push(Item::read_back(id, holds, requested, observed));
    }
    Ok(items)
}

fn landlock(expected: &Expected<'_>) -> Vec<Item> {
    const EACCES: i32 = nix::libc::EACCES;
    const EPERM: i32 = nix::libc::EPERM;
    let probes = expected.probes;
    let item = |id, holds, requested: Facts, observed: Facts| Item {
        id,
        holds,
        verification: Verification::Probed,
        requested,
        observed,
    };
    let name = |errno: i32| if errno == 0 { "allowed".to_owned() } else { toolcell_types::names::errno(errno) };
    let (net, scope) = (expected.landlock.has_net(), expected.landlock.has_scope());
    vec![
        item(
            ControlId::LandlockFs,
            probes.fs_errno == EACCES,
            Facts::new().with("make_file", "EACCES"),
            Facts::new().with("make_file", name(probes.fs_errno)).with("abi", u64::from(probes.landlock_abi)),
        ),
        item(
            ControlId::LandlockNet,
            net && probes.net_errno == EACCES,
            Facts::new().with("bind_tcp", "EACCES"),
            Facts::new().with("bind_tcp", if net { name(probes.net_errno) } else { "not in this kernel".to_owned() }),
        ),
        item(
            ControlId::LandlockScope,
            scope && probes.abstract_errno == EPERM && probes.signal_errno == EPERM,
            Facts::new().with("abstract_socket", "EPERM").with("signal", "EPERM"),
            Facts::new()
                .with(
                    "abstract_socket",
                    if scope { name(probes.abstract_errno) } else { "not in this kernel".to_owned() },
                )
                .with("signal", if scope { name(probes.signal_errno) } else { "not in this kernel".to_owned() }),
        ),
    ]
}

fn status_items(process: &Process, status: &Status, expected: &Expected<'_>) -> Read<Vec<Item>> {
    let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
    let seen: Vec<String> = sets.iter().map(|name| format!("{name} {}", status.text(name))).collect();
    let none = sets.iter().all(|name| u64::from_str_radix(status.text(name), 16) == Ok(0));
    let wanted_filters = u64::try_from(expected.filters.programs.len()).unwrap_or(0);
    let filters = status.number("Seccomp_filters").unwrap_or(0).saturating_sub(expected.outside.seccomp_filters);
    let ids =
        |field: &str| status.text(field).split_whitespace().map(|id| id.parse().unwrap_or(-1)).collect::<Vec<i64>>();
    let (uids, gids, groups) = (ids("Uid"), ids("Gid"), ids("Groups"));
    let (uid, gid) = (i64::from(expected.own_ids.tool.uid), i64::from(expected.own_ids.tool.gid));
    let (fds, open_after_exec) = process.descriptors()?;
    let probes = expected.probes;
    Ok(vec![
        Item::read_back(
            ControlId::Capabilities,
            none,
            Facts::new().with("sets", "all five empty"),
            Facts::new().with("sets", Fact::List(seen)),
        ),
        Item::read_back(
            ControlId::NoNewPrivs,
            status.text("NoNewPrivs") == "1",
            Facts::new().with("no_new_privs", 1_u64),
            Facts::new().with("no_new_privs", status.number("NoNewPrivs").unwrap_or(0)),
        ),
        Item::read_back(
            ControlId::Seccomp,
            status.text("Seccomp") == "2" && filters == wanted_filters,
            Facts::new()
                .with("mode", 2_u64)
                .with("filters", wanted_filters)
                .with("program_sha256", expected.filters.digest.as_str()),
            Facts::new().with("mode", status.number("Seccomp").unwrap_or(0)).with("filters", filters),
        ),
        Item::read_back(
            ControlId::IdentityUnprivileged,
            !expected.ids.is_own && uids == [uid; 4] && gids == [gid; 4] && groups.is_empty(),
            identity_wanted(expected.own_ids),
            Facts::new()
                .with("uids", Fact::Ints(uids))
                .with("gids", Fact::Ints(gids))
                .with("groups", Fact::Ints(groups)),
        ),
        Item {
            id: ControlId::UsernsNested,
            holds: probes.max_user_namespaces == 0 && probes.userns_errno == nix::libc::ENOSPC,
            verification: Verification::Probed,
            requested: Facts::new().with("max_user_namespaces", 0_u64),
            observed: Facts::new().with("max_user_namespaces", Fact::Int(probes.max_user_namespaces.into())).with(
                "unshare_with_all_capabilities",
                if probes.userns_errno == 0 {
                    "allowed".to_owned()
                } else {
                    toolcell_types::names::errno(probes.userns_errno)
                },
            ),
        },
        Item::read_back(
            ControlId::FdsClosed,
            open_after_exec == [0, 1, 2],
            Facts::new().with("after_exec", Fact::Ints(vec![0, 1, 2])),
            Facts::new().with("after_exec", Fact::Ints(open_after_exec)).with("before_exec", fds),
        ),
    ])
}

fn identity_wanted(ids: Ids) -> Facts {
    let id = |id: u32| if ids.is_own { Fact::from("one of its own") } else { Fact::Int(i64::from(id)) };
    Facts::new().with("uid", id(ids.tool.uid)).with("gid", id(ids.tool.gid)).with("groups", Fact::Ints(Vec::new()))
}

/// Controls of our own code: the clocks are read back from their timers, the rest is configured.
fn own_items(expected: &Expected<'_>) -> Vec<Item> {
    let limits = expected.limits;
    let configured = |id, facts: Facts, otherwise: Facts| {
        let holds = !expected.ablated.has(id);
        let observed = if holds { facts.clone() } else { otherwise };
        Item { id, holds, verification: Verification::Configured, requested: facts, observed }
    };
    let clocks = expected.clocks;
    let clock = |id, limit_ms: u64, (started_us, left_us): (u64, u64)| {
        let holds = left_us > 0 && left_us <= started_us;
        let requested = Facts::new().with("limit_ms", limit_ms).with("timer_us", started_us);
        Item::read_back(id, holds, requested, Facts::new().with("timer_left_us", left_us))
    };
    vec![
        configured(
            ControlId::EnvironmentAllowlist,
            Facts::new().with("from", "nothing"),
            Facts::new().with("from", "the launcher's own"),
        ),
        configured(
            ControlId::OutputCap,
            Facts::new().with("keep_bytes", limits.output_keep_bytes).with("limit_bytes", limits.output_limit_bytes),
            Facts::new().with("keep_bytes", limits.output_keep_bytes).with("limit_bytes", "none"),
        ),
        clock(ControlId::WallClock, limits.wall_ms, (clocks.wall_us, clocks.wall_left_us)),
        clock(ControlId::CpuClock, limits.cpu_ms, (clocks.cpu_look_us, clocks.cpu_left_us)),
    ]
}
