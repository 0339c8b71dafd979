//! What is no limit: on the command line, over the API and in a policy, each wrong value is refused with its member,
//! what it was and what would be taken; nothing runs and nothing is written.

use serde_json::json;
use toolcell_tests::{CellWatch, Instance, Need, Request, Setup, needs, run};
use toolcell_types::{ErrorCode, LimitName, Verdict};

use super::well;

/// As it stands in a request, and as the refusal repeats it.
const WRONG: [(&str, &str); 17] = [
    ("0", "the number 0"),
    ("-1", "the number -1"),
    ("1.5", "the number 1.5"),
    ("1e-3", "the number 0.001"),
    ("9007199254740991", "the number 9007199254740991"),
    // Beyond 2^53 whole numbers get lost: no JSON of ours.
    ("9007199254740992", "9007199254740992"),
    ("18446744073709551615", "18446744073709551615"),
    ("18446744073709551616", "1.8446744073709552e19"),
    ("-0", "is -0"),
    ("\"10\"", "a text"),
    ("\"10MB\"", "a text"),
    ("\" 5\"", "a text"),
    ("\"\"", "a text"),
    ("null", "null"),
    ("true", "true"),
    ("[10]", "an array"),
    ("{\"ms\":10}", "an object"),
];

#[test]
fn every_wrong_value_of_every_limit_is_refused_over_the_api() {
    needs!(Need::Root);
    let instance = Instance::start();
    let (mut cells, entries) = (CellWatch::on(&instance), instance.receipts().len());
    let body = |member: &str, value: &str| {
        format!(r#"{{"call_id":"wrong","tool":"exec","args":{{"argv":["true"]}},{}}}"#, member.replace("@", value))
    };
    let mut connection = instance.connect();
    let mut ask = |member: &str, value: &str| {
        let headers = [("Content-Type", "application/json")];
        connection.ask("POST", "/v1/calls", &headers, body(member, value).as_bytes()).unwrap()
    };
    let members = LimitName::ALL.map(|name| (name.as_str(), format!(r#""limits":{{"{}":@}}"#, name.as_str())));
    let deadline = ("deadline_ms", r#""deadline_ms":@"#.to_owned());
    for (name, member) in members.iter().chain([&deadline]) {
        for (value, repeated) in WRONG {
            let problem = ask(member, value).problem(ErrorCode::InvalidRequest);
            let said = &problem.detail;
            assert!(said.contains(repeated), "{name} {value}: {said}");
            let is_json = repeated.starts_with(['t', 'a', 'n']);
            let expected = if is_json { "a whole number" } else { "line 1 column" };
            assert!(said.contains(name) && said.contains(expected), "{name} {value}: {said}");
            assert!(!problem.remedy.is_empty(), "{name} {value}");
        }
    }
    for value in ["null", "[]", "10", "\"\"", "true"] {
        let said = ask(r#""limits":@"#, value).problem(ErrorCode::InvalidRequest).detail;
        assert!(said.contains("limits must be an object"), "{value}: {said}");
    }
    assert_eq!((cells.cells(), instance.receipts().len()), (0, entries), "no cell and no entry");
    // The control; 1e3 is one of JSON's ways to write 1000.
    assert_eq!(ask(r#""limits":{"wall_ms":@}"#, "1e3").answer().verdict, Verdict::Exited { exit_code: 0 });
    assert_eq!((cells.cells(), instance.receipts().len()), (1, entries + 2));
}

/// Options, a value that is taken, and what is expected of the others.
const OPTIONS: [(&str, &str, &str); 9] = [
    ("--timeout", "5s", "ms, s, m or h"),
    ("--wall", "5s", "ms, s, m or h"),
    ("--cpu-time", "5s", "ms, s, m or h"),
    ("--memory", "10M", "whole number of bytes"),
    ("--tmp-size", "10M", "whole number of bytes"),
    ("--output-keep", "64k", "whole number of bytes"),
    ("--output-limit", "64k", "whole number of bytes"),
    ("--pids", "8", "whole number from"),
    ("--cpus", "0.5", "number of processors"),
];

const MISTYPED: [&str; 20] = [
    "0",
    "-1",
    "+5",
    "1e3",
    "0x10",
    " 5",
    "5 ",
    "5 s",
    "5sec",
    "5S",
    "10MB",
    "10 M",
    "M",
    "",
    "null",
    "true",
    "[1]",
    "1,5",
    "18446744073709551615",
    "99999999999999999999999",
];

#[test]
fn every_mistyped_value_of_every_option_is_refused_on_the_command_line() {
    needs!(Need::Root);
    let instance = Instance::start();
    for (option, right, expected) in OPTIONS {
        for value in MISTYPED {
            let word = format!("{option}={value}");
            let refused = run(&mut instance.cli(&["run", &word, "--", "true"]));
            let said = &refused.stderr;
            assert_eq!((refused.code, refused.stdout.len()), (125, 0), "{word}: {said}");
            assert!(said.contains(option) || option == "--wall" && said.contains("--timeout"), "{word}: {said}");
            assert!(said.contains(expected) && said.contains(&format!("{value:?}")), "{word}: {said}");
        }
        let word = format!("{option}={right}");
        assert_eq!(run(&mut instance.cli(&["run", &word, "--", "true"])).code, 0, "the control: {word}");
    }
    // docker's powers of 1000 are told apart from its letters.
    let refused = run(&mut instance.cli(&["run", "--memory=10MB", "--", "true"]));
    assert!(refused.stderr.contains("write 10m or 10MiB"), "{}", refused.stderr);
    let calls = instance.receipts().len() - 1;
    assert_eq!(calls, 2 * OPTIONS.len(), "only the controls came to the log");
}

/// One tool for each limit and each wrong value.
fn policy(values: &[&str]) -> String {
    let tool = |n: usize, limit: &str, value: &str| {
        format!(
            "[tools.t{n}]\ndescription = \"-\"\nimage = \"host\"\nargv = [\"true\"]\ninput_schema = {{ type = \"object\", additionalProperties = false, properties = {{}} }}\n\
             permission = \"allow\"\nroles = [\"operator\"]\n[tools.t{n}.limits]\n{limit} = {value}\n"
        )
    };
    let pairs = LimitName::ALL.into_iter().flat_map(|name| values.iter().map(move |value| (name.as_str(), *value)));
    pairs.enumerate().map(|(n, (limit, value))| tool(n, limit, value)).collect()
}

#[test]
fn every_wrong_value_of_every_limit_in_a_policy_is_named_and_nothing_starts() {
    needs!(Need::Root);
    let wrong = ["0", "-1", "1.5", "1e3", "9007199254740992", "\"10\"", "\"10MB\"", "true", "[10]", "{}", "1979-05-27"];
    let text = policy(&wrong);
    let refused = Setup::default().policy("tools.toml", &text).fails_to_start();
    assert_ne!(refused.code, 0);
    for (at, line) in
        text.lines().enumerate().filter(|(_, line)| LimitName::ALL.iter().any(|n| line.starts_with(n.as_str())))
    {
        let limit = line.split(' ').next().unwrap();
        let place = format!("tools.toml:{}:", at + 1);
        let said = refused.stderr.lines().find(|said| said.contains(&place));
        let said = said.unwrap_or_else(|| panic!("{line} in line {}: {}", at + 1, refused.stderr));
        assert!(said.contains(limit) && said.contains("a whole number from") && said.contains("got"), "{said}");
    }
    for spoilt in ["wall_ms =", "wall_ms = null", "wall_ms = 18446744073709551616", "wall_ms = 10ms"] {
        let text = policy(&["1000"]).replacen("wall_ms = 1000", spoilt, 1);
        let refused = Setup::default().policy("tools.toml", &text).fails_to_start();
        assert!(refused.code != 0 && refused.stderr.contains("tools.toml:9:"), "{spoilt}: {}", refused.stderr);
    }
    let right =
        policy(&["65536"]).replace("pids = 65536", "pids = 8").replace("cpu_millis = 65536", "cpu_millis = 500");
    let right = right.replace("memory_bytes = 65536", "memory_bytes = 33554432");
    let instance = Setup::default().policy("tools.toml", &right).start();
    well(&instance.call(&Request::tool("t0", json!({}))));
}
