//! The refusal of a call that needs controls which this instance is known to lack.

use std::collections::BTreeSet;

use toolcell_types::{ControlId, ErrorCode, Problem};

use crate::UnavailableControl;

/// Names every required control that is missing and was not accepted, why it is, what would give it, and the one flag
/// under which the call would run without. None if nothing is missing.
pub(super) fn refusal(unavailable: &[UnavailableControl], accepted: &[ControlId]) -> Option<Problem> {
    let is_missing = |one: &&UnavailableControl| one.id.is_required_by_default() && !accepted.contains(&one.id);
    let missing: Vec<&UnavailableControl> = unavailable.iter().filter(is_missing).collect();
    if missing.is_empty() {
        return None;
    }
    let reasons = together(&missing, |one| &one.detail);
    let named: Vec<String> = reasons.iter().map(|(ids, why)| format!("{} ({why})", ids.join(", "))).collect();
    let detail = format!("required controls cannot be enforced here: {}", named.join("; "));
    // What was accepted before stays so: the flag replaces the list, it does not add to it.
    let all: BTreeSet<ControlId> = missing.iter().map(|one| one.id).chain(accepted.iter().copied()).collect();
    let flag: Vec<&str> = all.into_iter().map(ControlId::as_str).collect();
    let remedies: Vec<&str> = together(&missing, |one| &one.remedy).into_iter().map(|(_, remedy)| remedy).collect();
    let remedy = format!(
        "{}; or run without them, which every receipt will say, by this option of `toolcell run`, `call` or `serve`: \
         --accept-unavailable {}",
        remedies.join("; "),
        flag.join(",")
    );
    Some(Problem::new(ErrorCode::ControlUnavailable, detail, remedy))
}

/// Controls of the same text side by side, in their order.
fn together<'a>(
    missing: &[&'a UnavailableControl],
    text: impl Fn(&'a UnavailableControl) -> &'a str,
) -> Vec<(Vec<&'static str>, &'a str)> {
    let mut groups: Vec<(Vec<&'static str>, &'a str)> = Vec::new();
    for one in missing {
        match groups.iter_mut().find(|(_, known)| *known == text(one)) {
            Some((ids, _)) => ids.push(one.id.as_str()),
            None => groups.push((vec![one.id.as_str()], text(one))),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(id: ControlId, why: &str) -> UnavailableControl {
        UnavailableControl { id, detail: why.to_owned(), remedy: format!("mend {why}") }
    }

    #[test]
    fn all_missing_controls_are_named_at_once_with_the_one_flag() {
        let unavailable = [
            lacks(ControlId::CgroupMemory, "no group"),
            lacks(ControlId::CpuClock, "no group"),
            lacks(ControlId::IdentityUnprivileged, "no ids"),
            lacks(ControlId::LandlockNet, "old kernel"),
        ];
        let problem = refusal(&unavailable, &[ControlId::Seccomp]).unwrap();
        assert_eq!(problem.code, ErrorCode::ControlUnavailable);
        assert_eq!(
            problem.detail,
            "required controls cannot be enforced here: cgroup.memory, cpu-clock (no group); identity.unprivileged (no ids)"
        );
        assert!(problem.remedy.starts_with("mend no group; mend no ids; or"), "{}", problem.remedy);
        let flag = problem.remedy.split("--accept-unavailable ").nth(1).unwrap();
        let mut named: Vec<&str> = flag.split(',').collect();
        named.sort_unstable();
        assert_eq!(named, ["cgroup.memory", "cpu-clock", "identity.unprivileged", "seccomp"]);
    }

    #[test]
    fn what_was_accepted_or_is_a_second_line_is_no_refusal() {
        let unavailable = [lacks(ControlId::CgroupMemory, "x"), lacks(ControlId::LandlockScope, "y")];
        assert!(refusal(&unavailable, &[]).is_some());
        assert!(refusal(&unavailable, &[ControlId::CgroupMemory]).is_none());
    }
}
