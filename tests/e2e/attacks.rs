//! What attackers found, each way closed and beside it the neighbour that stays open: the same program outside of a
//! cell, or the allowed act next to the refused one.

mod debt;
mod gates;
mod mounts;
mod processes;
mod sockets;

use std::collections::BTreeMap;

use toolcell_types::{Answer, Verdict};

const EPERM: &str = "1";

/// Lines of `NAME RESULT` by name.
fn results(text: &str) -> BTreeMap<String, String> {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    lines.map(|(name, result)| (name.to_owned(), result.to_owned())).collect()
}

/// What a call printed that ended well.
fn stdout(answer: &Answer) -> String {
    assert_eq!(answer.verdict, Verdict::Exited { exit_code: 0 }, "{answer:?}");
    serde_json::to_value(&answer.stdout).unwrap().as_str().unwrap().to_owned()
}
