//! Why a process could not be shut in.

use std::io;

use toolcell_sys::BecomeError;

/// What is tried before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Reading the root folder.
    ReadRoot,
    /// Binding a TCP port.
    Tcp,
    /// Connecting to an abstract socket from before.
    AbstractSocket,
    /// Sending no signal to the parent, which asks for the right alone (kill(2)).
    Signal,
    /// Making an Internet socket.
    Socket,
}

impl std::fmt::Display for Act {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ReadRoot => "reading the root folder",
            Self::Tcp => "binding a TCP port",
            Self::AbstractSocket => "connecting to an abstract socket",
            Self::Signal => "signalling the parent",
            Self::Socket => "making an Internet socket",
        })
    }
}

/// Why a process could not be shut in. It must end.
#[derive(Debug, thiserror::Error)]
pub enum ConfinementError {
    /// No root of its own.
    #[error("it cannot enter a root of its own")]
    Root {
        /// What the kernel said.
        source: io::Error,
    },
    /// Privilege was not given up.
    #[error("it cannot give up its privilege")]
    Privilege {
        /// What failed.
        source: BecomeError,
    },
    /// The folder that stays cannot be opened any more.
    #[error("it cannot open {path} in its own root")]
    Folder {
        /// Which.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// Landlock is not there, or refused.
    #[error("Landlock cannot restrict what it may open")]
    Landlock {
        /// What the kernel said.
        source: landlock::RulesetError,
    },
    /// The folder's rule cannot be made.
    #[error("Landlock gets no hold of {path}")]
    Rule {
        /// Of which folder.
        path: String,
        /// What the kernel said.
        source: landlock::PathFdError,
    },
    /// Landlock did less than it was asked for, or is not there.
    #[error("Landlock is {found} here, and is needed")]
    Weak {
        /// What it is.
        found: &'static str,
    },
    /// The list of calls is no filter, or could not be installed.
    #[error("the list of its system calls cannot be put in force")]
    Calls {
        /// seccompiler's word.
        source: seccompiler::Error,
    },
    /// The data lacks a list.
    #[error("the data of its system calls has no list named {name}")]
    List {
        /// Which.
        name: &'static str,
    },
    /// What has to fail later fails already: then its failing would prove nothing.
    #[error("{act} does not work before it is forbidden, so that it cannot be seen to be")]
    Instrument {
        /// What.
        act: Act,
        /// What the kernel said.
        source: io::Error,
    },
    /// What is forbidden works, or fails for another reason.
    #[error("{act} is forbidden, and ends with errno {got} instead of {expected}")]
    Open {
        /// What.
        act: Act,
        /// The kernel's number, 0 for success.
        got: i32,
        /// The number that a refusal has.
        expected: i32,
    },
    /// The kernel does not say that filters are in force.
    #[error("the kernel names seccomp mode {mode} where it has to be 2")]
    Mode {
        /// The mode it names.
        mode: i64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_happened() {
        let refused = || io::Error::from_raw_os_error(1);
        let errors = [
            ConfinementError::Root { source: refused() },
            ConfinementError::Privilege { source: BecomeError::ReadBack { what: "no_new_privs" } },
            ConfinementError::Folder { path: "/state".to_owned(), source: refused() },
            ConfinementError::Weak { found: "not there" },
            ConfinementError::Calls { source: seccompiler::Error::EmptyFilter },
            ConfinementError::List { name: "fatal" },
            ConfinementError::Instrument { act: Act::AbstractSocket, source: refused() },
            ConfinementError::Open { act: Act::Signal, got: 0, expected: 1 },
            ConfinementError::Mode { mode: 0 },
        ];
        insta::assert_snapshot!(errors.map(|error| error.to_string()).join("\n"));
    }
}
