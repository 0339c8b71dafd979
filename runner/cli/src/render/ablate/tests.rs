use toolcell_lab::ablation::{Asked, Instrument, Kind, Language, Lonely, Machine, Outcome, Without, Witness};

use super::super::lines::WIDTH;
use super::*;

fn stopped() -> Outcome {
    Outcome::Stopped { how: "open: ENOENT".to_owned() }
}

fn reached(what: &str) -> Outcome {
    Outcome::Reached { what: what.to_owned() }
}

fn broken() -> Outcome {
    Outcome::Broken { why: "exit 2, having said nothing; stderr: <script>\u{1b}[31m".to_owned() }
}

const MOUNT: ControlId = ControlId::NamespaceMount;
const SECCOMP: ControlId = ControlId::Seccomp;
const CPU: ControlId = ControlId::CgroupCpu;

fn through(probe: &str, class: Class) -> Through {
    Through { probe: probe.to_owned(), class, what: "it".to_owned(), beside: Vec::new() }
}

fn control(id: ControlId) -> ControlRow {
    ControlRow {
        id,
        purpose: id.purpose(),
        opens: Vec::new(),
        shown_by: Vec::new(),
        falls: Vec::new(),
        declared_by: 0,
        tried_alone: None,
        stops_alone: None,
        is_unavailable: false,
        not_possible: None,
        broken: Vec::new(),
    }
}

fn row(id: &str, class: Class, baseline: Outcome) -> ProbeRow {
    ProbeRow {
        id: id.to_owned(),
        class,
        kind: if class == Class::Posture { Kind::Posture } else { Kind::Attack },
        language: Language::Python,
        tries: "read <what> it must not \"see\"".to_owned(),
        stopped_by: vec![MOUNT, SECCOMP],
        needs: vec![Instrument::OwnFile],
        witness: vec![Witness::Secret],
        source: Some("CVE-2024-21626".to_owned()),
        is_open_as_accepted: false,
        without: vec![
            Without { off: vec![MOUNT], outcome: reached("the file, which holds a secret") },
            Without { off: vec![SECCOMP], outcome: stopped() },
        ],
        declared: None,
        baseline,
    }
}

fn declaration(state: Declared, why: Option<&str>) -> Declaration {
    Declaration {
        state,
        all_off: reached("the file, which holds a secret"),
        alone: vec![Lonely { on: MOUNT, outcome: stopped() }, Lonely { on: SECCOMP, outcome: stopped() }],
        why: why.map(str::to_owned),
    }
}

/// One with each outcome.
fn rows() -> Vec<ProbeRow> {
    let mut probes = vec![
        row("key-add.c", Class::KernelSurface, stopped()),
        row("file-read-0.py", Class::Files, stopped()),
        row("file-open.py", Class::Files, reached("a file of the machine's <i>")),
        row("file-broken.sh", Class::Files, broken()),
        row("vsock.c", Class::SocketFamilies, Outcome::NotApplicable { why: "this kernel has no vsock".to_owned() }),
        row("bpf.c", Class::KernelSurface, Outcome::NotRun { why: "there is no C compiler here".to_owned() }),
        row("perf.c", Class::KernelSurface, Outcome::NotRun { why: "there is no C compiler here".to_owned() }),
        row("posture-mounts.py", Class::Posture, stopped()),
    ];
    probes[0].without[1].outcome = broken();
    probes[0].declared = Some(declaration(Declared::Holds, Some("cannot be tried alone: seccomp")));
    probes[1].declared = Some(declaration(Declared::Holds, None));
    probes[2].declared = Some(declaration(Declared::Fails, Some("with seccomp alone: reached, it")));
    probes
}

