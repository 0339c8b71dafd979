//! The shape of the workspace: who may import whom, where `unsafe` may stand, and what may stand nowhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcell_tests::{command, run, workspace_root};

/// Crate and the crates of this workspace that it may import.
const TABLE: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("sys", &[]),
    ("confinement", &["sys"]),
    ("policy", &["types"]),
    ("receipts", &["types"]),
    ("ledger", &["types"]),
    ("images", &["types"]),
    ("doctor", &["types", "sys"]),
    ("cell", &["types", "sys", "doctor"]),
    ("signer", &["types", "sys", "confinement", "receipts"]),
    ("client", &["types"]),
    ("lab", &["types", "client", "receipts"]),
    ("daemon", &["types", "sys", "confinement", "policy", "receipts", "ledger", "images", "doctor"]),
    (
        "cli",
        &[
            "types",
            "sys",
            "confinement",
            "policy",
            "receipts",
            "ledger",
            "images",
            "doctor",
            "cell",
            "signer",
            "client",
            "lab",
            "daemon",
        ],
    ),
    ("tests", &["types"]),
];

/// Crates whose whole tree must do without these.
const WITHOUT: &[(&str, &[&str])] = &[
    ("types", &["tokio", "hyper", "rusqlite"]),
    ("sys", &["tokio", "hyper", "serde_json"]),
    ("confinement", &["tokio", "hyper", "rusqlite"]),
    ("policy", &["tokio", "hyper", "reqwest", "rusqlite"]),
    ("receipts", &["tokio", "hyper", "rusqlite"]),
    ("ledger", &["hyper", "axum"]),
    ("images", &["tokio", "hyper"]),
    ("doctor", &["tokio", "hyper", "rusqlite"]),
    ("cell", &["tokio", "hyper", "rusqlite", "ed25519-dalek", "jsonschema"]),
    ("signer", &["tokio", "hyper", "rusqlite"]),
];

fn metadata() -> Value {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let manifest = workspace_root().join("Cargo.toml");
    // Without a platform it would ask for the crates of all others, which no build has brought here.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut command = command(cargo);
    command.args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", &platform]);
    command.arg("--manifest-path").arg(manifest);
    run(&mut command).expect_code(0).json()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn crates_import_only_what_the_table_allows() {
    let metadata = metadata();
    let ours: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .iter()
        .filter_map(|package| Some((text(&package["name"]).strip_prefix("toolcell-")?, package)))
        .collect();
    let names: BTreeSet<&str> = ours.keys().copied().collect();
    assert_eq!(names, TABLE.iter().map(|(name, _)| *name).collect(), "every crate stands in the table");
    for (name, allowed) in TABLE {
        let imports = list(&ours[name]["dependencies"]).iter();
        let internal: Vec<&str> =
            imports.filter_map(|import| text(&import["name"]).strip_prefix("toolcell-")).collect();
        for import in internal {
            assert!(allowed.contains(&import), "{name} must not import {import}");
        }
    }
}

#[test]
fn the_privileged_and_the_pure_crates_bring_in_no_runtime_and_no_network() {
    let metadata = metadata();
    let name_of: BTreeMap<&str, &str> =
        list(&metadata["packages"]).iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect();
    let imports: BTreeMap<&str, Vec<&str>> = list(&metadata["resolve"]["nodes"])
        .iter()
        .map(|node| {
            let normal = |import: &&Value| list(&import["dep_kinds"]).iter().any(|kind| kind["kind"].is_null());
            let ids = list(&node["deps"]).iter().filter(normal).map(|import| text(&import["pkg"])).collect();
            (text(&node["id"]), ids)
        })
        .collect();
    for (name, without) in WITHOUT {
        let full = format!("toolcell-{name}");
        let start = name_of.iter().find(|(_, found)| **found == full).map(|(id, _)| *id).unwrap();
        let (mut seen, mut next) = (BTreeSet::new(), vec![start]);
        while let Some(id) = next.pop() {
            if seen.insert(id) {
                next.extend(imports[id].iter().copied());
            }
        }
        let names: BTreeSet<&str> = seen.into_iter().map(|id| name_of[id]).collect();
        for other in *without {
            assert!(!names.contains(other), "{name} brings in {other}");
        }
    }
}

fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut next: Vec<PathBuf> =
        ["runner", "policy", "images", "tests"].iter().map(|dir| workspace_root().join(dir)).collect();
    while let Some(dir) = next.pop() {
        for entry in std::fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                next.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 40, "the search finds the sources");
    found
}

