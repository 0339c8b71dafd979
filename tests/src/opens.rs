//! `tests/probes/opens.toml`: what may get through with one control off, each with the kernel's reason, and how far that is
//! from what `toolcell ablate --json` has found.
//!
//! The table is a bound: nothing may open that does not stand in it, as somebody has to have thought about it. What stands
//! in it and does not open is told as well, so that it stays no longer than it is true.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::Value;
use toolcell_types::ControlId;

/// The table: control → probe → reason.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Opens(BTreeMap<String, BTreeMap<String, String>>);

/// How a run differs from the table; nothing of it is a run that fits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Opened, and not in the table: `control: probe, what it reached`.
    pub unexpected: Vec<String>,
    /// In the table, its control and its probe were run, and it did not open: `control: probe`.
    pub closed: Vec<String>,
}

impl Opens {
    /// Reads the table.
    ///
    /// # Errors
    /// In words: no TOML, a control that there is not, a probe that is no file of `probes`, an empty reason.
    pub fn read(text: &str, probes: &BTreeSet<String>) -> Result<Self, String> {
        let opens: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        for (control, rows) in &opens.0 {
            if ControlId::parse(control).is_none() {
                return Err(format!("there is no control {control}"));
            }
            for (probe, reason) in rows {
                if !probes.contains(probe) {
                    return Err(format!("{control}: there is no probe {probe}"));
                }
                if reason.trim().len() < 10 {
                    return Err(format!("{control}: {probe} has no reason"));
                }
            }
        }
        Ok(opens)
    }

    /// The table as SECURITY.md shows it: a row for each control, with what gets out without it.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = "| without | gets out, with all other controls on |\n|---|---|\n".to_owned();
        for id in ControlId::ALL {
            let names: Vec<String> =
                self.0.get(id.as_str()).into_iter().flat_map(BTreeMap::keys).map(|name| format!("`{name}`")).collect();
            let opens = if names.is_empty() { "nothing".to_owned() } else { names.join(" ") };
            text += &format!("| `{id}` | {opens} |\n");
        }
        text
    }

    /// Compares it with a report of `toolcell ablate --json`. Controls that were not switched off in it, and probes that
    /// were not run or whose kernel has not what they try, say nothing.
    ///
    /// # Errors
    /// In words: it is no such report.
    pub fn compare(&self, report: &Value) -> Result<Difference, String> {
        let list =
            |value: &Value, name: &str| value[name].as_array().cloned().ok_or(format!("the report has no {name}"));
        let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned).ok_or(format!("no {name}"));
        let mut ran = BTreeSet::new();
        for probe in list(report, "probes")? {
            if probe["baseline"]["outcome"] == "stopped" {
                let _is_new = ran.insert(text(&probe, "id")?);
            }
        }
        let mut difference = Difference::default();
        let none = BTreeMap::new();
        for row in list(report, "controls")? {
            let control = text(&row, "id")?;
            if row["is_unavailable"] == true || !row["not_possible"].is_null() {
                continue;
            }
            let expected = self.0.get(&control).unwrap_or(&none);
            let mut opened = BTreeSet::new();
            for through in list(&row, "opens")? {
                let probe = text(&through, "probe")?;
                if !expected.contains_key(&probe) {
                    difference.unexpected.push(format!("{control}: {probe}, {}", text(&through, "what")?));
                }
                let _is_new = opened.insert(probe);
            }
            let closed = expected.keys().filter(|probe| ran.contains(*probe) && !opened.contains(*probe));
            difference.closed.extend(closed.map(|probe| format!("{control}: {probe}")));
        }
        Ok(difference)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TABLE: &str = "[seccomp]\n\"io-uring.c\" = \"no namespace holds io_uring\"\n\
        \"key-add.c\" = \"keyrings are of a user namespace, and it makes its own\"\n\
        [\"namespace.mount\"]\n\"docker-socket.sh\" = \"Landlock does not know connect() to a path before ABI 9\"\n";

    fn probes() -> BTreeSet<String> {
        ["io-uring.c", "key-add.c", "docker-socket.sh", "other.py"].map(str::to_owned).into()
    }

    fn report(opens: &[&str]) -> Value {
        let opens: Vec<Value> = opens.iter().map(|probe| json!({"probe": probe, "class": "x", "what": "it"})).collect();
        let probe = |id: &str, outcome: &str| json!({"id": id, "baseline": {"outcome": outcome, "how": "x"}});
        json!({
            "probes": [
                probe("io-uring.c", "stopped"), probe("key-add.c", "not_applicable"), probe("docker-socket.sh", "stopped"),
            ],
            "controls": [
                {"id": "seccomp", "is_unavailable": false, "not_possible": null, "opens": opens},
                {"id": "namespace.mount", "is_unavailable": false, "not_possible": "x", "opens": []},
            ],
        })
    }

    #[test]
    fn every_control_has_a_row() {
        let table = Opens::read(TABLE, &probes()).unwrap().to_markdown();
        assert_eq!(table.lines().count(), 2 + ControlId::ALL.len());
        assert!(table.contains("| `seccomp` | `io-uring.c` `key-add.c` |\n| `identity.unprivileged` | nothing |\n"));
    }

    #[test]
    fn a_run_that_fits_differs_in_nothing() {
        let table = Opens::read(TABLE, &probes()).unwrap();
        assert_eq!(table.compare(&report(&["io-uring.c"])), Ok(Difference::default()));
    }

    #[test]
    fn what_opens_and_is_not_in_the_table_is_named_and_what_does_not_open_any_more_too() {
        let table = Opens::read(TABLE, &probes()).unwrap();
        let difference = table.compare(&report(&["other.py"])).unwrap();
        assert_eq!(difference.unexpected, ["seccomp: other.py, it"]);
        // key-add.c is not applicable there, and the mount namespace could not be switched off.
        assert_eq!(difference.closed, ["seccomp: io-uring.c"]);
        assert!(table.compare(&json!({"probes": []})).is_err());
    }

    #[test]
    fn a_table_names_what_there_is_with_reasons() {
        let error = |from: &str, to: &str| Opens::read(&TABLE.replace(from, to), &probes()).unwrap_err();
        assert_eq!(error("[seccomp]", "[seccom]"), "there is no control seccom");
        assert_eq!(error("io-uring.c", "io-ring.c"), "seccomp: there is no probe io-ring.c");
        assert_eq!(error("no namespace holds io_uring", "why"), "seccomp: io-uring.c has no reason");
        assert!(Opens::read("[seccomp", &probes()).is_err());
    }
}
