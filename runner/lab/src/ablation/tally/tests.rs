use super::super::matrix::Trial;
use super::super::probe::Language;
use super::*;

const MOUNT: ControlId = ControlId::NamespaceMount;
const SECCOMP: ControlId = ControlId::Seccomp;
const NET: ControlId = ControlId::NamespaceNet;

fn probe(id: &str, kind: &str, stopped_by: &str) -> Probe {
    let text = format!("# class: files\n# tries: x\n# stopped-by: {stopped_by}\n# kind: {kind}\n");
    Probe::read(id, Language::Shell, &text).unwrap()
}

fn probes() -> Vec<Probe> {
    vec![
        probe("one.sh", "attack", "namespace.mount seccomp"),
        probe("two.sh", "attack", "seccomp"),
        probe("three.sh", "posture", "seccomp"),
    ]
}

fn machine() -> Machine {
    Machine {
        version: "0.1.0".to_owned(),
        kernel: "6.1".to_owned(),
        architecture: "x86_64".to_owned(),
        accepted_unavailable: vec![ControlId::CgroupCpu],
    }
}

fn stopped() -> Outcome {
    Outcome::Stopped { how: "open: ENOENT".to_owned() }
}

fn reached() -> Outcome {
    Outcome::Reached { what: "it".to_owned() }
}

fn broken() -> Outcome {
    Outcome::Broken { why: "exit 2".to_owned() }
}

fn absent() -> Outcome {
    Outcome::NotApplicable { why: "no vsock".to_owned() }
}

fn impossible() -> Outcome {
    Outcome::NotPossible { why: "it needs the other".to_owned() }
}

/// All are stopped in the baseline; what else is said comes on top.
fn matrix(more: impl IntoIterator<Item = (Key, Outcome)>) -> Matrix {
    let mut matrix = Matrix::default();
    let baseline = (0..3).map(|probe| (Key::without(probe, &[]), stopped()));
    baseline.chain(more).for_each(|(key, outcome)| matrix.record(key, Trial::of(outcome)));
    matrix
}

fn asked() -> Asked {
    Asked { controls: vec![MOUNT, SECCOMP], pairs: vec![vec![SECCOMP, MOUNT]], declared: false }
}

#[test]
fn what_opens_and_what_shows_the_switch_are_told_apart() {
    let matrix = matrix([
        (Key::without(0, &[SECCOMP]), stopped()),
        (Key::without(1, &[SECCOMP]), reached()),
        (Key::without(2, &[SECCOMP]), reached()),
        (Key::without(0, &[MOUNT]), stopped()),
        (Key::without(1, &[MOUNT]), broken()),
        (Key::without(0, &[MOUNT, SECCOMP]), reached()),
        (Key::without(1, &[MOUNT, SECCOMP]), reached()),
    ]);
    let report = report(machine(), &asked(), &probes(), &matrix);
    let [mount, seccomp] = report.controls.as_slice() else { panic!("{:?}", report.controls) };
    assert_eq!((seccomp.opens.len(), seccomp.opens[0].probe.as_str()), (1, "two.sh"));
    assert_eq!((seccomp.shown_by.as_slice(), seccomp.declared_by), (&["three.sh".to_owned()][..], 2));
    assert!(seccomp.opens[0].beside.is_empty(), "it declares nothing else");
    assert_eq!((mount.opens.len(), mount.shown_by.len(), mount.broken.len()), (0, 0, 1));
    assert_eq!(report.pairs[0].off, [MOUNT, SECCOMP]);
    assert_eq!(
        (report.pairs[0].opens.len(), report.pairs[0].opens_together.as_slice()),
        (2, &["one.sh".to_owned()][..])
    );
    assert_eq!((report.summary.stopped, report.summary.broken, report.summary.broken_calls), (3, 0, 1));
    assert!(!report.summary.good);
    assert_eq!(report.probes[1].without.iter().map(|without| without.off.len()).collect::<Vec<_>>(), [1, 1, 2]);
}

#[test]
fn a_run_is_good_if_nothing_gets_out_and_nothing_broke() {
    let good = |matrix: &Matrix| report(machine(), &Asked::default(), &probes(), matrix).summary.good;
    let baseline = |outcome| good(&matrix([(Key::without(0, &[]), outcome)]));
    assert!(baseline(stopped()) && baseline(absent()));
    assert!(!baseline(reached()) && !baseline(broken()));
    assert!(!baseline(Outcome::NotRun { why: "no compiler".to_owned() }));
}

#[test]
fn what_a_machine_lacks_and_the_operator_accepted_is_counted_apart() {
    let probes = [probe("quota.sh", "attack", "cgroup.cpu")];
    let with = |unavailable: Vec<ControlId>| {
        let mut matrix = Matrix::default();
        matrix.record(Key::without(0, &[]), Trial { unavailable, ..Trial::of(reached()) });
        report(machine(), &Asked { controls: vec![ControlId::CgroupCpu], ..Asked::default() }, &probes, &matrix)
    };
    let accepted = with(vec![ControlId::CgroupCpu]);
    assert_eq!((accepted.summary.open_as_accepted, accepted.summary.reached, accepted.summary.good), (1, 0, true));
    assert!(accepted.controls[0].is_unavailable && accepted.controls[0].opens.is_empty());
    let open = with(Vec::new());
    assert_eq!((open.summary.open_as_accepted, open.summary.reached, open.summary.good), (0, 1, false));
}