/// Lines of code, without comments and without what stands between quotation marks.
fn code_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let bare = |line: &str| line.split('"').step_by(2).collect::<Vec<_>>().join("\"\"");
    text.lines().map(bare).map(|line| line.split("//").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn unsafe_stands_in_sys_alone() {
    let mut in_sys = 0;
    for path in sources() {
        let is_sys = path.starts_with(workspace_root().join("runner/sys"));
        for line in code_lines(&path) {
            let word = line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "unsafe");
            assert!(is_sys || !word, "{}: {line}", path.display());
            in_sys += usize::from(is_sys && word);
        }
    }
    assert!(in_sys > 0, "the control: the search finds it where it is");
}

/// The number of a process is given to another one, sooner or later; a descriptor of it never leads to another.
#[test]
fn the_parts_signal_processes_by_descriptor_only() {
    const BY_NUMBER: [&str; 6] = ["kill_process", "kill_process_group", "killpg", "tgkill", "tkill", "sigqueue"];
    let mut by_descriptor = 0;
    for path in sources() {
        // The command line ends what it started itself; bench is no part of an instance.
        let of_part = ["cell", "sys", "daemon", "signer"].iter().any(|part| {
            path.starts_with(workspace_root().join("runner").join(part)) && !path.to_string_lossy().contains("tests")
        });
        for line in code_lines(&path).into_iter().filter(|_| of_part) {
            let words: Vec<&str> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let is_by_number = words.iter().any(|word| BY_NUMBER.contains(word)) || line.contains("signal::kill");
            assert!(!is_by_number, "{}: {line}", path.display());
            by_descriptor += usize::from(words.contains(&"pidfd_send_signal"));
        }
    }
    assert!(by_descriptor > 4, "the control: the search finds what it looks through");
}

/// A clock that an administrator can set is for time stamps. Durations and limits come from others.
#[test]
fn the_time_of_day_is_read_in_one_place() {
    const NAMES: [&str; 8] =
        ["Realtime", "RealtimeAlarm", "SystemTime", "now_utc", "now_local", "gettimeofday", "CLOCK_REALTIME", "Utc"];
    let mut found = Vec::new();
    for path in sources() {
        if path.starts_with(workspace_root().join("tests")) {
            continue;
        }
        for line in code_lines(&path) {
            if line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| NAMES.contains(&word)) {
                found.push((path.clone(), line));
            }
        }
    }
    let [(path, line)] = found.as_slice() else { panic!("one place: {found:#?}") };
    assert!(path.ends_with("runner/daemon/src/clock.rs") && line.contains("ClockId::Realtime"), "{line}");
}

#[test]
fn every_crate_takes_the_workspace_s_lints() {
    let metadata = metadata();
    for package in list(&metadata["packages"]) {
        if text(&package["name"]).starts_with("toolcell-") {
            let manifest = std::fs::read_to_string(text(&package["manifest_path"])).unwrap();
            assert!(manifest.contains("[lints]\nworkspace = true"), "{}", text(&package["name"]));
        }
    }
}

#[test]
fn the_pages_that_a_newcomer_needs_are_there_and_their_links_lead_somewhere() {
    let root = workspace_root();
    for name in ["README.md", "ARCHITECTURE.md", "SECURITY.md", "CHANGELOG.md"] {
        let text = std::fs::read_to_string(root.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let path = link.split('#').next().unwrap_or_default();
            assert!(root.join(path).exists(), "{name} links to {link}");
        }
    }
    let map = std::fs::read_to_string(root.join("ARCHITECTURE.md")).unwrap();
    for (name, _) in TABLE {
        assert!(map.contains(name), "the code map lacks {name}");
    }
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    assert!(readme.contains("\ntests/run\n"), "the README has the test command");
}

#[test]
fn no_lint_is_allowed_silently_and_nothing_is_left_to_do() {
    let words = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        for word in words {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
        for line in code_lines(&path) {
            for macro_name in ["todo!", "unimplemented!", "#[ignore", "#[allow", "#![allow"] {
                assert!(!line.contains(macro_name), "{}: {line}", path.display());
            }
        }
    }
}

#[test]
fn no_file_is_longer_than_a_reader_bears() {
    for path in sources() {
        let text = std::fs::read_to_string(&path).unwrap();
        let lines = text.lines().take_while(|line| *line != "#[cfg(test)]").count();
        let is_test = path.starts_with(workspace_root().join("tests/e2e")) || path.ends_with("tests.rs");
        assert!(is_test || lines <= 400, "{}: {lines} lines without its tests", path.display());
    }
}
