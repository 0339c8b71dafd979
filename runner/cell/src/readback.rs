//! What a cell really is, read from outside of the tool's process while it waits for the word to exec.
//!
//! Each control is compared: what was asked for, what the kernel says now. Only what agrees is `enforced`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use toolcell_types::plan::LaunchFault;
use toolcell_types::{ControlId, ControlReport, ControlState, Fact, Facts, Limits, Verification};

use crate::cgroup::{Cgroup, ReadBack};
use crate::process::{Mount, Process, Read, Status, at};
use crate::record::Probes;
use crate::stages::{
    Abi, DEV_LINKS, DEV_NODES, DEV_SHM, Filters, MASKED_PROC, READ_ONLY_PROC, SCRATCH_MOUNTS, wanted_rlimits,
};

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
    /// Host id of the init, then of the tool.
    pub(crate) ids: (u32, u32),
    /// Ids inside, init then tool.
    pub(crate) inside: (u32, u32),
    /// Limits of the attempt.
    pub(crate) limits: &'a Limits,
    /// The cell's groups.
    pub(crate) group: &'a Cgroup,
    /// Installed filters.
    pub(crate) filters: &'a Filters,
    /// Landlock's level.
    pub(crate) landlock: Abi,
    /// What the tool's process found.
    pub(crate) probes: Probes,
    /// What the two clocks were started with and what they have left.
    pub(crate) clocks: Clocks,
    /// The launcher's own.
    pub(crate) outside: &'a Outside,
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
    /// What is left until then.
    pub(crate) cpu_left_us: u64,
}

/// One compared control.
struct Item {
    id: ControlId,
    holds: bool,
    verification: Verification,
    requested: Facts,
    observed: Facts,
}

impl Item {
    fn read_back(id: ControlId, holds: bool, requested: Facts, observed: Facts) -> Self {
        Self { id, holds, verification: Verification::ReadBack, requested, observed }
    }
}

/// Compares all 29 and reports them in the order of the list.
///
/// # Errors
/// [`LaunchFault::Control`] for the first required control that does not hold and that the operator did not accept;
/// [`LaunchFault::Stage`] when the process could not be read.
pub(crate) fn report(expected: &Expected<'_>, accepted: &[ControlId]) -> Result<Vec<ControlReport>, LaunchFault> {
    let items = compare(expected).map_err(|error| LaunchFault::Stage {
        stage: "read-back".to_owned(),
        errno: nix::libc::EPROTO,
        detail: describe(&error),
    })?;
    ControlId::ALL
        .into_iter()
        .map(|id| {
            let item = items.iter().find(|item| item.id == id);
            let required = id.is_required_by_default() && !accepted.contains(&id);
            match item {
                Some(item) if item.holds || !required => Ok(ControlReport {
                    id,
                    state: if item.holds { ControlState::Enforced } else { ControlState::Unavailable },
                    verification: item.verification,
                    required,
                    requested: item.requested.clone(),
                    observed: item.observed.clone(),
                }),
                Some(item) => Err(refuse(
                    id,
                    &format!("asked for {}, seen {}", item.requested.to_json(), item.observed.to_json()),
                )),
                None => Err(refuse(id, "nothing was read back for it")),
            }
        })
        .collect()
}