/// One of everything.
fn report() -> Report {
    let many: Vec<Through> = (0..12).map(|number| through(&format!("file-read-{number}.py"), Class::Files)).collect();
    let mut socket = through("docker-socket.sh", Class::PathSockets);
    socket.beside = vec![ControlId::LandlockFs];
    let mount = ControlRow {
        opens: many.into_iter().chain([socket]).collect(),
        shown_by: vec!["posture-mounts.py".to_owned(), "posture-root.py".to_owned()],
        falls: vec![ControlId::RootReadonly, ControlId::ProcMasked],
        declared_by: 14,
        tried_alone: Some(14),
        stops_alone: Some(13),
        ..control(MOUNT)
    };
    let seccomp = ControlRow {
        shown_by: vec!["posture-seccomp.c".to_owned()],
        broken: vec![through("key-add.c", Class::KernelSurface)],
        declared_by: 2,
        ..control(SECCOMP)
    };
    let cpu = ControlRow { is_unavailable: true, ..control(CPU) };
    let cgroup = control(ControlId::NamespaceCgroup);
    let user = ControlRow {
        not_possible: Some("without a user namespace of its own a cell of an ordinary user has no other".to_owned()),
        ..control(ControlId::NamespaceUser)
    };
    Report {
        machine: Machine {
            version: "0.1.0".to_owned(),
            kernel: "6.1.0-<rc1>".to_owned(),
            architecture: "x86_64".to_owned(),
            accepted_unavailable: vec![CPU],
        },
        asked: Asked {
            controls: vec![ControlId::NamespaceUser, MOUNT, ControlId::NamespaceCgroup, SECCOMP, CPU],
            pairs: vec![vec![MOUNT, SECCOMP]],
            declared: true,
        },
        summary: Summary {
            probes: 8,
            stopped: 3,
            reached: 1,
            not_applicable: 1,
            not_run: 2,
            broken: 1,
            calls: 64,
            broken_calls: 2,
            declarations_hold: 2,
            declarations_fail: 1,
            ..Summary::default()
        },
        unavailable: vec![CPU],
        controls: vec![user, mount, cgroup, seccomp, cpu],
        pairs: vec![PairRow {
            off: vec![MOUNT, SECCOMP],
            opens: vec![through("handle-open.c", Class::Files), through("file-read-0.py", Class::Files)],
            opens_together: vec!["handle-open.c".to_owned()],
            falls: Vec::new(),
            not_possible: None,
        }],
        probes: rows(),
        left: vec!["/tmp/probe-1".to_owned()],
    }
}

#[test]
fn a_report_tells_what_each_control_is_worth_and_what_went_wrong() {
    let text = ablate(&report());
    assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    assert!(!text.contains('\u{1b}'), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_good_one_ends_with_one_line_that_says_so() {
    let mut good = report();
    good.probes.truncate(2);
    good.probes[0].without.clear();
    good.summary = Summary { probes: 2, stopped: 2, calls: 64, good: true, ..Summary::default() };
    good.left.clear();
    let text = ablate(&good);
    let end = "\n\ngood: nothing gets out of a cell with all controls, and every declaration holds (64 calls)\n";
    assert!(text.ends_with(end), "{text}");
    assert!(text.contains("     0 got through\n") && !text.contains("not run"), "{text}");
    good.asked = Asked::default();
    (good.controls, good.pairs) = (Vec::new(), Vec::new());
    good.probes.iter_mut().for_each(|probe| probe.declared = None);
    let text = ablate(&good);
    assert!(text.lines().count() < 10 && text.contains("all controls (64 calls)"), "{text}");
}

#[test]
fn a_page_needs_nothing_else_and_nothing_in_it_is_a_tag_of_somebody_else() {
    let page = page(&report());
    for word in [
        "<script", "http://", "https://", "url(", "@import", "<link", "<img", "onload", "<what>", "<rc1>", "<i>",
        "\u{1b}",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    assert!(page.contains("&lt;script&gt;\\u{1b}[31m") && page.contains("6.1.0-&lt;rc1&gt;"), "{page}");
    for id in report().probes.iter().map(|probe| &probe.id) {
        assert!(page.contains(&format!("<span class=\"id\">{id}</span>")), "{id}");
    }
    // Every tag that is opened is closed.
    for tag in ["table", "tr", "td", "th", "span", "ul", "li", "p", "i", "b", "div", "thead", "tbody"] {
        let opened = page.matches(&format!("<{tag}>")).count() + page.matches(&format!("<{tag} ")).count();
        assert_eq!(opened, page.matches(&format!("</{tag}>")).count(), "{tag}");
    }
    insta::assert_snapshot!(page.split_once("</style>").unwrap().1);
}

#[test]
fn the_list_of_probes_has_one_line_each() {
    let battery = Battery::embedded().unwrap();
    assert_eq!(probes(&battery).lines().count(), battery.probes().len() + 1);
}