#[test]
fn a_declaration_holds_if_each_alone_stops_what_gets_through_without_all() {
    let declared = |all_off: Outcome, by_mount: Outcome, by_seccomp: Outcome| {
        let set = [MOUNT, SECCOMP];
        let matrix = matrix([
            (Key::without(0, &set), all_off),
            (Key::alone(0, &set, MOUNT), by_mount),
            (Key::alone(0, &set, SECCOMP), by_seccomp),
        ]);
        let asked = Asked { declared: true, ..Asked::default() };
        let report = report(machine(), &asked, &probes(), &matrix);
        let declaration = report.probes[0].declared.clone().unwrap();
        (declaration.state, declaration.why.unwrap_or_default(), report.summary.good)
    };
    assert_eq!(declared(reached(), stopped(), stopped()), (Declared::Holds, String::new(), true));
    let (state, why, good) = declared(reached(), stopped(), reached());
    assert_eq!((state, why.as_str(), good), (Declared::Fails, "with seccomp alone: reached, it", false));
    let (state, why, _) = declared(stopped(), stopped(), stopped());
    assert_eq!((state, why.as_str()), (Declared::Fails, "without all it declares: stopped, open: ENOENT"));
    assert_eq!(declared(absent(), stopped(), absent()).0, Declared::NotApplicable);
    let (state, why, good) = declared(reached(), impossible(), stopped());
    assert_eq!((state, why.as_str(), good), (Declared::Holds, "cannot be tried alone: namespace.mount", true));
    assert_eq!(declared(impossible(), impossible(), stopped()).0, Declared::NotPossible);
    assert_eq!(declared(reached(), broken(), stopped()).0, Declared::Fails);
}

#[test]
fn who_says_that_the_kernel_has_it_not_must_not_get_through_later() {
    let set = [SECCOMP];
    let matrix = matrix([(Key::without(1, &[]), absent()), (Key::without(1, &set), reached())]);
    let report = report(machine(), &Asked { declared: true, ..Asked::default() }, &probes(), &matrix);
    assert_eq!(report.probes[1].declared.as_ref().map(|declared| declared.state), Some(Declared::Fails));
}

#[test]
fn a_control_that_cannot_be_switched_off_says_why() {
    let matrix = matrix((0..3).map(|probe| (Key::without(probe, &[NET]), impossible())));
    let asked = Asked { controls: vec![NET], ..Asked::default() };
    let report = report(machine(), &asked, &probes(), &matrix);
    assert_eq!(report.controls[0].not_possible.as_deref(), Some("it needs the other"));
    assert_eq!((report.summary.not_possible, report.summary.good), (3, true));
}

#[test]
fn calls_are_planned_once_and_not_for_what_is_missing() {
    let mut matrix = matrix([(Key::without(2, &[]), Outcome::NotRun { why: "no compiler".to_owned() })]);
    matrix.record(Key::without(1, &[]), Trial { unavailable: vec![MOUNT], ..Trial::of(stopped()) });
    let probes = probes();
    let keys = plan::others(&Asked { declared: true, ..asked() }, &probes, &matrix);
    // Without the mount namespace, which is missing, both declare seccomp alone; alone it stands as in the baseline.
    assert_eq!(keys, [Key::without(0, &[SECCOMP]), Key::without(1, &[SECCOMP])]);
    assert_eq!(plan::baseline(&probes).len(), 3);
}

#[test]
fn what_falls_with_the_others_says_nothing_about_itself() {
    let set = [MOUNT, SECCOMP];
    let mut matrix = matrix([(Key::without(0, &set), reached()), (Key::alone(0, &set, MOUNT), stopped())]);
    let fallen = Trial { fell: vec![SECCOMP], ..Trial::of(reached()) };
    matrix.record(Key::alone(0, &set, SECCOMP), fallen);
    let asked = Asked { declared: true, controls: vec![MOUNT], ..Asked::default() };
    let report = report(machine(), &asked, &probes(), &matrix);
    let declaration = report.probes[0].declared.as_ref().unwrap();
    assert_eq!((declaration.state, declaration.alone[1].outcome.word()), (Declared::Holds, "not_possible"));
    let [row] = report.controls.as_slice() else { panic!("{:?}", report.controls) };
    assert_eq!((row.falls.as_slice(), row.tried_alone, row.stops_alone), (&[SECCOMP][..], Some(1), Some(1)));
    assert!(row.opens[0].beside.is_empty(), "what fell was not on");
}

#[test]
fn what_gets_through_beside_a_control_that_it_declares_is_told() {
    let matrix = matrix([(Key::without(0, &[MOUNT]), reached())]);
    let report = report(machine(), &Asked { controls: vec![MOUNT], ..Asked::default() }, &probes(), &matrix);
    assert_eq!(report.controls[0].opens[0].beside, [SECCOMP]);
}
