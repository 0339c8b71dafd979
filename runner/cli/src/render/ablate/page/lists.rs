//! What stands below the picture, in words.

use toolcell_lab::ablation::{ControlRow, Declaration, Declared, Outcome, PairRow, ProbeRow, Report, Through};

use super::super::{alone, by_class, names, nothing};
use super::text::text;

/// What opens without each control.
pub(super) fn controls(report: &Report) -> String {
    if report.controls.is_empty() {
        return String::new();
    }
    let rows: String = report.controls.iter().map(control).collect();
    format!(
        "<h2>Without one control</h2>\n<table class=\"list\">\n<thead><tr><th>control</th><th>what it is</th>\
         <th>what opens without it</th><th>that it was off is shown by</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn control(row: &ControlRow) -> String {
    let opens = match &row.not_possible {
        _ if row.is_unavailable => "<span class=\"faint\">not tried: this machine lacks it</span>".to_owned(),
        Some(why) => format!("<span class=\"faint\">not possible here: {}</span>", text(why)),
        None if row.opens.is_empty() && row.declared_by == 0 => {
            format!("<span class=\"faint\">{}</span>", nothing(row))
        }
        None if row.opens.is_empty() => format!("<span class=\"hold\">{}</span>", nothing(row)),
        None => opened(&row.opens),
    };
    let mut more = Vec::new();
    if !row.falls.is_empty() {
        more.push(format!("with it falls {}", text(&names(&row.falls))));
    }
    more.extend(alone(row));
    if !row.broken.is_empty() {
        more.push(format!("<span class=\"bad\">{} broke down</span>", row.broken.len()));
    }
    let more =
        if more.is_empty() { String::new() } else { format!("<br><span class=\"faint\">{}</span>", more.join("; ")) };
    let shown = if row.shown_by.is_empty() { "–".to_owned() } else { text(&row.shown_by.join(", ")) };
    format!(
        "<tr><td class=\"nowrap\"><span class=\"id\">{}</span></td><td>{}</td><td>{opens}{more}</td><td><span class=\"id\">{shown}</span></td></tr>\n",
        text(row.id.as_str()),
        text(row.purpose),
    )
}

fn opened(through: &[Through]) -> String {
    let probes: Vec<&str> = through.iter().map(|one| one.probe.as_str()).collect();
    format!("<b>{}</b><br><span class=\"id\">{}</span>", text(&by_class(through)), text(&probes.join(", ")))
}

/// What opens without several at once.
pub(super) fn pairs(pairs: &[PairRow]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let row = |pair: &PairRow| {
        let opens = match &pair.not_possible {
            Some(why) => format!("<span class=\"faint\">not possible here: {}</span>", text(why)),
            None if pair.opens.is_empty() => "<span class=\"hold\">nothing</span>".to_owned(),
            None => opened(&pair.opens),
        };
        let together = text(&pair.opens_together.join(", "));
        format!(
            "<tr><td><span class=\"id\">{}</span></td><td>{opens}</td><td><span class=\"id\">{together}</span></td></tr>\n",
            text(&names(&pair.off))
        )
    };
    let rows: String = pairs.iter().map(row).collect();
    format!(
        "<h2>Without several at once</h2>\n<table class=\"list\">\n<thead><tr><th>controls</th><th>what opens</th>\
         <th>of it, what none of them alone opens</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
}

/// Every probe: what it tries, what it declares, what came of it.
pub(super) fn probes(report: &Report) -> String {
    let rows: String = report.probes.iter().map(probe).collect();
    format!(
        "<h2>The probes</h2>\n<table class=\"list\">\n<thead><tr><th>probe</th><th>tries to</th><th>is stopped by each of</th>\
         <th>with all controls on</th><th>without all it declares</th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n"
    )
}

fn probe(row: &ProbeRow) -> String {
    let source = row.source.as_deref().map(|source| format!("<br><span class=\"faint\">{}</span>", text(source)));
    let declared = row.declared.as_ref().map_or_else(|| "–".to_owned(), declaration);
    format!(
        "<tr><td class=\"nowrap\"><span class=\"id\">{}</span></td><td>{}{}</td><td><span class=\"id\">{}</span></td>\
         <td>{}</td><td>{declared}</td></tr>\n",
        text(&row.id),
        text(&row.tries),
        source.unwrap_or_default(),
        text(&names(&row.stopped_by)),
        outcome(&row.baseline),
    )
}

fn declaration(declared: &Declaration) -> String {
    let why = declared.why.as_deref().map(text).unwrap_or_default();
    match declared.state {
        Declared::Holds if why.is_empty() => format!("● {}", text(declared.all_off.words())),
        Declared::Holds => format!("● {} <span class=\"faint\">({why})</span>", text(declared.all_off.words())),
        Declared::Fails => format!("<span class=\"bad\">not as declared: {why}</span>"),
        Declared::NotPossible => format!("<span class=\"faint\">not possible here: {why}</span>"),
        Declared::NotApplicable => format!("<span class=\"faint\">{}</span>", text(declared.all_off.words())),
    }
}

fn outcome(outcome: &Outcome) -> String {
    let words = text(outcome.words());
    match outcome {
        Outcome::Stopped { .. } => format!("· {words}"),
        Outcome::Reached { .. } => format!("<span class=\"bad\">● {words}</span>"),
        Outcome::Broken { .. } => format!("<span class=\"bad\">! {words}</span>"),
        Outcome::NotApplicable { .. } | Outcome::NotPossible { .. } | Outcome::NotRun { .. } => {
            format!("<span class=\"faint\">{}: {words}</span>", outcome.word().replace('_', " "))
        }
    }
}
