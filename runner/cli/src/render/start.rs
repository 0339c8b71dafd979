//! Why a program of `run` did not start, in the words of its command line. The kernel gives an errno only,
//! which cannot tell everything apart; then all that it can mean is said.

/// The search path of a cell that is given none.
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The working directory of a cell that is given none.
const CWD: &str = "/tmp";

/// What was to be started, as far as the command line tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Program {
    name: String,
    path: String,
    cwd: String,
}

/// What happened, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NotStarted {
    /// What happened.
    pub(crate) what: String,
    /// What to do.
    pub(crate) hint: String,
}

impl Program {
    /// The program with the PATH that it is looked for in and its working directory, where they were named.
    pub(crate) fn new(name: String, path: Option<String>, cwd: Option<String>) -> Self {
        Self { name, path: path.unwrap_or_else(|| PATH.to_owned()), cwd: cwd.unwrap_or_else(|| CWD.to_owned()) }
    }

    /// The words for a stage and an errno that the command line can have caused.
    pub(crate) fn not_started(&self, stage: &str, errno: &str) -> Option<NotStarted> {
        let (what, hint) = match stage {
            "exec" => self.at_exec(errno),
            "cwd" => self.at_cwd(errno),
            _ => return None,
        };
        Some(NotStarted { what, hint: hint.to_owned() })
    }

    fn at_exec(&self, errno: &str) -> (String, &'static str) {
        let Self { name, path, .. } = self;
        match errno {
            "ENOENT" | "ENOTDIR" if name.contains('/') => (
                format!("{name}: not found inside the cell, or what starts it (its #! line, its loader) is not"),
                "inside are the programs of /usr; show others with --ro HOST:INSIDE, and what starts them as well",
            ),
            "ENOENT" | "ENOTDIR" => (
                format!(
                    "{name}: not found inside the cell (looked in PATH={path}), or what starts it (its #! line, its \
                     loader) is not"
                ),
                "inside are the programs of /usr; show others with --ro HOST:INSIDE and name their path inside, or add \
                 their folder with -e PATH=…",
            ),
            "EACCES" => (
                format!("{name}: found, but not executable"),
                "the program is nobody inside: everybody must be able to execute the file (chmod a+rx) and to enter the \
                 folders above it (a+x)",
            ),
            "ENOEXEC" => (
                format!("{name}: no #! line and no program"),
                "write a first line like #!/bin/sh, or name the interpreter: -- sh FILE",
            ),
            "E2BIG" => {
                (format!("{name}: its arguments and variables are too long"), "pass less, or as a file with --ro")
            }
            errno => (format!("{name}: found, but cannot be executed: {errno}"), "execve(2) explains the error"),
        }
    }

    fn at_cwd(&self, errno: &str) -> (String, &'static str) {
        let cwd = &self.cwd;
        match errno {
            "ENOENT" => {
                (format!("there is no folder {cwd} inside"), "show it with --ro HOST:INSIDE, or choose another -w")
            }
            "ENOTDIR" => (format!("{cwd} is no folder inside"), "choose another -w"),
            "EACCES" => (
                format!("the folder {cwd} cannot be entered inside"),
                "the program is nobody inside: everybody must be able to enter it and the folders above it (chmod a+x), \
                 or choose another -w",
            ),
            errno => (format!("the folder {cwd} cannot be entered inside: {errno}"), "choose another -w"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_its_own_words_and_a_way_on() {
        let bare = Program::new("nosuchprog".to_owned(), None, Some("/nosuch".to_owned()));
        let path = Program::new("/x".to_owned(), Some("/opt/bin".to_owned()), None);
        let mut lines = Vec::new();
        for (program, stage, errno) in [
            (&bare, "exec", "ENOENT"),
            (&path, "exec", "ENOENT"),
            (&path, "exec", "ENOTDIR"),
            (&path, "exec", "EACCES"),
            (&path, "exec", "ENOEXEC"),
            (&path, "exec", "E2BIG"),
            (&path, "exec", "ELOOP"),
            (&bare, "cwd", "ENOENT"),
            (&bare, "cwd", "ENOTDIR"),
            (&bare, "cwd", "EACCES"),
            (&bare, "cwd", "ELOOP"),
        ] {
            let NotStarted { what, hint } = program.not_started(stage, errno).unwrap();
            lines.push(format!("{stage} {errno}: {what}\n  {hint}"));
        }
        insta::assert_snapshot!(lines.join("\n"));
        assert_eq!(bare.not_started("mounts", "ENOENT"), None, "that is not the program's");
    }

    #[test]
    fn the_path_that_was_set_is_the_one_that_is_told() {
        let program = Program::new("x".to_owned(), Some("/opt/bin".to_owned()), None);
        assert!(program.not_started("exec", "ENOENT").unwrap().what.contains("PATH=/opt/bin)"));
    }
}
