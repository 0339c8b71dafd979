//! The command line itself: that it is sound, that wrong values are told, and what the help says.

use clap::{CommandFactory as _, Parser as _};

use super::*;

fn error(line: &[&str]) -> String {
    Cli::try_parse_from(["toolcell"].iter().chain(line)).unwrap_err().to_string()
}

fn help(path: &[&str]) -> String {
    let mut command = Cli::command().term_width(100);
    command.build();
    let mut found = &mut command;
    for name in path {
        found = found.find_subcommand_mut(name).unwrap();
    }
    found.render_long_help().to_string()
}

#[test]
fn the_command_line_is_sound() {
    Cli::command().debug_assert();
}

#[test]
fn wrong_amounts_are_told_with_what_is_expected() {
    for (line, expected) in [
        (["run", "--memory", "0", "true"], "expected a whole number of bytes"),
        (["run", "--memory", "-1", "true"], "expected a whole number of bytes"),
        (["run", "--memory", "64mb", "true"], "expected a whole number of bytes"),
        (["run", "--memory", "64MB", "true"], "m means MiB: write 64m or 64MiB"),
        (["receipts", "--json", "--after", "abc"], "expected the index of an entry"),
        (["run", "--timeout", "10x", "true"], "expected a whole number with the unit"),
        (["run", "--wall", "-5", "true"], "expected a whole number with the unit"),
        (["run", "--pids-limit", "-1", "true"], "expected a whole number from 2"),
        (["run", "--cpus", "0", "true"], "expected a number of processors"),
        (["run", "--output-limit", "99999999999999999999", "true"], "expected a whole number of bytes"),
        (["run", "--network", "host", "true"], "expected none"),
        (["run", "-v", "/a:/b", "true"], "add :ro"),
        (["run", "-v", "/a:/b:z", "true"], "expected HOST:INSIDE:ro"),
        (["run", "-e", "1=2", "true"], "expected NAME=VALUE"),
        (["run", "-w", "tmp", "true"], "expected an absolute path inside"),
        (["run", "--call-id", "a/b", "true"], "call_id must match"),
        (["run", "--nonsense", "--", "true"], "unexpected argument '--nonsense'"),
        (["run", "--accept-unavailable", "seccom", "true"], "expected names of controls"),
        (["serve", "--socket-mode", "0777", "--detach"], "expected an octal mode"),
        (
            ["ablate", "--controls", "seccom", "--json"],
            "there is no control \"seccom\"; the controls are namespace.user",
        ),
        (["ablate", "--pairs", "seccomp", "--json"], "expected at least two controls"),
        (["ablate", "--probes", "(", "--json"], "unclosed group"),
        (["serve", "--idle-exit", "0", "--detach"], "expected a whole number of seconds"),
    ] {
        let told = error(&line);
        assert!(told.contains(expected), "{line:?}: {told}");
    }
}

#[test]
fn run_takes_the_program_with_and_without_the_two_dashes() {
    for line in [["toolcell", "run", "--", "ls", "-l"].as_slice(), &["toolcell", "run", "ls", "-l"]] {
        let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
        assert_eq!(args.argv, ["ls", "-l"]);
    }
}

#[test]
fn help_of_all_commands() {
    insta::assert_snapshot!("help", help(&[]));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!("help_run", help(&["run"]));
}

#[test]
fn help_of_serve() {
    insta::assert_snapshot!("help_serve", help(&["serve"]));
}

#[test]
fn help_of_ablate() {
    insta::assert_snapshot!("help_ablate", help(&["ablate"]));
}

#[test]
fn help_of_the_other_commands() {
    let names =
        [["call"].as_slice(), &["tools"], &["calls"], &["cancel"], &["receipts"], &["keys", "show"], &["verify"]];
    let texts: Vec<String> = names.iter().map(|path| help(path)).collect();
    insta::assert_snapshot!("help_others", texts.join("\n────\n"));
}

#[test]
fn the_help_of_doctor_names_every_code_that_it_ends_with() {
    use crate::exit::Exit;
    for exit in [Exit::Ok, Exit::Failed, Exit::Usage, Exit::Cancelled, Exit::BrokenPipe] {
        let code = exit.code().to_string();
        assert!(DOCTOR_HELP.split([' ', '(', '\n']).any(|word| word == code), "{exit:?}");
    }
}
