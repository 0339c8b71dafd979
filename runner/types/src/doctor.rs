//! What `toolcell doctor` and `GET /v1/doctor` tell, and what the survey behind them passes on.
//!
//! A survey builds cells exactly as for a call, reads every control back, and runs in them a program of our own that tries
//! for each control what must work and what must fail. Its steps are [`SurveyAct`]; the report is [`DoctorReport`].

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ControlId, Limits, Verification};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// What a survey's program does in its cell; each has a cell of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SurveyAct {
    /// Tries both sides of every control that can be tried from inside, and ends by itself.
    Probe,
    /// Sleeps for longer than its wall clock allows.
    Sleep,
    /// Computes for longer than its processor clock allows, and more at once than its share.
    Spin,
    /// Writes more than it may.
    Flood,
}

impl SurveyAct {
    /// All, in the order of a survey.
    pub const ALL: [Self; 4] = [Self::Probe, Self::Sleep, Self::Spin, Self::Flood];

    /// The word on the program's command line.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Sleep => "sleep",
            Self::Spin => "spin",
            Self::Flood => "flood",
        }
    }

    /// Limits of its cell: nobody asks for others. Small, so that reaching them is quick.
    #[must_use]
    pub fn limits(self) -> Limits {
        let all = Limits {
            wall_ms: 60_000,
            cpu_ms: 30_000,
            memory_bytes: 64 * MIB,
            pids: 16,
            cpu_millis: 1000,
            tmp_bytes: MIB,
            tmp_inodes: 64,
            output_keep_bytes: MIB,
            output_limit_bytes: 4 * MIB,
            file_bytes: 8 * MIB,
            open_files: 32,
        };
        match self {
            Self::Probe => all,
            Self::Sleep => Limits { wall_ms: 100, ..all },
            // A tenth of a processor for four of its periods of 100 ms: the kernel has to throttle it, unless the machine is
            // so busy that it does not get even that.
            Self::Spin => Limits { cpu_ms: 40, cpu_millis: 100, ..all },
            Self::Flood => Limits { output_keep_bytes: 4 * KIB, output_limit_bytes: 64 * KIB, ..all },
        }
    }
}

/// What is outside of a cell, for a probe that must not reach it. The launcher has seen that each can be reached from
/// where it stands; what it could not make is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outer {
    /// Name of an abstract socket that somebody listens at.
    pub socket: Option<String>,
    /// Key of a System V message queue that everybody may use.
    pub queue: Option<i32>,
    /// A path of the host's.
    pub path: Option<String>,
    /// A process of the host's.
    pub pid: i32,
    /// The host's name.
    pub host_name: String,
}

/// One side of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Side {
    /// What was done, or would have to be.
    pub act: String,
    /// What came of it: an errno, a figure; or why it was not tried.
    pub got: String,
    /// Whether that is as it must be. None: it was not tried.
    pub holds: Option<bool>,
}

impl Side {
    /// It was tried.
    #[must_use]
    pub fn tried(act: impl Into<String>, got: impl Into<String>, holds: bool) -> Self {
        Self { act: act.into(), got: got.into(), holds: Some(holds) }
    }

    /// It was not tried, and why.
    #[must_use]
    pub fn not_tried(act: impl Into<String>, why: impl Into<String>) -> Self {
        Self { act: act.into(), got: why.into(), holds: None }
    }
}

/// What the program in the cell found about one control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Which control.
    pub id: ControlId,
    /// Something that must work; else what fails proves nothing.
    pub allowed: Side,
    /// Something that must fail.
    pub forbidden: Side,
}

/// What the host is like, as far as it matters to cells. Read by a process that sees it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostFacts {
    /// `machine` of uname(2).
    pub machine: String,
    /// `release` of uname(2).
    pub release: String,
    /// `version` of uname(2).
    pub version: String,
    /// Settings by their sysctl name; one that this kernel does not have is left out.
    pub settings: Vec<(String, String)>,
    /// Security modules in force (/sys/kernel/security/lsm), if that can be read.
    pub lsm: Option<String>,
    /// What tells that this is a container, if anything does.
    pub container: Option<String>,
    /// Whether the memory controller is in version 1 of cgroups.
    pub is_cgroup_v1: bool,
    /// Whether AppArmor is on.
    pub has_apparmor: bool,
    /// Whether a filter of system calls is on whoever looked.
    pub is_filtered: bool,
    /// Bytes of swap; none if that cannot be read.
    pub swap_bytes: Option<u64>,
    /// Whether the memory groups count swap; none where there is no such group.
    pub is_swap_counted: Option<bool>,
}

