//! The words that a probe's header is made of: classes of attack, kinds, what it is given, who has to have seen it.

use serde::Serialize;

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[expect(missing_docs, reason = "each is its word")]
        pub enum $name { $(#[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// All of them, in the order of every report.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word in a header.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// The one with this word.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| one.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

words! {
    /// A class of attack.
    Class {
        RuntimeBinary "runtime-binary",
        Descriptors "descriptors",
        MaskedPaths "masked-paths",
        Sysctl "sysctl",
        CgroupEscape "cgroup-escape",
        KernelSurface "kernel-surface",
        Namespaces "namespaces",
        PageCache "page-cache",
        IoUring "io-uring",
        OtherAbi "other-abi",
        ArgumentBits "argument-bits",
        Terminal "terminal",
        Network "network",
        SocketFamilies "socket-families",
        AbstractSockets "abstract-sockets",
        PathSockets "path-sockets",
        Processes "processes",
        Init "init",
        Privilege "privilege",
        Devices "devices",
        Ipc "ipc",
        Covert "covert",
        Memory "memory",
        ProcessCount "process-count",
        Processor "processor",
        Disk "disk",
        Outliving "outliving",
        Clock "clock",
        Output "output",
        Secrets "secrets",
        Files "files",
        Posture "posture",
    }
}

words! {
    /// Whether a probe attacks, or looks at its own process and reaches it if a control is not there.
    Kind {
        Attack "attack",
        Posture "posture",
    }
}

words! {
    /// Something outside of the cell that a probe is told of.
    Instrument {
        Tcp "tcp",
        Udp "udp",
        Abstract "abstract",
        Socket "socket",
        Victim "victim",
        OpenFile "open-file",
        OwnFile "own-file",
        Target "target",
        OwnTarget "own-target",
        Shm "shm",
        Msg "msg",
        Sem "sem",
        Mqueue "mqueue",
        Hostname "hostname",
    }
}

words! {
    /// Who has to have seen that a probe got through.
    Witness {
        Tcp "tcp",
        Udp "udp",
        Abstract "abstract",
        Socket "socket",
        Signal "signal",
        Secret "secret",
        Target "target",
        Throttled "throttled",
    }
}

impl Witness {
    /// What has to be given to the probe for this one to see anything; empty where nothing has to be.
    #[must_use]
    pub fn stands_at(self) -> &'static [Instrument] {
        match self {
            Self::Tcp => &[Instrument::Tcp],
            Self::Udp => &[Instrument::Udp],
            Self::Abstract => &[Instrument::Abstract],
            Self::Socket => &[Instrument::Socket],
            Self::Signal => &[Instrument::Victim],
            Self::Target => &[Instrument::Target, Instrument::OwnTarget],
            // The instance itself has a secret in its environment.
            Self::Secret | Self::Throttled => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_parses_back_and_stands_in_the_contract() {
        let contract = include_str!("../../../../tests/probes/README.md");
        let words = Class::ALL.iter().map(|word| word.as_str());
        let words = words.chain(Instrument::ALL.iter().map(|word| word.as_str()));
        let words = words.chain(Witness::ALL.iter().map(|word| word.as_str()));
        for word in words.chain(Kind::ALL.iter().map(|word| word.as_str())) {
            assert!(
                contract.contains(&format!("`{word}`")) || contract.contains(&format!("`witness: {word}`")),
                "{word}"
            );
        }
        assert!(Class::ALL.iter().all(|class| Class::parse(class.as_str()) == Some(*class)));
        assert_eq!((Class::parse("netwrok"), Witness::parse(""), Instrument::parse("TCP")), (None, None, None));
    }
}
