//! The end of a cell: seeing the tree gone, and what is reported of it.

use std::os::fd::AsFd as _;

use rustix::io::Errno;
use rustix::process::{WaitId, WaitIdOptions, waitid};
use toolcell_types::ControlId;
use toolcell_types::plan::{EndCause, EndReport, LaunchFault, PlanUsage};

use super::{DYING_LIMIT_US, DYING_PATIENCE_US, DYING_ROUND_MAX_US, DYING_ROUND_US, Live, Over, Phase, Step};
use crate::cgroup::Counters;
use crate::clock::monotonic_us;
use crate::readback;
use crate::record::{MainEnd, Stage};
use crate::verdict::{Evidence, decide};

impl Live {
    fn reap_init(&mut self) -> bool {
        let Phase::Dying { reaped, .. } = &mut self.phase else { return false };
        if !*reaped {
            match waitid(WaitId::PidFd(self.built.init.pidfd.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG) {
                Ok(Some(_)) | Err(Errno::CHILD) => *reaped = true,
                Ok(None) => {}
                Err(errno) => tracing::error!(cell = %self.id, error = %errno, "cannot reap a cell's init"),
            }
        }
        *reaped
    }

    /// The tree is gone when the init is reaped and every group is empty. The init's death takes all others with it; what
    /// is still there after a while is killed by name, without a quota that it would have to wait for.
    pub(super) fn look_at_dying(&mut self) -> Step {
        let Phase::Dying { since_us, .. } = self.phase else { return Step::Wait };
        let reaped = self.reap_init();
        let for_us = monotonic_us().saturating_sub(since_us);
        let left = if for_us > DYING_PATIENCE_US { self.built.group.kill_members() } else { self.built.group.left() };
        let left = left.unwrap_or_else(|error| {
            tracing::error!(cell = %self.id, error = %readback::describe(&error), "cannot look at a dying cell");
            usize::MAX
        });
        if reaped && left == 0 {
            return self.finish(true);
        }
        if for_us > DYING_LIMIT_US {
            tracing::error!(cell = %self.id, left, reaped, "a cell cannot be killed");
            return self.finish(false);
        }
        if let Err(errno) = self.round.start((for_us / 4).clamp(DYING_ROUND_US, DYING_ROUND_MAX_US)) {
            tracing::error!(cell = %self.id, error = %errno, "cannot go on watching a dying cell");
            return self.finish(false);
        }
        Step::Wait
    }

    fn finish(&mut self, tree_gone: bool) -> Step {
        let counters = self.built.group.counters();
        let over = match self.fault.take() {
            Some(fault) => Over::Refused(fault, tree_gone),
            None if self.go_us == 0 => Over::Refused(self.vanished(&counters), tree_gone),
            None => Over::Ended(self.end_report(&counters, tree_gone)),
        };
        Step::Over(over)
    }

    fn vanished(&self, counters: &Counters) -> LaunchFault {
        let (errno, detail) = match counters.oom_kills {
            Some(kills) if kills > 0 => (
                nix::libc::ENOMEM,
                format!("killed for memory while it was set up: {} bytes are too few", self.limits.memory_bytes),
            ),
            Some(_) | None => (nix::libc::ECHILD, "the cell's init ended without a word".to_owned()),
        };
        LaunchFault::Stage { stage: Stage::Supervise.as_str().to_owned(), errno, detail }
    }

    fn end_report(&self, counters: &Counters, tree_gone: bool) -> EndReport {
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before.unwrap_or(0)));
        let ended_us = self.main.map_or_else(monotonic_us, |(_, at_us)| at_us);
        let wall_us = ended_us.saturating_sub(self.go_us);
        let cpu = counters.cpu.map(|now| now.since(self.baseline.cpu.unwrap_or_default()).split());
        let usage = PlanUsage {
            wall_us: Some(wall_us),
            cpu_user_us: cpu.map(|(user, _)| user),
            cpu_system_us: cpu.map(|(_, system)| system),
            throttled_us: since(counters.throttled_us, self.baseline.throttled_us),
            memory_peak_bytes: counters.memory_peak_bytes,
            pids_peak: counters.pids_peak,
            oom_kills: since(counters.oom_kills, self.baseline.oom_kills),
            forks_refused: since(counters.forks_refused, self.baseline.forks_refused),
            left_running_killed: self.left_running,
        };
        let evidence = Evidence {
            own_kill: self.own_kill,
            main: self.main.map(|(end, _)| end),
            exec_failed: self.exec_failed,
            past_wall: self.is_on(ControlId::WallClock) && wall_us >= self.limits.wall_ms.saturating_mul(1000),
            past_cpu: self.is_on(ControlId::CpuClock)
                && cpu.is_some_and(|(user, system)| user.saturating_add(system) >= self.cpu_limit_us()),
            oom_kills: usage.oom_kills.unwrap_or(0),
            forks_refused: usage.forks_refused.unwrap_or(0),
        };
        let cause = decide(&evidence);
        let limits_hit = self.limits_hit(&evidence, &cause);
        // With the machine's own tree of groups in sight a process can have left, and no namespace takes it along.
        let is_held = self.is_on(ControlId::NamespacePid) || self.is_on(ControlId::NamespaceMount);
        EndReport { cause, limits_hit, usage, tree_gone: tree_gone && is_held }
    }

    /// Limits that were reached, each with where that was seen.
    fn limits_hit(&self, evidence: &Evidence, cause: &EndCause) -> Vec<(String, String)> {
        let seen = self.built.group.witnesses();
        let mut hits = Vec::new();
        let mut hit = |limit: &str, witness: String| hits.push((limit.to_owned(), witness));
        if *cause == EndCause::WallLimit {
            hit("wall_ms", "timerfd of CLOCK_MONOTONIC".to_owned());
        }
        if *cause == EndCause::CpuLimit || evidence.past_cpu {
            hit("cpu_ms", seen.cpu.to_owned());
        }
        if evidence.oom_kills > 0 {
            hit("memory_bytes", format!("{} {}", seen.oom_kills, evidence.oom_kills));
        }
        if evidence.forks_refused > 0 {
            hit("pids", format!("{} {}", seen.forks_refused, evidence.forks_refused));
        }
        if evidence.main == Some(MainEnd::Signaled(nix::libc::SIGXFSZ)) {
            hit("file_bytes", "the main process ended by SIGXFSZ".to_owned());
        }
        // Of a scratch without a quota statfs says 0 (tmpfs(5)), which is not full.
        if let Some((blocks, inodes)) = self.scratch_free.filter(|_| self.is_on(ControlId::TmpQuota)) {
            if blocks == 0 {
                hit("tmp_bytes", "statfs of /tmp at the end: no block free".to_owned());
            }
            if inodes == 0 {
                hit("tmp_inodes", "statfs of /tmp at the end: no inode free".to_owned());
            }
        }
        hits
    }
}
