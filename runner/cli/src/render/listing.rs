//! Tables and short texts about tools, calls and receipts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use toolcell_receipts::statement::{self, Recorded};
use toolcell_types::{CallState, CallsPage, Envelope, Limits, ReceiptsPage, RunningCall, ToolInfo, ToolsPage};

use super::clean;
use super::summary::size;

/// `toolcell tools`
pub(crate) fn tools(page: &ToolsPage) -> String {
    let rows = page
        .tools
        .iter()
        .map(|tool| [tool.name.clone(), tool.permission.clone(), tool.effect_class.clone(), clean(&tool.description)]);
    let mut text = table(["TOOL", "PERMISSION", "EFFECT", "DESCRIPTION"], rows);
    text.push_str(&format!("\npolicy {}\n", page.policy));
    text
}

/// `toolcell tools TOOL`
pub(crate) fn tool(tool: &ToolInfo) -> String {
    let schema = serde_json::to_string_pretty(&tool.input_schema).unwrap_or_else(|_| tool.input_schema.to_string());
    format!(
        "{}: {}\npermission {}, effect class {}, {}\n\nlimits, and the most that a call may ask for:\n{}\narguments:\n{}\n",
        clean(&tool.name),
        clean(&tool.description),
        tool.permission,
        tool.effect_class,
        tool.digest,
        limits(&tool.limits, &tool.max_limits),
        schema
    )
}

fn limits(normal: &Limits, most: &Limits) -> String {
    let rows = toolcell_types::LimitName::ALL.into_iter().map(|name| {
        let show = |amount: u64| {
            if name.as_str().ends_with("_bytes") { size(amount) } else { amount.to_string() }
        };
        [format!("  {}", name.as_str()), show(normal.value(name)), show(most.value(name))]
    });
    table(["  LIMIT", "DEFAULT", "MOST"], rows)
}

/// `toolcell calls`
pub(crate) fn calls(page: &CallsPage) -> String {
    let rows = page.calls.iter().map(|call| {
        let receipt = call.outcome_index.map_or_else(|| "-".to_owned(), |index| index.to_string());
        let tool = clean(&call.tool);
        [call.call_id.to_string(), tool, word(call.state).to_owned(), clean(&call.submitted_on), receipt]
    });
    table(["CALL", "TOOL", "STATE", "SUBMITTED", "RECEIPT"], rows)
}

/// The ledger's state as a person says it: whatever an earlier daemon left open is settled before the next one answers,
/// so that a call without an outcome is one that runs.
fn word(state: CallState) -> &'static str {
    match state {
        CallState::Submitting => "running",
        CallState::Complete | CallState::Failed | CallState::Unknown => state.as_str(),
    }
}

/// A call that is not over.
pub(crate) fn running(call: &RunningCall) -> String {
    format!("call {} attempt {}: {}, its outcome is not written yet\n", call.call_id, call.attempt, word(call.state))
}

/// One page of `toolcell receipts`, the first with a head.
pub(crate) fn receipts(page: &ReceiptsPage, has_head: bool) -> String {
    let rows = page.receipts.iter().map(|item| {
        let [kind, about] = about(&item.envelope);
        // As wide on every page.
        [format!("{:<8}", item.index), format!("{kind:<7}"), clean(&about)]
    });
    let text = table([&format!("{:<8}", "INDEX"), "KIND   ", "ABOUT"], rows);
    if has_head { text } else { text.split_once('\n').map(|(_head, rest)| rest.to_owned()).unwrap_or_default() }
}

/// What an entry states. A listing, no verification.
fn about(envelope: &Envelope) -> [String; 2] {
    match read(envelope) {
        Some(Recorded::Genesis { genesis, .. }) => ["genesis".to_owned(), format!("key {}", genesis.keyid.hex())],
        Some(Recorded::Intent { intent, .. }) => {
            ["intent".to_owned(), format!("call {} ({})", intent.definition.call_id, intent.definition.tool)]
        }
        Some(Recorded::Outcome { outcome, .. }) => {
            let definition = &outcome.definition;
            let cause = outcome.verdict.cause();
            ["outcome".to_owned(), format!("call {} ({}): {cause}", definition.call_id, definition.tool)]
        }
        None => ["?".to_owned(), "not readable by this version".to_owned()],
    }
}

/// The place of a receipt in its log, as it states it itself.
pub(crate) fn receipt_index(envelope: &Envelope) -> Option<u64> {
    read(envelope).map(|recorded| recorded.log().index)
}

fn read(envelope: &Envelope) -> Option<Recorded> {
    let payload = STANDARD.decode(&envelope.payload).ok()?;
    statement::read(&payload).ok()
}

/// Columns as wide as their widest cell; the last is left ragged.
pub(super) fn table<const N: usize>(head: [&str; N], rows: impl Iterator<Item = [String; N]>) -> String {
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows);
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}", width = *width)).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_are_one_line_each() {
        let page = serde_json::from_value(json!({"calls": [
            {"call_id": "b", "attempt": 1, "tool": "exec", "state": "submitting", "submitted_on": "2026-11-30T12:00:01Z",
             "intent_index": 3, "outcome_index": null},
            {"call_id": "a-longer-id", "attempt": 1, "tool": "python", "state": "complete",
             "submitted_on": "2026-11-30T12:00:00Z", "intent_index": 1, "outcome_index": 2},
        ]}))
        .unwrap();
        insta::assert_snapshot!(calls(&page), @r"
        CALL         TOOL    STATE     SUBMITTED             RECEIPT
        b            exec    running   2026-11-30T12:00:01Z  -
        a-longer-id  python  complete  2026-11-30T12:00:00Z  2
        ");
    }

    #[test]
    fn an_entry_that_cannot_be_read_is_listed_as_such() {
        let digest = format!("sha256:{}", "0".repeat(64));
        let page = serde_json::from_value(json!({"last": 0, "receipts": [{"index": 0, "leaf": digest,
            "envelope": {"payload": "e30=", "payloadType": "application/vnd.in-toto+json", "signatures": []}}]}))
        .unwrap();
        insta::assert_snapshot!(receipts(&page, true), @r"
        INDEX     KIND     ABOUT
        0         ?        not readable by this version
        ");
        assert_eq!(receipts(&page, false), "0         ?        not readable by this version\n");
    }
}
