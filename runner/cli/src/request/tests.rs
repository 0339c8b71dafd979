//! From a command line to the request's bytes.

use std::os::unix::ffi::OsStringExt as _;

use clap::Parser as _;

use super::*;
use crate::args::{Cli, Command};

fn around(stdin: Option<&[u8]>) -> Surroundings<'static> {
    Surroundings {
        fresh_id: CallId::new("fresh").unwrap(),
        stdin: stdin.map(<[u8]>::to_vec),
        variable: &|name| (name == "HERE").then(|| "caller".into()),
        resolve: &|path| Ok(PathBuf::from("/real").join(path.trim_start_matches(['.', '/']))),
        absolute: &|path| Ok(PathBuf::from("/work").join(path.trim_start_matches("./"))),
    }
}

fn prepared(line: &[&str], stdin: Option<&[u8]>) -> Result<Prepared, RequestError> {
    let command = Cli::try_parse_from(["toolcell"].iter().chain(line)).unwrap().command;
    if let Command::Run(args) = &command {
        return of_run(args, around(stdin));
    }
    let Command::Call(args) = &command else { panic!("{command:?}") };
    of_call(args, around(stdin))
}

fn body(line: &[&str]) -> String {
    String::from_utf8(prepared(line, None).unwrap().body.into()).unwrap()
}

#[test]
fn a_plain_run_states_nothing_but_the_program() {
    insta::assert_snapshot!(body(&["run", "--", "python3", "-c", "print(6*7)"]),
        @r#"{"args":{"argv":["python3","-c","print(6*7)"]},"call_id":"fresh","tool":"exec"}"#);
}

#[test]
fn the_program_s_own_options_are_left_alone() {
    insta::assert_snapshot!(body(&["run", "ls", "--json", "-e", "--memory=0", "--"]),
        @r#"{"args":{"argv":["ls","--json","-e","--memory=0","--"]},"call_id":"fresh","tool":"exec"}"#);
}

#[test]
fn every_option_has_its_place() {
    let line = [
        "run",
        "--image",
        "host",
        "-w",
        "/data",
        "--ro",
        "./set",
        "--ro",
        "/a:/b",
        "-v",
        "./d:/d:ro",
        "-e",
        "A=1",
        "-e",
        "HERE",
        "-e",
        "A=2",
        "--timeout",
        "30s",
        "--cpu-time",
        "5",
        "--memory",
        "64m",
        "--pids-limit",
        "8",
        "--cpus",
        "0.5",
        "--output-keep",
        "1k",
        "--output-limit",
        "2k",
        "--tmp-size",
        "3m",
        "--tmp-files",
        "100",
        "--file-size",
        "4MiB",
        "--open-files",
        "32",
        "--call-id",
        "mine",
        "--read-only",
        "--network",
        "none",
        "--",
        "true",
    ];
    insta::assert_snapshot!(body(&line), @r#"{"args":{"argv":["true"],"cwd":"/data","image":"host"},"call_id":"mine","env":{"A":"2","HERE":"caller"},"limits":{"cpu_millis":500,"cpu_ms":5000,"file_bytes":4194304,"memory_bytes":67108864,"open_files":32,"output_keep_bytes":1024,"output_limit_bytes":2048,"pids":8,"tmp_bytes":3145728,"tmp_inodes":100,"wall_ms":30000},"mounts":[{"host":"/real/set","inside":"/work/set","mode":"ro"},{"host":"/real/a","inside":"/b","mode":"ro"},{"host":"/real/d","inside":"/d","mode":"ro"}],"tool":"exec"}"#);
}

#[test]
fn docker_s_and_our_names_mean_the_same() {
    let ours = body(&["run", "--ro", "./d:/d", "--wall", "9s", "--pids", "7", "--", "true"]);
    let docker = body(&["run", "--volume=./d:/d:ro", "--timeout=9s", "--pids-limit=7", "--", "true"]);
    assert_eq!(ours, docker);
}

#[test]
fn standard_input_is_text_or_base64() {
    let with = |bytes: &[u8]| String::from_utf8(prepared(&["run", "cat"], Some(bytes)).unwrap().body.into()).unwrap();
    assert!(with(b"a\n").contains(r#""stdin":"a\n""#));
    assert!(with(b"\xff\x00").contains(r#""stdin":{"base64":"/wA="}"#));
    assert!(with(b"").contains(r#""stdin":"""#));
}

#[test]
fn a_call_brings_the_tool_s_arguments() {
    insta::assert_snapshot!(body(&["call", "python", r#"{"code":"print(1)"}"#, "--memory", "1g"]),
        @r#"{"args":{"code":"print(1)"},"call_id":"fresh","limits":{"memory_bytes":1073741824},"tool":"python"}"#);
}

#[test]
fn arguments_of_a_call_are_one_strict_object() {
    for bad in ["", "[]", "1", r#"{"a":1,"a":2}"#, "{} {}", r#"{"n":9007199254740993}"#] {
        let error = prepared(&["call", "python", bad], None).unwrap_err();
        assert!(error.to_string().starts_with("ARGS_JSON"), "{bad}: {error}");
    }
}

#[test]
fn a_variable_that_is_not_there_is_an_error() {
    let error = prepared(&["run", "-e", "NOWHERE", "true"], None).unwrap_err();
    assert_eq!(error.to_string(), "-e NOWHERE: there is no such variable here");
}

#[test]
fn an_argument_that_is_not_utf8_is_an_error() {
    let line = ["toolcell".into(), "run".into(), OsString::from_vec(vec![0xff])];
    let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
    assert!(matches!(of_run(&args, around(None)), Err(RequestError::NotUtf8 { .. })));
}

#[test]
fn a_request_that_is_too_long_is_an_error() {
    let error = prepared(&["run", "cat"], Some(&vec![b'x'; BODY_MAX_BYTES])).unwrap_err();
    assert!(matches!(error, RequestError::TooLong { .. }), "{error}");
}
