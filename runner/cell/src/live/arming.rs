//! From a cell that is set up to one whose tool runs: read back, wait for *go*, start the clocks.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use toolcell_types::plan::{ARMED_MAX_MS, LaunchFault};
use toolcell_types::{ControlId, ControlReport};

use super::{Live, Phase, Step};
use crate::begun;
use crate::clock::monotonic_us;
use crate::readback::{self, Clocks, Expected, Outside};
use crate::record::{Probes, WORD_GO};
use crate::workshop::Workshop;

impl Live {
    pub(super) fn on_armed(&mut self, probes: Probes, shop: &Workshop, outside: &Outside) -> Step {
        let seen = self.read_back(probes, shop, outside).and_then(|controls| {
            self.told.as_ref().map_or(Ok(()), |told| begun::compare(told, &controls))?;
            Ok(controls)
        });
        match seen {
            Ok(controls) => {
                self.phase = Phase::Armed;
                let outputs = self.outputs.take().map_or_else(Vec::new, |(stdout, stderr)| vec![stdout, stderr]);
                Step::Armed(controls, outputs)
            }
            Err(fault) => {
                self.fault = Some(fault);
                self.kill_tree();
                Step::Wait
            }
        }
    }

    /// Reads the waiting process back, with both clocks as they will be started at *go*; gives it time to wait.
    fn read_back(
        &mut self,
        probes: Probes,
        shop: &Workshop,
        outside: &Outside,
    ) -> Result<Vec<ControlReport>, LaunchFault> {
        let tool = self.find_tool()?;
        prefer_for_oom(tool).map_err(|error| fault("read-back", "oom_score_adj", &error))?;
        if self.is_on(ControlId::NamespaceMount) {
            let scratch = open_scratch(tool).map_err(|errno| fault("read-back", "open /tmp", &errno.into()))?;
            self.scratch = Some(scratch);
        }
        let timer = |errno: Errno| fault("read-back", "timerfd", &errno.into());
        let clocks = self.start_clocks().map_err(timer)?;
        let expected = Expected {
            tool,
            ids: self.built.ids,
            nodes: shop.dev.nodes(),
            limits: &self.limits,
            group: &self.built.group,
            filters: shop.filters.for_tool(self.built.has_mounts),
            landlock: shop.landlock,
            probes,
            clocks,
            ablated: self.built.off,
            own_ids: self.built.own_ids,
            outside,
        };
        let controls = readback::report(&expected, &self.terms)?;
        self.wall.start(ARMED_MAX_MS.saturating_mul(1000)).map_err(timer)?;
        Ok(controls)
    }

    /// What the set-up has used of the cell's time and limits, which is not the tool's. Taken while the tool's process
    /// waits, which uses nothing.
    pub(crate) fn take_baseline(&mut self) {
        self.baseline = self.built.group.counters();
    }

    /// The daemon says *go*: starts the clocks, as nothing before counts, and passes the word on.
    pub(crate) fn on_go(&mut self) {
        if self.phase != Phase::Armed {
            return;
        }
        self.go_us = monotonic_us();
        let flags = rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT;
        let said = self.start_clocks().and_then(|_running| rustix::net::send(&self.built.control, &[WORD_GO], flags));
        match said {
            Ok(_) => self.phase = Phase::Running,
            Err(errno) => {
                self.go_us = 0;
                self.fault = Some(fault("exec", "say go", &errno.into()));
                self.kill_tree();
            }
        }
    }

    /// The cell has exactly two processes now: its init and the tool's.
    fn find_tool(&self) -> Result<i32, LaunchFault> {
        let init = self.built.init.pid.as_raw_nonzero().get();
        if self.built.group.is_absent() {
            return self.sender_of_armed(init);
        }
        let members = self.built.group.members().map_err(|error| LaunchFault::Stage {
            stage: "cgroups".to_owned(),
            errno: error.errno(),
            detail: readback::describe(&error),
        })?;
        let mut others = members.iter().copied().filter(|pid| *pid != init);
        match (members.contains(&init), others.next(), others.next()) {
            (true, Some(tool), None) => Ok(tool),
            _ => Err(LaunchFault::Stage {
                stage: "cgroups".to_owned(),
                errno: nix::libc::EPROTO,
                detail: format!("the cell's groups hold {} processes, expected its init and the tool's", members.len()),
            }),
        }
    }

    /// Without a group the tool is who said that it is armed, as the kernel tells, if its parent is the init.
    fn sender_of_armed(&self, init: i32) -> Result<i32, LaunchFault> {
        let wrong =
            |detail: String| LaunchFault::Stage { stage: "read-back".to_owned(), errno: nix::libc::EPROTO, detail };
        let tool = self.armed_by.ok_or_else(|| wrong("nobody said that it is armed".to_owned()))?;
        let status = crate::process::Process::new(&tool.to_string()).status();
        let status = status.map_err(|error| wrong(readback::describe(&error)))?;
        let parent = status.number("PPid");
        if parent == u64::try_from(init).ok() {
            Ok(tool)
        } else {
            Err(wrong(format!("process {tool} said that it is armed, its parent is {parent:?}, not the init {init}")))
        }
    }

    /// Without a group nothing counts the tree's processor time, so that there is no clock for it.
    fn start_clocks(&self) -> Result<Clocks, Errno> {
        let (wall_us, cpu_look_us) = (self.limits.wall_ms.saturating_mul(1000), self.cpu_pause_us(0));
        if self.is_on(ControlId::WallClock) {
            self.wall.start(wall_us)?
        } else {
            self.wall.stop()?
        }
        if self.built.group.is_absent() || !self.is_on(ControlId::CpuClock) {
            return Ok(Clocks { wall_us, wall_left_us: self.wall.left_us()?, cpu_look_us, cpu_left_us: 0 });
        }
        self.cpu.start(cpu_look_us)?;
        Ok(Clocks { wall_us, wall_left_us: self.wall.left_us()?, cpu_look_us, cpu_left_us: self.cpu.left_us()? })
    }
}

fn fault(stage: &str, what: &str, error: &std::io::Error) -> LaunchFault {
    let errno = error.raw_os_error().unwrap_or(nix::libc::EIO);
    LaunchFault::Stage { stage: stage.to_owned(), errno, detail: format!("{what}: {error}") }
}

/// The tool is what the kernel is to kill first for memory; its children inherit that. The init is not.
fn prefer_for_oom(tool: i32) -> std::io::Result<()> {
    let path = format!("/proc/{tool}/oom_score_adj");
    std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, b"1000"))
}

/// Holds the scratch, so that it can be asked how full it was once its processes are gone.
fn open_scratch(tool: i32) -> Result<OwnedFd, Errno> {
    let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    rustix::fs::open(format!("/proc/{tool}/root/tmp"), flags, rustix::fs::Mode::empty())
}
