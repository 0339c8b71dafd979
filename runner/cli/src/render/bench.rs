//! What `toolcell bench` found, as tables.

use toolcell_lab::bench::{Flight, Memory, Pss, Report, Spread, StageTime, Way};

use super::listing::table;
use super::summary::size;

/// All of it.
pub(crate) fn bench(report: &Report) -> String {
    let parts =
        [machine(report), ways(&report.ways), stages(&report.stages), flights(&report.flights), memory(&report.memory)];
    parts.join("\n")
}

fn machine(report: &Report) -> String {
    let machine = &report.machine;
    let or = |text: &Option<String>, none: &str| text.clone().unwrap_or_else(|| none.to_owned());
    let memory = machine.memory_bytes.map_or_else(|| "?".to_owned(), size);
    let load = machine.load.map_or_else(|| "?".to_owned(), |load| format!("{load:.2}"));
    let mut text = format!(
        "Linux {} {}, {} processors ({}), {memory}, load {load} at the start\nstate on {}; bwrap: {}; docker engine: {}\n",
        machine.kernel,
        machine.architecture,
        machine.processors,
        machine.processor.as_deref().unwrap_or("model unknown"),
        machine.file_system.as_deref().unwrap_or("an unknown file system"),
        or(&machine.bwrap, "not there"),
        or(&machine.docker, "no engine answers"),
    );
    if !report.accepted_unavailable.is_empty() {
        let names: Vec<&str> = report.accepted_unavailable.iter().map(|id| id.as_str()).collect();
        text.push_str(&format!("accepted as missing, so that a call does less here: {}\n", names.join(", ")));
    }
    text
}

fn ms(ms: f64) -> String {
    format!("{ms:.2}")
}

fn times(spread: &Spread) -> [String; 4] {
    [spread.min_ms, spread.median_ms, spread.p95_ms, spread.p99_ms].map(ms)
}

fn ways(ways: &[Way]) -> String {
    let rows = ways.iter().map(|way| {
        let [min, median, p95, p99] = times(&way.took);
        let by_bwrap = way.ratio_to_bwrap.map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}"));
        let by_native = format!("{:.2}", way.ratio_to_native);
        [way.way.as_str().to_owned(), min, median, p95, p99, by_native, by_bwrap, way.took.count.to_string()]
    });
    table(["ONE AT A TIME, ms", "MIN", "MEDIAN", "P95", "P99", "/NATIVE", "/BWRAP", "RUNS"], rows)
}

fn stages(stages: &[StageTime]) -> String {
    let rows = stages.iter().map(|stage| {
        let [min, median, p95, p99] = times(&stage.took);
        [stage.stage.clone(), min, median, p95, p99]
    });
    table(["STAGE OF A CALL, ms", "MIN", "MEDIAN", "P95", "P99"], rows)
}

fn flights(flights: &[Flight]) -> String {
    let none = || "-".to_owned();
    let rows = flights.iter().map(|flight| {
        let [_, median, p95, p99] = times(&flight.call);
        let rate = |rate: f64| format!("{rate:.0}");
        let bwrap = flight.bwrap.map_or_else(none, |bwrap| ms(bwrap.median_ms));
        let bwrap_rate = flight.bwrap_per_second.map_or_else(none, rate);
        [flight.in_flight.to_string(), median, p95, p99, rate(flight.calls_per_second), bwrap, bwrap_rate]
    });
    table(["IN FLIGHT, ms", "MEDIAN", "P95", "P99", "CALLS/s", "BWRAP MEDIAN", "BWRAP/s"], rows)
}

fn memory(memory: &Memory) -> String {
    let show = |bytes: Option<u64>| bytes.map_or_else(|| "?".to_owned(), size);
    let of = |process: &str, all: &[Pss], nth: usize| {
        show(all.iter().filter(|one| one.process == process).nth(nth).and_then(|one| one.bytes))
    };
    let mut seen = std::collections::BTreeMap::new();
    let mut rows = Vec::new();
    for one in &memory.after {
        let nth = seen.entry(one.process.as_str()).and_modify(|nth| *nth += 1).or_insert(0_usize);
        rows.push([one.process.clone(), of(&one.process, &memory.idle, *nth), show(one.bytes)]);
    }
    rows.push(["all".to_owned(), show(memory.idle_bytes), show(memory.after_bytes)]);
    let after = format!("AFTER {} CALLS", memory.calls);
    table(["MEMORY (PSS)", "IDLE", &after], rows.into_iter())
}

#[cfg(test)]
mod tests {
    use toolcell_lab::bench::{Machine, WayName};

    use super::*;

    #[test]
    fn every_figure_has_its_place() {
        let spread = |ms: f64| Spread { count: 7, min_ms: ms, median_ms: ms + 1.0, p95_ms: ms + 2.0, p99_ms: ms + 3.0 };
        let pss = |process: &str, bytes| Pss { process: process.to_owned(), bytes };
        let way = |way, ms, ratio_to_bwrap| Way { way, took: spread(ms), ratio_to_native: 1.5, ratio_to_bwrap };
        let report = Report {
            machine: Machine {
                kernel: "6.1.0".to_owned(),
                architecture: "x86_64".to_owned(),
                processor: None,
                processors: 2,
                memory_bytes: Some(1 << 30),
                load: Some(0.05),
                file_system: Some("ext4".to_owned()),
                bwrap: Some("bubblewrap 0.8.0".to_owned()),
                docker: None,
            },
            accepted_unavailable: vec![toolcell_types::ControlId::CgroupCpu],
            ways: vec![way(WayName::Native, 0.5, Some(0.1)), way(WayName::Call, 5.25, None)],
            stages: vec![StageTime { stage: "arm".to_owned(), took: spread(2.0) }],
            flights: vec![Flight {
                in_flight: 8,
                call: spread(10.0),
                calls_per_second: 399.6,
                bwrap: None,
                bwrap_per_second: None,
            }],
            memory: Memory {
                idle: vec![pss("serve", Some(1 << 20)), pss("daemon", None)],
                idle_bytes: None,
                calls: 10_000,
                after: vec![pss("serve", Some(2 << 20)), pss("daemon", Some(3 << 20)), pss("serve", Some(1 << 20))],
                after_bytes: Some(6 << 20),
            },
        };
        insta::assert_snapshot!(bench(&report));
    }
}
