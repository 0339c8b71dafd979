//! The matrix as one page: no script, nothing from elsewhere, light and dark, on screen and on paper.
//!
//! Colours are told apart by people who see few of them, and each has a symbol. Guarantees: every text that came from
//! elsewhere is escaped where it is put in ([`text()`]).

mod lists;
mod matrix;
mod text;

use toolcell_lab::ablation::{Report, Summary};

use self::text::text;
use super::{count, names};

const STYLE: &str = include_str!("page/style.css");

/// The page.
pub(crate) fn page(report: &Report) -> String {
    let machine = &report.machine;
    let place = format!(
        "toolcell {} on {}, Linux {}",
        text(&machine.version),
        text(&machine.architecture),
        text(&machine.kernel)
    );
    let missing = if report.unavailable.is_empty() {
        String::new()
    } else {
        format!("<p class=\"faint\">Missing on this machine: {}.</p>\n", text(&names(&report.unavailable)))
    };
    let sections = [
        figures(&report.summary),
        verdict(report),
        matrix::matrix(report),
        lists::controls(report),
        lists::pairs(&report.pairs),
        lists::probes(report),
    ];
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>toolcell: what each control is worth</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>What each control is worth</h1>\n<p class=\"faint\">{place}, {calls}, each with a receipt that was verified. \
         Made by <code>toolcell ablate</code>.</p>\n{missing}{sections}</body>\n</html>\n",
        calls = count(report.summary.calls, "call"),
        sections = sections.concat(),
    )
}

fn figures(summary: &Summary) -> String {
    let items = [
        (summary.probes, "probes", true),
        (summary.stopped, "stopped with all controls", true),
        (summary.reached, "got through with all controls", true),
        (summary.open_as_accepted, "got through, as accepted", false),
        (summary.not_applicable, "not applicable here", false),
        (summary.not_run, "not run", false),
        (summary.broken_calls.max(summary.broken), "broken", true),
        (summary.declarations_hold, "declarations hold", false),
        (summary.declarations_fail, "declarations do not hold", false),
    ];
    let items = items.iter().filter(|(number, _, is_always)| *is_always || *number > 0);
    let items: String = items.map(|(number, words, _)| format!("<li><b>{number}</b>{words}</li>\n")).collect();
    format!("<ul class=\"figures\">\n{items}</ul>\n")
}

fn verdict(report: &Report) -> String {
    let class = if report.summary.good { "verdict good" } else { "verdict" };
    let words = super::verdict(report).replace('\n', " ");
    format!("<p class=\"{class}\">{}</p>\n", text(words.trim()))
}