fn refuse(id: ControlId, detail: &str) -> LaunchFault {
    let remedy = format!(
        "see what of the kernel or its settings keeps {id} from working, or start the daemon with --accept-unavailable {id}; \
         every receipt then says so"
    );
    LaunchFault::Control { id, detail: detail.to_owned(), remedy }
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
    items.extend(mount_items(&process, &mounts)?);
    items.extend(landlock(expected));
    items.extend(status_items(&process, &status, expected)?);
    items.extend(group_items(&process, expected)?);
    items.push(rlimits(&process, expected.limits)?);
    items.push(tmp_quota(&process, expected.limits)?);
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
            let wanted = id_maps(expected);
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

/// Lines of uid_map and gid_map, blanks squeezed: inside, outside, count.
fn id_maps(expected: &Expected<'_>) -> Vec<String> {
    let lines = [(expected.inside.0, expected.ids.0), (expected.inside.1, expected.ids.1)];
    let one: Vec<String> = lines.iter().map(|(inside, outside)| format!("{inside} {outside} 1")).collect();
    one.iter().chain(&one).cloned().collect()
}

fn mount_items(process: &Process, mounts: &[Mount]) -> Read<Vec<Item>> {
    let points: Vec<String> = mounts.iter().map(|mount| mount.point.clone()).collect();
    let writable: Vec<String> =
        mounts.iter().filter(|mount| !mount.has("ro")).map(|mount| mount.point.clone()).collect();
    let scratch: Vec<String> = SCRATCH_MOUNTS.map(str::to_owned).to_vec();
    let as_set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<_>>();
    let lacking = |flag: &str| {
        mounts.iter().filter(|mount| !mount.has(flag)).map(|mount| mount.point.clone()).collect::<Vec<_>>()
    };
    let (suid, devices) = (lacking("nosuid"), lacking("nodev"));
    let readonly = Item::read_back(
        ControlId::RootReadonly,
        as_set(&writable) == as_set(&scratch) && points.iter().any(|point| point == "/"),
        Facts::new().with("writable", Fact::List(scratch)),
        Facts::new().with("mounts", u64::try_from(points.len()).unwrap_or(0)).with("writable", Fact::List(writable)),
    );
    let flags = Item::read_back(
        ControlId::MountsNosuidNodev,
        suid.is_empty() && devices == ["/dev"],
        Facts::new().with("suid_on", Fact::List(Vec::new())).with("devices_on", Fact::List(vec!["/dev".to_owned()])),
        Facts::new().with("suid_on", Fact::List(suid)).with("devices_on", Fact::List(devices)),
    );
    Ok(vec![readonly, flags, dev_minimal(process)?, proc_masked(process, mounts)])
}

fn dev_minimal(process: &Process) -> Read<Item> {
    let mut wanted: Vec<String> =
        DEV_NODES.iter().map(|node| format!("{} {}:{}", node.name, node.major, node.minor)).collect();
    wanted.extend(DEV_LINKS.iter().map(|(name, target)| format!("{name} {target}")));
    wanted.push(format!("{DEV_SHM}/"));
    wanted.sort();
    let dir = process.root.join("root/dev");
    let mut seen = Vec::new();
    for entry in fs::read_dir(&dir).map_err(at(&dir))? {
        let entry = entry.map_err(at(&dir))?;
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        let stat = rustix::fs::lstat(&path).map_err(|errno| at(&path)(errno.into()))?;
        let kind = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        seen.push(if kind.is_char_device() {
            format!("{name} {major}:{minor}")
        } else if kind.is_symlink() {
            format!("{name} {}", fs::read_link(&path).map_err(at(&path))?.to_string_lossy())
        } else if kind.is_dir() {
            format!("{name}/")
        } else {
            format!("{name} ?")
        });
    }
    seen.sort();
    let facts = |list: &[String]| {
        let names = list.iter().map(|item| item.split([' ', '/']).next().unwrap_or_default().to_owned()).collect();
        Facts::new().with("entries", Fact::List(names))
    };
    Ok(Item::read_back(ControlId::DevMinimal, seen == wanted, facts(&wanted), facts(&seen)))
}

fn proc_masked(process: &Process, mounts: &[Mount]) -> Item {
    let proc = process.root.join("root/proc");
    let there: Vec<&str> = MASKED_PROC.into_iter().filter(|name| proc.join(name).symlink_metadata().is_ok()).collect();
    let covered = |name: &&str| mounts.iter().any(|mount| mount.point == format!("/proc/{name}"));
    let masked: Vec<String> = there.iter().copied().filter(|name| covered(name)).map(str::to_owned).collect();
    let fresh = mounts.iter().any(|mount| mount.point == "/proc" && mount.fs == "proc" && mount.has("ro"));
    let all: Vec<String> = there.into_iter().map(str::to_owned).collect();
    let list = |names: &[&str]| Fact::List(names.iter().map(|name| (*name).to_owned()).collect());
    Item::read_back(
        ControlId::ProcMasked,
        fresh && masked == all,
        Facts::new().with("masked", list(&MASKED_PROC)).with("read_only", list(&READ_ONLY_PROC)),
        Facts::new().with("masked", Fact::List(masked)).with("whole_read_only", fresh),
    )
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
    let wanted_filters = u64::try_from(expected.filters.tool.len()).unwrap_or(0);
    let filters = status.number("Seccomp_filters").unwrap_or(0).saturating_sub(expected.outside.seccomp_filters);
    let ids =
        |field: &str| status.text(field).split_whitespace().map(|id| id.parse().unwrap_or(-1)).collect::<Vec<i64>>();
    let (uids, gids, groups) = (ids("Uid"), ids("Gid"), ids("Groups"));
    let tool_id = i64::from(expected.ids.1);
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
                .with("program_sha256", expected.filters.tool_digest.as_str()),
            Facts::new().with("mode", status.number("Seccomp").unwrap_or(0)).with("filters", filters),
        ),
        Item::read_back(
            ControlId::IdentityUnprivileged,
            uids == [tool_id; 4] && gids == [tool_id; 4] && groups.is_empty(),
            Facts::new()
                .with("uid", Fact::Int(tool_id))
                .with("gid", Fact::Int(tool_id))
                .with("groups", Fact::Ints(Vec::new())),
            Facts::new()
                .with("uids", Fact::Ints(uids))
                .with("gids", Fact::Ints(gids))
                .with("groups", Fact::Ints(groups)),
        ),
        Item::read_back(
            ControlId::UsernsNested,
            probes.max_user_namespaces == 0 && probes.userns_errno == nix::libc::ENOSPC,
            Facts::new().with("max_user_namespaces", 0_u64),
            Facts::new().with("max_user_namespaces", Fact::Int(probes.max_user_namespaces.into())).with(
                "unshare_with_all_capabilities",
                if probes.userns_errno == 0 {
                    "allowed".to_owned()
                } else {
                    toolcell_types::names::errno(probes.userns_errno)
                },
            ),
        ),
        Item::read_back(
            ControlId::FdsClosed,
            open_after_exec == [0, 1, 2],
            Facts::new().with("after_exec", Fact::Ints(vec![0, 1, 2])),
            Facts::new().with("after_exec", Fact::Ints(open_after_exec)).with("before_exec", fds),
        ),
    ])
}