impl HostFacts {
    /// A setting by its sysctl name.
    #[must_use]
    pub fn setting(&self, name: &str) -> Option<&str> {
        self.settings.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Whether a control can be enforced here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckState {
    /// It was in force in a cell, and nothing that was tried got around it.
    Enforced,
    /// It was not.
    Unavailable,
    /// No cell came so far that it could be told.
    Unknown,
}

/// How that was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// What must work worked, and what must fail failed.
    TwoSided,
    /// Only read back from the kernel; why nothing was tried stands in the sides.
    ReadBack,
    /// Not at all.
    None,
}

/// One control.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlCheck {
    /// Which.
    pub id: ControlId,
    /// Whether it can be enforced here.
    pub state: CheckState,
    /// Whether calls are refused without it: it is not accepted as missing, and no second line.
    pub required: bool,
    /// How that was proven.
    pub proof: Proof,
    /// How the launcher saw it, as it stands in receipts; none if no cell was read back.
    pub verification: Option<Verification>,
    /// What it was asked for.
    pub requested: Value,
    /// What the launcher saw.
    pub observed: Value,
    /// What must work.
    pub allowed: Side,
    /// What must fail.
    pub forbidden: Side,
    /// Why it is not enforced.
    pub reason: Option<String>,
    /// The one thing to do about it.
    pub remedy: Option<String>,
}

/// A setting of the host that takes away a second line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostWarning {
    /// Its name, like `kernel.io_uring_disabled`.
    pub setting: String,
    /// What it is now.
    pub value: String,
    /// What it takes away.
    pub removes: String,
    /// What stands in its place, in a cell.
    pub instead: String,
    /// The one command.
    pub remedy: String,
}

/// Whether `serve` starts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServeCheck {
    /// Whether it did, with the given flags but in a place of its own, and whether the given place is free.
    pub starts: bool,
    /// The process of the toolcell that has this state and socket already and of which calls run; then no other has to start.
    #[serde(default)]
    pub served_by: Option<i32>,
    /// Why it does not start, or why calls do not run although it does.
    pub reason: Option<String>,
    /// The one thing to do.
    pub remedy: Option<String>,
}

/// The whole report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DoctorReport {
    /// Version of the program.
    pub version: String,
    /// Machine and kernel, like `x86_64` and `6.1.0-40-cloud-amd64`.
    pub architecture: String,
    /// The kernel's release.
    pub kernel: String,
    /// Whether the instance is root's.
    pub is_root: bool,
    /// What tells that this is a container, if anything does.
    pub container: Option<String>,
    /// `serve` starts, or serves already, and no required control is missing: calls run.
    pub ready: bool,
    /// Whether `serve` starts.
    pub serve: ServeCheck,
    /// Controls that the operator accepted as missing.
    pub accept_unavailable: Vec<ControlId>,
    /// What `--accept-unavailable` would have to name, all of it, for calls to run without what is missing; empty if nothing
    /// is missing, or if that would be no help.
    #[serde(default)]
    pub go_without: Vec<ControlId>,
    /// All 29, in the order of every report.
    pub controls: Vec<ControlCheck>,
    /// Settings of the host that take away second lines.
    pub warnings: Vec<HostWarning>,
}

impl DoctorReport {
    /// Required controls that are not enforced.
    pub fn missing(&self) -> impl Iterator<Item = &ControlCheck> {
        self.controls.iter().filter(|control| control.required && control.state != CheckState::Enforced)
    }

    /// Controls that read back as in force in a cell while what was tried in it says otherwise. A call is not refused for
    /// them, as it is not tried in every call.
    pub fn doubtful(&self) -> impl Iterator<Item = &ControlCheck> {
        self.missing().filter(|one| one.allowed.holds == Some(false) || one.forbidden.holds == Some(false))
    }

    /// If no cell could be tried, accepting what is unknown would be no help; nor is it where what was tried got around it.
    fn could_go_without(&self) -> Vec<ControlId> {
        let is_known = self.missing().all(|control| control.state == CheckState::Unavailable);
        let missing: Vec<ControlId> = self.missing().map(|control| control.id).collect();
        if missing.is_empty() || !is_known || self.doubtful().next().is_some() {
            return Vec::new();
        }
        missing.into_iter().chain(self.accept_unavailable.iter().copied()).collect()
    }

