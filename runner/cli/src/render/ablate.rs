//! What `toolcell ablate` found, for a terminal of 100 columns and for a page ([`page()`]).
//!
//! First the figures, then what each control is worth, then what each probe declares, then what went wrong, and the
//! verdict at the end, where a person looks first.

mod page;
mod trouble;

use std::collections::BTreeMap;

use toolcell_lab::ablation::{
    Battery, Class, ControlRow, Declaration, Declared, PairRow, Probe, ProbeRow, Report, Summary, Through,
};
use toolcell_types::ControlId;

pub(crate) use self::page::page;
use super::clean;
use super::lines::wrapped;
use super::listing::table;

/// Where the second column begins.
const SECOND: usize = 24;

/// All of it.
pub(crate) fn ablate(report: &Report) -> String {
    let parts = [
        head(report),
        figures(&report.summary),
        controls(report),
        pairs(&report.pairs),
        declarations(&report.probes),
        trouble::all(report),
        verdict(report),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// `toolcell ablate --list`
pub(crate) fn probes(battery: &Battery) -> String {
    let rows = battery.probes().iter().map(|probe: &Probe| {
        [probe.id().to_owned(), probe.class().to_string(), probe.kind().to_string(), clean(probe.tries())]
    });
    table(["PROBE", "CLASS", "KIND", "TRIES TO"], rows)
}

fn head(report: &Report) -> String {
    let machine = &report.machine;
    let mut text = wrapped(
        &format!("toolcell {} on {}, Linux {}", clean(&machine.version), machine.architecture, clean(&machine.kernel)),
        0,
        2,
    );
    if !report.unavailable.is_empty() {
        text.push_str(&wrapped(&format!("missing on this machine: {}", names(&report.unavailable)), 0, 2));
    }
    text
}

fn figures(summary: &Summary) -> String {
    let rows = [
        (summary.stopped, "stopped", true),
        (summary.reached, "got through", true),
        (summary.open_as_accepted, "got through, as this machine lacks what stops them and that was accepted", false),
        (summary.not_applicable, "not applicable: this kernel does not have what they try", false),
        (summary.not_run, "not run", false),
        (summary.broken, "broken", true),
    ];
    let mut text = format!("{} with all controls on\n", count(summary.probes, "probe"));
    for (number, words, is_always) in rows {
        if number > 0 || is_always {
            text.push_str(&format!("{number:>6} {words}\n"));
        }
    }
    text
}

/// One control a line, and below it the names of what it alone keeps in.
fn controls(report: &Report) -> String {
    if report.controls.is_empty() {
        return String::new();
    }
    let mut text = format!("{:<SECOND$}OPENS\n", "WITHOUT THIS CONTROL");
    for row in &report.controls {
        text.push_str(&entry(row.id.as_str(), &opens(row)));
        if !row.opens.is_empty() {
            text.push_str(&wrapped(&probe_names(&row.opens), SECOND, SECOND));
        }
        let facts = facts(row);
        if !facts.is_empty() {
            text.push_str(&wrapped(&format!("({facts})"), SECOND, SECOND));
        }
    }
    text
}

fn opens(row: &ControlRow) -> String {
    match &row.not_possible {
        _ if row.is_unavailable => "not tried: this machine lacks it".to_owned(),
        Some(why) => format!("not possible here: {}", clean(why)),
        None if row.opens.is_empty() => nothing(row).to_owned(),
        None => by_class(&row.opens),
    }
}

/// That nothing opens proves a second line only if something was tried that the control stops.
fn nothing(row: &ControlRow) -> &'static str {
    if row.declared_by == 0 { "nothing: no attack was tried that it stops" } else { "nothing: second lines hold" }
}

fn facts(row: &ControlRow) -> String {
    let mut facts = Vec::new();
    if let Some(shown_by) = row.shown_by.first() {
        let more = row.shown_by.len().saturating_sub(1);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        facts.push(format!("that it was off is shown by {}{more}", clean(shown_by)));
    }
    if !row.falls.is_empty() {
        facts.push(format!("with it falls {}", names(&row.falls)));
    }
    facts.extend(alone(row));
    if !row.broken.is_empty() {
        facts.push(format!("{} broke down", count(row.broken.len(), "probe")));
    }
    facts.join("; ")
}

fn alone(row: &ControlRow) -> Option<String> {
    match (row.tried_alone?, row.stops_alone?) {
        (0, _) => None,
        (tried, stopped) if tried == stopped => Some(format!("alone it stops {}", count(tried, "attack"))),
        (tried, stopped) => Some(format!("alone it stops {stopped} of {}", count(tried, "attack"))),
    }
}

fn pairs(pairs: &[PairRow]) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let mut text = "WITHOUT SEVERAL AT ONCE\n".to_owned();
    for row in pairs {
        let opens = match &row.not_possible {
            Some(why) => format!("not possible here: {}", clean(why)),
            None if row.opens.is_empty() => "opens nothing".to_owned(),
            None => format!("opens {}", by_class(&row.opens)),
        };
        text.push_str(&wrapped(&format!("{}: {opens}", names(&row.off)), 0, 4));
        if !row.opens.is_empty() {
            text.push_str(&wrapped(&probe_names(&row.opens), 4, 4));
        }
        if !row.opens_together.is_empty() {
            let words = format!("none of them alone opens {}", clean(&row.opens_together.join(", ")));
            text.push_str(&wrapped(&words, 4, 4));
        }
    }
    text
}

