use super::*;

const GOOD: &str = "#!/usr/bin/env python3
# class: network
# tries: connect to a TCP port: on the loopback of the machine
# stopped-by: seccomp namespace.net landlock.net
# needs: tcp
# witness: tcp secret
# limits: wall_ms=2000 pids=16
# source: CVE-2024-29021
#
# Words: they are no header any more.
import socket
";

fn fault(text: &str) -> (usize, String) {
    let error = read("x.py", text, Language::Python).unwrap_err();
    (error.line, error.fault.to_string())
}

#[test]
fn a_header_is_read_whole() {
    let header = read("tcp.py", GOOD, Language::Python).unwrap();
    assert_eq!((header.class, header.kind), (Class::Network, Kind::Attack));
    assert_eq!(header.tries, "connect to a TCP port: on the loopback of the machine");
    assert_eq!(header.stopped_by, [ControlId::NamespaceNet, ControlId::LandlockNet, ControlId::Seccomp]);
    assert_eq!((header.needs, header.witness), (vec![Instrument::Tcp], vec![Witness::Tcp, Witness::Secret]));
    assert_eq!((header.limits.wall_ms, header.limits.pids, header.limits.cpu_ms), (Some(2000), Some(16), None));
    assert_eq!(header.source.as_deref(), Some("CVE-2024-29021"));
}

#[test]
fn c_has_its_own_comments() {
    let text = GOOD.lines().skip(1).collect::<Vec<_>>().join("\n").replace('#', "//");
    assert_eq!(read("x.c", &text, Language::C).unwrap(), read("x.py", GOOD, Language::Python).unwrap());
    assert_eq!(read("x.c", GOOD, Language::C).unwrap_err().fault, Fault::Missing { key: "class" });
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    assert_eq!(fault(&GOOD.replace("class:", "klass:")).0, 2);
    assert!(fault(&GOOD.replace("class:", "klass:")).1.contains("\"klass\" is unknown; the keys are class, tries"));
    assert_eq!(fault(&GOOD.replace("seccomp", "seccom")), (4, "stopped-by does not take \"seccom\"".to_owned()));
    assert_eq!(fault(&GOOD.replace("needs: tcp", "needs: tpc")), (5, "needs does not take \"tpc\"".to_owned()));
    assert_eq!(fault(&GOOD.replace("landlock.net", "seccomp")), (4, "\"seccomp\" stands here twice".to_owned()));
    assert_eq!(fault(&GOOD.replace("# needs: tcp", "# class: init")), (5, "\"class\" stands here twice".to_owned()));
    assert_eq!(fault(&GOOD.replace("# needs: tcp", "# just words")).0, 5);
    assert_eq!(fault(&GOOD.replace("class: network", "class:")), (2, "class is missing".to_owned()));
    assert_eq!(fault(&GOOD.replace("# tries: connect", "# source: connect")).0, 8);
    assert_eq!(fault("import socket\n"), (1, "class is missing".to_owned()));
}

#[test]
fn limits_are_named_numbers_within_their_bounds() {
    for bad in ["wall_ms=+2000", "wall_ms=-1", "wall=1", "wall_ms", "wall_ms=0", "wall_ms=1 wall_ms=2"] {
        assert_eq!(fault(&GOOD.replace("wall_ms=2000", bad)).0, 7, "{bad}");
    }
}

#[test]
fn a_witness_stands_at_what_the_probe_is_given() {
    let other = GOOD.replace("needs: tcp", "needs: udp");
    assert!(fault(&other).1.contains("the witness tcp sees nothing"));
    assert!(read("x.py", &other.replace("witness: tcp", "witness: udp"), Language::Python).is_ok());
}
