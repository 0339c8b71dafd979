//! The picture: probes by class as rows, controls as columns.

use std::collections::BTreeMap;

use toolcell_lab::ablation::{ControlRow, Declared, Kind, Outcome, ProbeRow, Report, Without};
use toolcell_types::ControlId;

use super::text::text;

/// Class of a cell, symbol, and what it means.
const LEGEND: [(&str, &str, &str); 8] = [
    ("s", "·", "stopped"),
    ("r", "●", "got through"),
    ("o", "◆", "shows that the control was off"),
    ("a", "–", "not applicable on this kernel"),
    ("x", "×", "cannot be switched off here"),
    ("n", "?", "not run"),
    ("b", "!", "broken"),
    ("s d", "", "the probe declares that this control stops it"),
];

/// The legend and the table; only the baseline if no control was switched off.
pub(super) fn matrix(report: &Report) -> String {
    let legend: String = LEGEND
        .iter()
        .map(|(class, symbol, words)| format!("<li><span class=\"key {class}\">{symbol}</span>{words}</li>\n"))
        .collect();
    let mut rows = String::new();
    let mut class = None;
    for probe in &report.probes {
        if class.replace(probe.class) != Some(probe.class) {
            let wide = report.asked.controls.len().saturating_add(2);
            rows.push_str(&format!(
                "<tr class=\"class\"><th scope=\"rowgroup\">{}</th><td colspan=\"{wide}\"></td></tr>\n",
                text(probe.class.as_str())
            ));
        }
        rows.push_str(&row(probe, report));
    }
    format!(
        "<h2>Every probe without every control</h2>\n\
         <p>A row is a probe, a column the one control that was off. A column without ● is the proof of a second line: \
         what that control holds, others hold as well. ● without a frame got through although a control that the probe declares \
         was on.</p>\n\
         <ul class=\"legend\">\n{legend}</ul>\n<div class=\"scroll\">\n<table class=\"matrix\">\n{head}<tbody>\n{rows}</tbody>\n\
         </table>\n</div>\n",
        head = head(report),
    )
}

fn head(report: &Report) -> String {
    let turned = |words: &str, class: &str, below: &str| {
        format!("<th scope=\"col\" class=\"turned{class}\"><span class=\"id\">{}</span>{below}</th>", text(words))
    };
    let column = |row: &ControlRow| turned(row.id.as_str(), "", &number(row.opens.len(), row.is_unavailable));
    let columns: String = report.controls.iter().map(column).collect();
    let all = turned("all controls on", " all", &number(report.summary.reached, false));
    let own = if report.asked.declared { turned("as declared", " own", "<b></b>") } else { String::new() };
    format!(
        "<thead>\n<tr><th scope=\"col\">probe<b>attacks that get through</b></th>{all}{columns}{own}</tr>\n</thead>\n"
    )
}

fn number(number: usize, is_unavailable: bool) -> String {
    match (number, is_unavailable) {
        (_, true) => "<b class=\"hold\">×</b>".to_owned(),
        (0, false) => "<b class=\"hold\">0</b>".to_owned(),
        (number, false) => format!("<b>{number}</b>"),
    }
}

fn row(probe: &ProbeRow, report: &Report) -> String {
    let without: BTreeMap<&[ControlId], &Without> =
        probe.without.iter().map(|without| (without.off.as_slice(), without)).collect();
    let cells: String = report
        .asked
        .controls
        .iter()
        .map(|id| {
            let is_declared = probe.stopped_by.contains(id);
            let outcome = without.get([*id].as_slice()).map(|without| &without.outcome);
            cell(probe, outcome, is_declared, "")
        })
        .collect();
    let own = match &probe.declared {
        None if report.asked.declared => "<td class=\"own\"></td>".to_owned(),
        None => String::new(),
        Some(declared) => {
            let (class, word) = match declared.state {
                Declared::Holds => ("hold", "✓"),
                Declared::Fails => ("bad", "✗"),
                Declared::NotPossible => ("faint", "×"),
                Declared::NotApplicable => ("faint", "–"),
            };
            let why = declared.why.as_deref().unwrap_or_default();
            format!("<td class=\"own {class}\"{}>{word}</td>", title(why))
        }
    };
    format!(
        "<tr><th scope=\"row\"{tries}><span class=\"id\">{id}</span></th>{all}{cells}{own}</tr>\n",
        tries = title(&probe.tries),
        id = text(&probe.id),
        all = cell(probe, Some(&probe.baseline), false, " class=\"all\""),
    )
}

fn title(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!(" title=\"{}\"", text(words)) }
}

fn cell(probe: &ProbeRow, outcome: Option<&Outcome>, is_declared: bool, attributes: &str) -> String {
    let ring = if is_declared { " d" } else { "" };
    let (class, symbol) = match (outcome, probe.kind) {
        (None, _) => return format!("<td{attributes}></td>"),
        (Some(Outcome::Stopped { .. }), _) => ("s", "·"),
        (Some(Outcome::Reached { .. }), Kind::Attack) => ("r", "●"),
        (Some(Outcome::Reached { .. }), Kind::Posture) => ("o", "◆"),
        (Some(Outcome::NotApplicable { .. }), _) => ("a", "–"),
        (Some(Outcome::NotPossible { .. }), _) => ("x", "×"),
        (Some(Outcome::NotRun { .. }), _) => ("n", "?"),
        (Some(Outcome::Broken { .. }), _) => ("b", "!"),
    };
    // What is stopped thousands of times says how in the list of probes and in JSON.
    let words = outcome.filter(|outcome| !outcome.is_stopped()).map_or("", Outcome::words);
    format!("<td{attributes}><i class=\"{class}{ring}\"{}>{symbol}</i></td>", title(words))
}