fn group_items(process: &Process, expected: &Expected<'_>) -> Read<Vec<Item>> {
    let inside = expected.group.is_in(&process.text("cgroup")?);
    let limits = expected.limits;
    let item = |id, backs: Vec<ReadBack>| {
        let facts =
            |of: fn(&ReadBack) -> u64| backs.iter().fold(Facts::new(), |facts, back| facts.with(back.name, of(back)));
        let agree = backs.iter().all(|back| back.got == back.wanted);
        let observed = facts(|back| back.got).with("member", inside).with("version", 1_u64);
        Item::read_back(id, inside && agree, facts(|back| back.wanted), observed)
    };
    Ok(vec![
        item(ControlId::CgroupMemory, expected.group.memory_limits(limits)?),
        item(ControlId::CgroupCpu, expected.group.cpu_limits(limits)?),
        item(ControlId::CgroupPids, expected.group.pids_limits(limits)?),
    ])
}

fn rlimits(process: &Process, limits: &Limits) -> Read<Item> {
    let text = process.text("limits")?;
    let (mut requested, mut observed, mut holds) = (Facts::new(), Facts::new(), true);
    for (_, label, value) in wanted_rlimits(limits) {
        let line = text.lines().find_map(|line| line.strip_prefix(label)).unwrap_or_default();
        let mut fields = line.split_whitespace().map(|field| field.parse::<u64>().ok());
        let (soft, hard) = (fields.next().flatten(), fields.next().flatten());
        holds = holds && soft == Some(value) && hard == Some(value);
        let name = label.trim_start_matches("Max ").replace(' ', "_");
        requested = requested.with(&name, value);
        observed = observed.with(&name, soft.map_or(Fact::from("?"), Fact::from));
    }
    Ok(Item::read_back(ControlId::Rlimits, holds, requested, observed))
}

fn tmp_quota(process: &Process, limits: &Limits) -> Read<Item> {
    let mut devices = BTreeSet::new();
    let (mut bytes, mut inodes) = (0, 0);
    for mount in SCRATCH_MOUNTS {
        let path = process.root.join("root").join(mount.trim_start_matches('/'));
        let stat = rustix::fs::stat(&path).map_err(|errno| at(&path)(errno.into()))?;
        let _new = devices.insert(stat.st_dev);
        let fs = rustix::fs::statfs(&path).map_err(|errno| at(&path)(errno.into()))?;
        bytes = fs.f_blocks.saturating_mul(u64::try_from(fs.f_bsize).unwrap_or(0));
        inodes = fs.f_files;
    }
    let page = u64::try_from(rustix::param::page_size()).unwrap_or(4096);
    let wanted = limits.tmp_bytes.div_ceil(page) * page;
    Ok(Item::read_back(
        ControlId::TmpQuota,
        devices.len() == 1 && bytes == wanted && inodes == limits.tmp_inodes,
        Facts::new().with("bytes", wanted).with("inodes", limits.tmp_inodes),
        Facts::new()
            .with("bytes", bytes)
            .with("inodes", inodes)
            .with("file_systems", u64::try_from(devices.len()).unwrap_or(0)),
    ))
}

/// Controls of our own code: the clocks are read back from their timers, the rest is configured.
fn own_items(expected: &Expected<'_>) -> Vec<Item> {
    let limits = expected.limits;
    let configured = |id, facts: Facts| Item {
        id,
        holds: true,
        verification: Verification::Configured,
        requested: facts.clone(),
        observed: facts,
    };
    let clocks = expected.clocks;
    let clock = |id, limit_ms: u64, (started_us, left_us): (u64, u64)| {
        let holds = left_us > 0 && left_us <= started_us;
        let requested = Facts::new().with("limit_ms", limit_ms).with("timer_us", started_us);
        Item::read_back(id, holds, requested, Facts::new().with("timer_left_us", left_us))
    };
    vec![
        configured(ControlId::EnvironmentAllowlist, Facts::new().with("from", "nothing")),
        configured(
            ControlId::OutputCap,
            Facts::new().with("keep_bytes", limits.output_keep_bytes).with("limit_bytes", limits.output_limit_bytes),
        ),
        clock(ControlId::WallClock, limits.wall_ms, (clocks.wall_us, clocks.wall_left_us)),
        clock(ControlId::CpuClock, limits.cpu_ms, (clocks.cpu_look_us, clocks.cpu_left_us)),
    ]
}
