//! The policy as a whole: its files, its digest, what each role sees.

use toolcell_types::Limits;

use super::*;
use crate::fixtures::{STRICT, policy, somebody};

fn files(names: &[&str]) -> Vec<(String, Vec<u8>)> {
    names.iter().map(|name| ((*name).to_owned(), STRICT.as_bytes().to_vec())).collect()
}

#[test]
fn the_built_in_policy_is_right_and_gives_exec_what_the_contract_says() {
    let policy = Policy::builtin().unwrap();
    let tools = policy.tools_for(&somebody(Role::Operator));
    assert_eq!(tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["exec", "python"]);
    let (exec, python) = (&tools[0], &tools[1]);
    assert_eq!((exec.limits, python.limits, python.max_limits), (Limits::default(), Limits::default(), python.limits));
    let most = exec.max_limits;
    assert_eq!((most.wall_ms, most.cpu_ms, most.memory_bytes), (3_600_000, 3_600_000, 4 << 30));
    assert_eq!((most.pids, most.cpu_millis), (1024, 4000));
    assert!(policy.check_images(&["host"]).is_ok());
}

#[test]
fn each_role_sees_its_tools_and_an_auditor_sees_all_and_may_call_none() {
    let seen = |role| {
        let tools = policy(STRICT).tools_for(&somebody(role));
        tools.into_iter().map(|tool| format!("{} {}", tool.name, tool.permission)).collect::<Vec<_>>()
    };
    assert_eq!(seen(Role::Caller), ["show allow", "shut deny"]);
    assert_eq!(seen(Role::Operator), ["hidden allow", "show allow", "shut deny"]);
    assert_eq!(seen(Role::Auditor), ["hidden deny", "show deny", "shut deny"]);
}

#[test]
fn a_policy_is_one_file_of_that_name_and_nothing_else() {
    assert!(Policy::parse(&files(&["tools.toml"])).is_ok());
    for names in [
        &[][..],
        &["tools.toml", "tools.toml"],
        &["tools.toml", "tols.toml"],
        &["tools.toml", "rules.toml"],
        &["tools.toml", "principals.toml"],
        &["Tools.toml"],
        &["tools.toml~", "tools.toml"],
    ] {
        assert!(Policy::parse(&files(names)).is_err(), "{names:?}");
    }
}

#[test]
fn the_digest_is_over_name_nul_hex_lf() {
    let policy = policy(STRICT);
    let line = format!("tools.toml\0{}\n", sha256(STRICT.as_bytes()).hex());
    assert_eq!(policy.digest(), sha256(line.as_bytes()));
    let sorted = digest(&[("b".into(), vec![1]), ("a".into(), vec![2])]);
    assert_eq!(sorted, digest(&[("a".into(), vec![2]), ("b".into(), vec![1])]));
}

#[test]
fn a_tool_s_digest_changes_with_its_meaning_and_not_with_its_spelling() {
    let digest = |tools: &str| policy(tools).tools_for(&somebody(Role::Operator))[1].digest;
    let one = digest(STRICT);
    assert_eq!(digest(&STRICT.replace("[tools.show]", "# a comment\n[tools.show]")), one);
    assert_eq!(digest(&STRICT.replace("wall_ms = 2000", "wall_ms = 2_000\npids = 64")), one, "a default, written out");
    for (from, to) in [
        ("Prints what", "Prints all"),
        ("\"--\", ", ""),
        ("[0, 1]", "[0]"),
        ("TZ = \"UTC\"", "TZ = \"CET\""),
        ("wall_ms = 2000", "wall_ms = 2001"),
        ("mounts = [\"/data\"", "mounts = [\"/date\""),
        ("stdin = true", "stdin = false"),
        ("maxLength = 200000", "maxLength = 200001"),
    ] {
        let changed = STRICT.replacen(from, to, 1);
        assert_ne!(changed, STRICT, "{from}");
        assert_ne!(digest(&changed), one, "{from}");
    }
}

#[test]
fn an_image_that_is_not_there_is_found_with_its_place() {
    let policy = policy(STRICT);
    assert!(policy.check_images(&["host", "other"]).is_ok());
    let wrong = policy.check_images(&["host"]).unwrap_err();
    let line = STRICT.lines().position(|line| line == "image = [\"host\", \"other\"]").unwrap() + 1;
    assert_eq!(wrong.faults().len(), 1);
    assert_eq!(wrong.faults()[0].position().unwrap().to_string(), format!("tools.toml:{line}:18"));
    assert_eq!(policy.check_images(&[]).unwrap_err().faults().len(), 4);
}
