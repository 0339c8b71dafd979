//! Each mistake in a file next to the file without it.

use toolcell_types::LimitName;

use super::room::ALLOW_KEYS;
use super::*;
use crate::fixtures::STRICT;

/// A right tool, to be spoilt.
const GOOD: &str = r#"[tools.look]
description = "Lists a directory"
image = "host"
argv = ["ls", "--", "{path}"]
input_schema = { type = "object", required = ["path"], additionalProperties = false, properties = { path = { type = "string" } } }
permission = "allow"
roles = ["operator"]
effect_class = "read"
complete_exit_codes = [0]
transient_exit_codes = [75]
cwd = "/"
env = { TZ = "UTC" }
[tools.look.limits]
wall_ms = 2000
[tools.look.max_limits]
wall_ms = 3000
[tools.look.allow]
env = ["A"]
mounts = ["/data"]
stdin = true
image = ["host"]
"#;

fn faults(text: &str) -> Vec<String> {
    read(text.as_bytes()).err().unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Spoils one line; the one fault must be on that line and hold the word.
fn spoilt(from: &str, to: &str, word: &str) {
    assert!(GOOD.contains(from), "{from}");
    let found = faults(&GOOD.replacen(from, to, 1));
    let line = GOOD.lines().position(|line| line.contains(from)).unwrap() + 1;
    assert_eq!(found.len(), 1, "{to}: {found:?}");
    assert!(found[0].starts_with(&format!("tools.toml:{line}:")), "{to}: {found:?}");
    assert!(found[0].contains(word), "{to}: {word:?} in {found:?}");
}

#[test]
fn right_files_have_no_fault() {
    for text in [GOOD, STRICT, crate::Policy::BUILTIN_TOOLS, "[tools]"] {
        assert_eq!(faults(text), Vec::<String>::new());
    }
}

#[test]
fn unknown_keys_are_faults_at_every_level() {
    spoilt("permission = \"allow\"", "permision = 1\npermission = \"allow\"", "tools.look.permision is not a key");
    spoilt("wall_ms = 2000", "wall = 1\nwall_ms = 2000", "tools.look.limits.wall is not");
    spoilt("wall_ms = 3000", "wall = 1\nwall_ms = 3000", "tools.look.max_limits.wall is not");
    spoilt("stdin = true", "stdout = true\nstdin = true", "tools.look.allow.stdout is not");
    spoilt("[tools.look]", "tols = 1\n[tools.look]", "tols is not a key");
}

#[test]
fn values_are_of_their_kind_and_within_their_bounds() {
    for (from, to, word) in [
        ("description = \"Lists a directory\"", "description = \"\"", "one line"),
        ("description = \"Lists a directory\"", "description = \"a\\nb\"", "one line"),
        ("description = \"Lists a directory\"", "description = 1", "a text, got the number 1"),
        ("image = \"host\"", "image = \"Host\"", "name of an image"),
        ("image = \"host\"", "image = \"{path...}\"", "name of an image"),
        ("image = \"host\"", "image = \"{other}\"", "name of an image"),
        ("argv = [\"ls\", \"--\", \"{path}\"]", "argv = [\"\", \"--\", \"{path}\"]", "name of a program"),
        ("argv = [\"ls\", \"--\", \"{path}\"]", "argv = [\"ls\", 1, \"{path}\"]", "argv[1]"),
        ("argv = [\"ls\", \"--\", \"{path}\"]", "argv = [\"ls\", \"{path}\", \"--at={path}\"]", "stands alone"),
        ("argv = [\"ls\", \"--\", \"{path}\"]", "argv = [\"ls\", \"{path}\", \"{other}\"]", "no such argument"),
        ("argv = [\"ls\", \"--\", \"{path}\"]", "argv = [\"ls\", \"{path}\", \"{path...}\"]", "array"),
        ("permission = \"allow\"", "permission = \"maybe\"", "maybe"),
        ("permission = \"allow\"", "permission = \"ask\"", "not in this version"),
        ("roles = [\"operator\"]", "roles = []", "at least one"),
        ("roles = [\"operator\"]", "roles = [\"root\"]", "root"),
        ("roles = [\"operator\"]", "roles = [\"auditor\"]", "auditor"),
        ("roles = [\"operator\"]", "roles = \"operator\"", "an array"),
        ("effect_class = \"read\"", "effect_class = \"reads\"", "reads"),
        ("effect_class = \"read\"", "effect_class = \"write\"", "not in this version"),
        ("effect_class = \"read\"", "effect_class = \"external\"", "not in this version"),
        ("complete_exit_codes = [0]", "complete_exit_codes = [256]", "from 0 to 255"),
        ("complete_exit_codes = [0]", "complete_exit_codes = [-1]", "from 0 to 255"),
        ("complete_exit_codes = [0]", "complete_exit_codes = []", "at least one"),
        ("transient_exit_codes = [75]", "transient_exit_codes = [0]", "0 in both"),
        ("cwd = \"/\"", "cwd = \"work\"", "absolute path"),
        ("cwd = \"/\"", "cwd = \"{other}\"", "text argument"),
        ("env = { TZ = \"UTC\" }", "env = { \"T-Z\" = \"UTC\" }", "T-Z"),
        ("env = { TZ = \"UTC\" }", "env = { TZ = 1 }", "env.TZ"),
        ("wall_ms = 2000", "wall_ms = 0", "from 1 to"),
        ("wall_ms = 2000", "wall_ms = \"2s\"", "whole number"),
        ("wall_ms = 2000", "wall_ms = 2000.0", "whole number"),
        ("wall_ms = 3000", "wall_ms = 1999", "at least the tool's own limit, 2000"),
        ("env = [\"A\"]", "env = [\"A*\"]", "A*"),
        ("mounts = [\"/data\"]", "mounts = [\"data\"]", "absolute path"),
        ("mounts = [\"/data\"]", "mounts = [\"/data/\"]", "trailing"),
        ("stdin = true", "stdin = 1", "true or false"),
        ("image = [\"host\"]", "image = \"host\"", "an array"),
    ] {
        spoilt(from, to, word);
    }
}

#[test]
fn keys_that_are_missing_are_named_at_their_tool() {
    for key in ["description", "image", "argv", "permission", "roles"] {
        let line = GOOD.lines().find(|line| line.starts_with(key)).unwrap();
        let mut found = faults(&GOOD.replacen(line, "", 1));
        found.retain(|fault| !fault.contains("goes nowhere"));
        assert_eq!(found.len(), 1, "{found:?}");
        let key = format!("tools.look.{key} must be");
        assert!(found[0].starts_with("tools.toml:1:1: ") && found[0].contains(&key), "{found:?}");
    }
    assert_eq!(faults("").len(), 1);
    let defaults = "[tools.a]\ndescription = \"a\"\nimage = \"host\"\nargv = [\"a\"]\npermission = \"allow\"\n\
        roles = [\"caller\"]\ninput_schema = { type = \"object\", additionalProperties = false }";
    assert_eq!(faults(defaults), Vec::<String>::new());
}

#[test]
fn keys_of_later_versions_say_so() {
    for key in LATER_KEYS {
        spoilt("cwd = \"/\"", &format!("{key} = \"x\"\ncwd = \"/\""), "not in this version");
    }
}

/// Puts another schema in; returns what is wrong with it.
fn schema(text: &str) -> Vec<String> {
    let line = GOOD.lines().find(|line| line.starts_with("input_schema")).unwrap();
    faults(&GOOD.replacen(line, &format!("input_schema = {text}"), 1))
}

#[test]
fn schemas_are_checked_compiled_and_closed() {
    let around =
        |inner: &str| format!("{{ type = \"object\", additionalProperties = false, required = [\"path\"], {inner} }}");
    let path = "properties = { path = { type = \"string\"";
    for good in ["}}", ", pattern = \"^(a+)+$\" }}", ", format = \"date\" }}", ", minLength = 1.0 }}"] {
        assert_eq!(schema(&around(&format!("{path}{good}"))), Vec::<String>::new(), "{good}");
    }
    for (wrong, word) in [
        (", maxLenght = 1 }}", "properties.path.maxLenght"),
        (", maxLength = -1 }}", "input_schema.properties.path.maxLength"),
        (", pattern = \"(\" }}", "pattern"),
        (", pattern = '(a)\\1' }}", "pattern"),
        (", format = \"no-such-format\" }}", "format"),
        (", \"$ref\" = \"https://example.com/s.json\" }}", "not a JSON Schema"),
        (", \"$ref\" = \"file:///etc/passwd\" }}", "not a JSON Schema"),
        (", maximum = 9007199254740993 }}", "beyond"),
        (", maximum = inf }}", "a finite number"),
        (", default = 2026-01-01 }}", "dates are texts"),
        ("}, more = { type = \"string\" } }", "an argument that goes nowhere"),
    ] {
        let found = schema(&around(&format!("{path}{wrong}")));
        assert_eq!(found.len(), 1, "{wrong}: {found:?}");
        assert!(found[0].starts_with("tools.toml:5:") && found[0].contains(word), "{word:?} in {found:?}");
    }
    for (wrong, word) in [
        ("1", "a table"),
        (
            "{ type = \"object\", required = [\"path\"], properties = { path = { type = \"string\" } } }",
            "additionalProperties",
        ),
        (
            "{ additionalProperties = false, required = [\"path\"], properties = { path = { type = \"string\" } } }",
            "type",
        ),
        (
            "{ type = \"object\", additionalProperties = false, properties = { path = { type = \"string\" } } }",
            "`required`",
        ),
        (&around(&format!("\"$schema\" = \"http://json-schema.org/draft-07/schema#\", {path} }} }}")), "$schema"),
        (
            &around(&format!("\"$defs\" = {{ a = {{ allOf = [{{ typo = 1 }}] }} }}, {path} }} }}")),
            "$defs.a.allOf.0.typo",
        ),
    ] {
        let found = schema(wrong);
        assert!(found.len() == 1 && found[0].contains(word), "{word:?} in {found:?}");
    }
}

#[test]
fn what_is_no_toml_or_no_text_says_where() {
    for (text, place) in [
        ("[tools.a]\nargv = [", "tools.toml:2:"),
        ("[tools.a]\nargv = 1\nargv = 2", "tools.toml:3:"),
        ("tools = 1", "tools.toml:1:9"),
        ("[tools]\na = 1", "tools.toml:2:5"),
        ("[tools.A]", "tools.toml:1:"),
        ("[tool.a]", "tools.toml:1:"),
    ] {
        let found = faults(text);
        assert!(found.iter().any(|fault| fault.starts_with(place)), "{text:?}: {found:?}");
    }
    let wrong = read(b"[tools]\n# \xe4").err().unwrap();
    assert_eq!(wrong[0].to_string(), "tools.toml:2:3: not UTF-8 from here on");
    let large = vec![b'\n'; FILE_MAX_BYTES + 1];
    assert!(matches!(read(&large).err().unwrap()[..], [PolicyFault::FileSize { .. }]));
    assert!(!matches!(read(&large[1..]).err().unwrap()[..], [PolicyFault::FileSize { .. }]));
}

#[test]
fn all_mistakes_of_a_file_are_found_at_once() {
    let text = GOOD.replace("roles = ", "rolls = ").replace("\"/data\"", "\"data\"").replace("= 2000", "= 0");
    assert_eq!(faults(&text).len(), 4, "{:?}", faults(&text));
}

#[test]
fn success_and_try_again_have_customary_codes() {
    let codes = |stated: &str| {
        let lines = GOOD.replace("complete_exit_codes = [0]\n", stated).replace("transient_exit_codes = [75]\n", "");
        let tool = read(lines.as_bytes()).unwrap().remove(0).tool;
        (tool.complete_exit_codes, tool.transient_exit_codes)
    };
    assert_eq!(codes(""), (BTreeSet::from([0]), BTreeSet::from([75])));
    assert_eq!(codes("complete_exit_codes = [0, 75]\n"), (BTreeSet::from([0, 75]), BTreeSet::new()));
}

#[test]
fn every_key_is_described_in_the_crate_s_documentation() {
    let docs = include_str!("../lib.rs");
    let limits = LimitName::ALL.map(LimitName::as_str);
    let allow = ALLOW_KEYS.map(|key| format!("allow.{key}"));
    let allow = allow.iter().map(String::as_str);
    for key in TOOL_KEYS.into_iter().filter(|key| *key != "allow").chain(limits).chain(allow) {
        assert!(docs.contains(&format!("//! | `{key}` |")), "{key}");
    }
}

proptest::proptest! {
    #[test]
    fn a_spoilt_file_is_a_fault_with_a_place_or_a_right_file_and_never_a_panic(
        at in 0..GOOD.len(), gone in 0_usize..40, put in "[ -~\n\u{e4}\u{0}]{0,12}"
    ) {
        let mut text = GOOD.as_bytes().to_vec();
        text.splice(at..(at + gone).min(GOOD.len()), put.bytes());
        if let Err(found) = read(&text) {
            proptest::prop_assert!(!found.is_empty() && found.iter().all(|fault| fault.position().is_some()));
        }
    }
}