    /// Sets by the rest: [`Self::ready`], [`Self::go_without`], and why a `serve` that starts runs no calls.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.go_without = self.could_go_without();
        let missing: Vec<&str> = self.missing().map(|control| control.id.as_str()).collect();
        if self.serve.starts && !missing.is_empty() {
            let reason = format!("it starts, and calls do not run, as these are missing: {}", missing.join(", "));
            let remedy = "see what is to be done about each of them, or go without as the report says, if it does";
            (self.serve.reason, self.serve.remedy) = (Some(reason), Some(remedy.to_owned()));
        }
        self.ready = (self.serve.starts || self.serve.served_by.is_some())
            && self.controls.len() == ControlId::ALL.len()
            && self.missing().next().is_none();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shape that programs rely on: a change here is one for them.
    #[test]
    fn a_report_has_this_shape() {
        let json = serde_json::json!({
            "version": "0.1.0", "architecture": "x86_64", "kernel": "6.1.0", "is_root": true, "container": null,
            "ready": false, "serve": { "starts": false, "served_by": null, "reason": "in use", "remedy": "end it" },
            "accept_unavailable": ["landlock.net"], "go_without": [],
            "controls": [{
                "id": "seccomp", "state": "enforced", "required": true, "proof": "two-sided",
                "verification": "read-back", "requested": { "mode": 2 }, "observed": { "mode": 2 },
                "allowed": { "act": "getpid", "got": "7", "holds": true },
                "forbidden": { "act": "unshare(0)", "got": "not tried", "holds": null },
                "reason": null, "remedy": null,
            }],
            "warnings": [{
                "setting": "kernel.core_pattern", "value": "|/x", "removes": "a", "instead": "b", "remedy": "c",
            }],
        });
        let report: DoctorReport = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&report).unwrap(), json);
    }

    #[test]
    fn ready_means_that_serve_starts_and_that_all_required_controls_are_there() {
        let check = |id: ControlId, state| ControlCheck {
            id,
            state,
            required: id.is_required_by_default(),
            proof: Proof::None,
            verification: None,
            requested: Value::Null,
            observed: Value::Null,
            allowed: Side::not_tried("", ""),
            forbidden: Side::not_tried("", ""),
            reason: None,
            remedy: None,
        };
        let judged = |starts, missing: Option<ControlId>, state| {
            let of = |id| check(id, if Some(id) == missing { state } else { CheckState::Enforced });
            let report = DoctorReport {
                version: String::new(),
                architecture: String::new(),
                kernel: String::new(),
                is_root: true,
                container: None,
                ready: false,
                serve: ServeCheck { starts, ..ServeCheck::default() },
                accept_unavailable: vec![ControlId::LandlockNet],
                go_without: Vec::new(),
                controls: ControlId::ALL.into_iter().map(of).collect(),
                warnings: Vec::new(),
            };
            report.judged()
        };
        let lacks = judged(true, Some(ControlId::Seccomp), CheckState::Unavailable);
        assert_eq!(lacks.go_without, [ControlId::Seccomp, ControlId::LandlockNet]);
        assert!(lacks.serve.starts && lacks.serve.reason.unwrap().ends_with("are missing: seccomp"));
        let fine = judged(true, None, CheckState::Enforced);
        assert!(fine.go_without.is_empty() && fine.serve.reason.is_none());
        assert!(judged(true, Some(ControlId::Seccomp), CheckState::Unknown).go_without.is_empty());
        let ready = |starts, missing, state| judged(starts, missing, state).ready;
        assert!(ready(true, None, CheckState::Enforced));
        assert!(ready(true, Some(ControlId::LandlockNet), CheckState::Unavailable), "a second line");
        assert!(!ready(false, None, CheckState::Enforced));
        assert!(!ready(true, Some(ControlId::Seccomp), CheckState::Unavailable));
        assert!(!ready(true, Some(ControlId::Seccomp), CheckState::Unknown));
    }

    #[test]
    fn a_survey_s_limits_are_ones_that_a_launcher_takes() {
        for act in SurveyAct::ALL {
            act.limits().validate().unwrap();
            assert_eq!(serde_json::to_value(act).unwrap(), act.as_str());
        }
    }
}
