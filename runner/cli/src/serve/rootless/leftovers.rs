//! Whether anything of an earlier life still runs, told by /proc from who owns the processes. Looked at before this process
//! enters a user namespace, in which ids have other names.

use std::time::{Duration, Instant};

use super::subids::Range;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(10);
/// How long cells whose launcher died may take to be gone: each is killed with it, at once (PR_SET_PDEATHSIG).
const PATIENCE: Duration = Duration::from_secs(2);

/// Waits until no process has one of these user ids. False if there still is one, or if not all processes can be seen.
pub(super) fn are_gone(users: Range, patience: Duration) -> bool {
    let is_one = |process: &str| {
        let has = |id: &u32| id.checked_sub(users.first).is_some_and(|offset| offset < users.count);
        user_ids(process).iter().any(has)
    };
    wait_for_none(is_one, patience)
}

/// Waits until no cell runs under the user's own id. Of which instance one is cannot be told.
pub(super) fn are_own_gone() -> bool {
    let own = rustix::process::geteuid().as_raw();
    let map = ["65534", &own.to_string(), "1"].map(str::to_owned);
    let is_cell = |process: &str| {
        let text = std::fs::read_to_string(format!("/proc/{process}/uid_map")).unwrap_or_default();
        text.split_whitespace().eq(map.iter().map(String::as_str))
    };
    wait_for_none(|process| user_ids(process).contains(&own) && is_cell(process), PATIENCE)
}

fn wait_for_none(is_one: impl Fn(&str) -> bool, patience: Duration) -> bool {
    let begin = Instant::now();
    loop {
        let Some(processes) = processes() else { return false };
        if !processes.iter().any(|process| is_one(process)) {
            return true;
        }
        if begin.elapsed() > patience {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Every process; none if /proc is mounted such that others' are hidden (hidepid in proc(5)).
fn processes() -> Option<Vec<String>> {
    std::fs::metadata("/proc/1/status").ok()?;
    let entries = std::fs::read_dir("/proc").ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    Some(names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())).collect())
}

/// Real, effective, saved and file-system user id. Not the owner of the folder, which is root for what is not dumpable.
fn user_ids(process: &str) -> Vec<u32> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default();
    line.split_whitespace().filter_map(|id| id.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_one_of_the_ids_is_seen() {
        let own = rustix::process::geteuid().as_raw();
        assert!(!are_gone(Range { first: own, count: 1 }, Duration::ZERO));
        assert!(are_gone(Range { first: 3_100_000_000, count: 2048 }, Duration::ZERO));
        assert!(user_ids(&std::process::id().to_string()).contains(&own));
    }
}
