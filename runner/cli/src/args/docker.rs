//! docker's options that have nothing to do here: refused by name, with what to do instead.
//!
//! They are no arguments of ours, so that a typing error is never taken for one of them; only when the command line has
//! an option that nobody knows, it is looked up here.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// An option of `docker run` that was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Foreign {
    /// Its long name, with the short one if it has one.
    pub(crate) name: &'static str,
    /// Why it is not taken, and what to do.
    pub(crate) instead: &'static str,
}

const fn foreign(name: &'static str, instead: &'static str) -> Foreign {
    Foreign { name, instead }
}

const FOREIGN: &[Foreign] = &[
    foreign("--rm", "leave it out: every cell is thrown away"),
    foreign("-i, --interactive", "give the program its input with --stdin FILE, or with --stdin - what comes in here"),
    foreign("-t, --tty", "leave it out: a cell has no terminal"),
    foreign("-u, --user", "leave it out: the program always is nobody, a user of its own without any right"),
    foreign("-p, --publish", "leave it out: a cell has no network"),
    foreign("-P, --publish-all", "leave it out: a cell has no network"),
    foreign("-d, --detach", "start it in the background of your shell, or submit the call by HTTP"),
    foreign("-m", "write --memory"),
    foreign("-c, --cpu-shares", "write --cpus"),
    foreign("--hostname", "leave it out: a cell has a host name of its own"),
    foreign("--name", "write --call-id, which names the call"),
    foreign("--entrypoint", "write the program and its arguments behind --"),
    foreign("--init", "leave it out: every cell has an init"),
    foreign("--env-file", "write each variable with -e NAME=VALUE"),
    foreign("--mount", "write --ro HOST:INSIDE"),
    foreign("--volumes-from", "write --ro HOST:INSIDE"),
    foreign("--tmpfs", "use /tmp, whose size is --tmp-size"),
    foreign("--shm-size", "write --tmp-size, which is for /tmp and /dev/shm together"),
    foreign("--ulimit", "write --open-files, --file-size, --pids or --cpu-time"),
    foreign("--memory-swap", "leave it out: --memory counts swap as well"),
    foreign("--privileged", "leave it out: no cell has any privilege"),
    foreign("--cap-add", "leave it out: no cell has any capability"),
    foreign("--cap-drop", "leave it out: no cell has any capability"),
    foreign("--security-opt", "leave it out: all controls are always on"),
    foreign("--device", "leave it out: a cell has no device of the machine"),
    foreign("--gpus", "leave it out: a cell has no device of the machine"),
    foreign("--net", "write --network none, or leave it out"),
    foreign("--add-host", "leave it out: a cell has no network"),
    foreign("--dns", "leave it out: a cell has no network"),
    foreign("--restart", "leave it out: a call runs at most once"),
    foreign("--pull", "leave it out: the image `host` is this machine's own"),
];

/// The option of docker's that `error` is about, if that is what is wrong.
pub(crate) fn foreign_in(error: &clap::Error) -> Option<Foreign> {
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else { return None };
    let typed = typed.split('=').next().unwrap_or_default();
    FOREIGN.iter().find(|one| one.name.split(", ").any(|name| name == typed)).copied()
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    fn told(words: &[&str]) -> Option<&'static str> {
        let error = Cli::try_parse_from(["toolcell", "run"].iter().chain(words)).unwrap_err();
        foreign_in(&error).map(|one| one.name)
    }

    #[test]
    fn docker_s_habits_are_refused_by_name() {
        for (words, name) in [
            (["--rm", "--", "true"].as_slice(), "--rm"),
            (&["-i", "cat"], "-i, --interactive"),
            (&["-it", "sh"], "-i, --interactive"),
            (&["-t", "sh"], "-t, --tty"),
            (&["--user", "1000", "id"], "-u, --user"),
            (&["--user=1000", "id"], "-u, --user"),
            (&["-u", "1000", "id"], "-u, --user"),
            (&["-p", "80:80", "nginx"], "-p, --publish"),
            (&["-p80:80", "nginx"], "-p, --publish"),
            (&["--name", "x", "true"], "--name"),
        ] {
            assert_eq!(told(words), Some(name), "{words:?}");
        }
        assert_eq!(told(&["--nonsense", "true"]), None);
        assert_eq!(told(&["--memory", "0", "true"]), None);
    }

    #[test]
    fn none_of_them_is_an_option_of_ours() {
        for one in FOREIGN.iter().flat_map(|one| one.name.split(", ")) {
            let Err(error) = Cli::try_parse_from(["toolcell", "run", one, "x", "true"]) else { panic!("{one}") };
            assert!(foreign_in(&error).is_some(), "{one}: {error}");
        }
    }
}