/// With `--declared`: which single controls suffice, and what was reached without all of them.
fn declarations(probes: &[ProbeRow]) -> String {
    let declared: Vec<(&ProbeRow, &Declaration)> =
        probes.iter().filter_map(|probe| Some((probe, probe.declared.as_ref()?))).collect();
    if declared.is_empty() {
        return String::new();
    }
    let mut text = format!("{:<SECOND$}EACH OF THESE ALONE STOPS IT; WITHOUT ALL OF THEM\n", "PROBE");
    for (probe, declaration) in declared {
        text.push_str(&entry(&clean(&probe.id), &said(declaration)));
    }
    text
}

fn said(declaration: &Declaration) -> String {
    let suffice = declaration.alone.iter().filter(|lonely| lonely.outcome.is_stopped()).map(|lonely| lonely.on);
    let suffice = names(&suffice.collect::<Vec<_>>());
    let why = clean(declaration.why.as_deref().unwrap_or_default());
    match declaration.state {
        Declared::Holds if why.is_empty() => format!("{suffice}; {}", clean(declaration.all_off.words())),
        Declared::Holds => format!("{suffice}; {} ({why})", clean(declaration.all_off.words())),
        Declared::Fails => format!("NOT AS DECLARED: {why}"),
        Declared::NotPossible => format!("not possible here: {why}"),
        Declared::NotApplicable => format!("not applicable: {}", clean(declaration.all_off.words())),
    }
}

fn verdict(report: &Report) -> String {
    let summary = &report.summary;
    let calls = count(summary.calls, "call");
    if summary.good {
        let declared = if report.asked.declared { ", and every declaration holds" } else { "" };
        return wrapped(&format!("good: nothing gets out of a cell with all controls{declared} ({calls})"), 0, 2);
    }
    let bad = [
        (summary.reached, "got through with all controls on"),
        (summary.not_run, "not run"),
        (summary.broken_calls.max(summary.broken), "broken"),
        (summary.declarations_fail, "not as declared"),
    ];
    let bad: Vec<String> =
        bad.iter().filter(|(number, _)| *number > 0).map(|(number, words)| format!("{number} {words}")).collect();
    wrapped(&format!("not good: {} ({calls})", bad.join(", ")), 0, 2)
}

/// A name in the first column and words in the second.
fn entry(name: &str, words: &str) -> String {
    if name.chars().count() >= SECOND {
        return format!("{name}\n{}", wrapped(words, SECOND, SECOND));
    }
    let text = wrapped(words, SECOND, SECOND);
    format!("{name:<SECOND$}{}", text.get(SECOND..).unwrap_or("\n"))
}

/// `3 attacks: files 2, ipc 1`
fn by_class(through: &[Through]) -> String {
    let mut classes: BTreeMap<Class, usize> = BTreeMap::new();
    for one in through {
        let number = classes.entry(one.class).or_default();
        *number = number.saturating_add(1);
    }
    let classes: Vec<String> = classes.iter().map(|(class, number)| format!("{class} {number}")).collect();
    format!("{}: {}", through.len(), classes.join(", "))
}

fn probe_names(through: &[Through]) -> String {
    clean(&through.iter().map(|one| one.probe.as_str()).collect::<Vec<_>>().join(", "))
}

fn names(ids: &[ControlId]) -> String {
    ids.iter().map(|id| id.as_str()).collect::<Vec<_>>().join(", ")
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
