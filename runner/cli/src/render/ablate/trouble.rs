//! What is not as it should be, each with its reason; where several have the same reason it stands there once.

use toolcell_lab::ablation::{Outcome, ProbeRow, Report};

use super::{clean, names, wrapped};

/// Nothing where all is well.
pub(super) fn all(report: &Report) -> String {
    let baseline = |is: fn(&ProbeRow) -> bool| {
        let rows = report.probes.iter().filter(|row| is(row));
        rows.map(|row| (row.id.clone(), row.baseline.words().to_owned())).collect::<Vec<_>>()
    };
    let broken = report.probes.iter().flat_map(|row| {
        let without = row.without.iter().map(|without| (names(&without.off), &without.outcome));
        let all_off = row.declared.iter().map(|declared| ("all it declares".to_owned(), &declared.all_off));
        let alone = row.declared.iter().flat_map(|declared| &declared.alone);
        let alone = alone.map(|lonely| (format!("all it declares but {}", lonely.on), &lonely.outcome));
        let elsewhere = without.chain(all_off).chain(alone).filter(|(_, outcome)| outcome.is_broken());
        elsewhere.map(|(off, outcome)| (format!("{} without {off}", row.id), outcome.words().to_owned()))
    });
    let failing = report.probes.iter().filter_map(|row| {
        let declared = row.declared.as_ref().filter(|declared| declared.state == super::Declared::Fails)?;
        Some((row.id.clone(), declared.why.clone().unwrap_or_default()))
    });
    let beside = report.controls.iter().flat_map(|row| {
        let beside = row.opens.iter().filter(|through| !through.beside.is_empty());
        beside.map(|through| (through.probe.clone(), format!("{} was off, {} was on", row.id, names(&through.beside))))
    });
    let parts = [
        listed(
            "Got through with all controls on",
            baseline(|row| row.baseline.is_reached() && !row.is_open_as_accepted),
        ),
        listed("Got through, as accepted", baseline(|row| row.is_open_as_accepted)),
        listed("Not as declared", failing.collect()),
        listed("Got through beside a control that should stop it alone", beside.collect()),
        listed("Broken", baseline(|row| row.baseline.is_broken()).into_iter().chain(broken).collect()),
        listed("Not run", baseline(|row| matches!(row.baseline, Outcome::NotRun { .. }))),
        listed("Not applicable here", baseline(|row| matches!(row.baseline, Outcome::NotApplicable { .. }))),
        listed("Left on this machine, as it could not be removed", left(report)),
    ];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

fn left(report: &Report) -> Vec<(String, String)> {
    report.left.iter().map(|path| (path.clone(), "remove it".to_owned())).collect()
}

fn listed(head: &str, items: Vec<(String, String)>) -> String {
    let mut groups: Vec<(Vec<String>, String)> = Vec::new();
    for (name, why) in items {
        match groups.iter_mut().find(|(_, known)| *known == why) {
            Some((names, _)) => names.push(name),
            None => groups.push((vec![name], why)),
        }
    }
    if groups.is_empty() {
        return String::new();
    }
    let lines =
        groups.iter().map(|(names, why)| wrapped(&format!("{}: {}", clean(&names.join(", ")), clean(why)), 2, 6));
    format!("{head}:\n{}", lines.collect::<String>())
}
