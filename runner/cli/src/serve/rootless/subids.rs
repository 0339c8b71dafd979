//! The user's ranges of subordinate ids (subuid(5), subgid(5)).

use nix::unistd::{Uid, User};
use toolcell_doctor::remedies::NAMELESS;

/// One range of ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) first: u32,
    pub(super) count: u32,
}

/// User ids and group ids that may be given to cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SubIds {
    pub(super) users: Range,
    pub(super) groups: Range,
}

/// Those of the user who runs this; or why there are none.
pub(super) fn of_process() -> Result<SubIds, String> {
    let uid = Uid::effective();
    let name = match User::from_uid(uid) {
        Ok(Some(user)) => user.name,
        Ok(None) | Err(_) => return Err(format!("user {uid} {NAMELESS}, by which newuidmap knows users")),
    };
    let range = |path: &str| {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?;
        largest(&text, &name, uid.as_raw()).ok_or_else(|| format!("{path} has no range for {name}"))
    };
    Ok(SubIds { users: range("/etc/subuid")?, groups: range("/etc/subgid")? })
}

/// The largest range of this user; lines begin with a name or a number. Two ids make one cell.
fn largest(text: &str, name: &str, uid: u32) -> Option<Range> {
    let range = |line: &str| {
        let [who, first, count] = <[&str; 3]>::try_from(line.trim().split(':').collect::<Vec<_>>()).ok()?;
        let is_ours = who == name || who.parse() == Ok(uid);
        let range = Range { first: first.parse().ok()?, count: count.parse().ok()? };
        let is_whole = range.first > 0 && range.count >= 2 && range.first.checked_add(range.count).is_some();
        (is_ours && is_whole).then_some(range)
    };
    text.lines().filter_map(range).max_by_key(|range| range.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_s_largest_range_is_taken_by_name_or_number() {
        let text = "other:100000:65536\nu:300000:10\n1000:400000:65536\nu:bad:7\nu:1:2:3\n\n";
        let range = |first, count| Some(Range { first, count });
        assert_eq!(largest(text, "u", 1000), range(400_000, 65_536));
        assert_eq!(largest(text, "u", 1001), range(300_000, 10));
        assert_eq!(largest(text, "v", 7), None);
    }

    #[test]
    fn a_range_that_is_none_is_not_taken() {
        for line in ["u:0:65536", "u:100000:1", "u:100000:0", "u:4294967295:2", "u:-1:5", "u:100000"] {
            assert_eq!(largest(line, "u", 1000), None, "{line}");
        }
    }
}
