//! Why the signer does not start, or ends.

use std::io::ErrorKind;

/// Why the signer does not start, or ends. Each is final: the start of the next one settles what was open.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// A file could not be used.
    #[error("{name} in the signer's directory could not be {doing}")]
    File {
        /// Which, relative to the directory.
        name: &'static str,
        /// What was being done.
        doing: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// Somebody else could read or change it.
    #[error("{name} in the signer's directory must be {expected}, it is {found}")]
    FileMode {
        /// Which.
        name: &'static str,
        /// What it has to be.
        expected: &'static str,
        /// What it is.
        found: String,
    },
    /// The key file holds no key.
    #[error("the key file holds no Ed25519 key in PKCS#8 PEM")]
    Key {
        /// What the decoder said.
        source: ed25519_dalek::pkcs8::Error,
    },
    /// The key file holds no text.
    #[error("the key file is not text")]
    KeyText {
        /// What the decoder said.
        source: std::str::Utf8Error,
    },
    /// The public half has no PEM form.
    #[error("the public key could not be written as PEM")]
    PublicKey {
        /// What the encoder said.
        source: toolcell_receipts::KeyError,
    },
    /// The kernel gave no random bytes.
    #[error("no random bytes for a new key")]
    Random {
        /// What the kernel said.
        source: getrandom::Error,
    },
    /// The page with the key could not be kept out of swap.
    #[error("the key could not be locked in memory")]
    Lock {
        /// What the kernel said.
        source: region::Error,
    },
    /// There is a key, and no memory of what it signed.
    #[error("the memory of what the key signed is {what}")]
    Memory {
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is a memory of signed entries, and no key.
    #[error("the key is gone, but {entries} entries were signed with it")]
    KeyLost {
        /// How many.
        entries: u64,
    },
    /// The socket failed.
    #[error("the daemon's socket failed")]
    Socket {
        /// What the kernel said.
        source: std::io::Error,
    },
    /// A message that no daemon of ours sends, or none that can be encoded.
    #[error("a message is {got} bytes long, at most {most} are possible")]
    Length {
        /// Its length in bytes.
        got: usize,
        /// The most that is possible.
        most: usize,
    },
    /// A message or a memory that cannot be decoded or encoded.
    #[error("{what} has a form that this version does not know")]
    Encoding {
        /// Which.
        what: &'static str,
        /// What the decoder said.
        source: postcard::Error,
    },
}

impl SignerError {
    /// What to do next.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::File { source, .. } if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                "free space on the state's file system, then start again; nothing was signed meanwhile"
            }
            Self::File { .. } => "make the signer's directory (0700) and its files belong to the signer's user",
            Self::FileMode { .. } => {
                "make the directory 0700 and its files 0600, owned by the signer's user; if others could read the key, \
                 start a new state"
            }
            Self::Key { .. } | Self::KeyText { .. } | Self::KeyLost { .. } => {
                "put the key file back from a copy of it, or start a new state with a new key"
            }
            Self::Memory { .. } => {
                "start a new state with a new key: with a lost or older memory a second entry could be signed for an \
                 index that was handed out"
            }
            Self::PublicKey { .. } | Self::Length { .. } | Self::Encoding { .. } => "report this with the log",
            Self::Random { .. } => "see getrandom(2); the kernel must have a random source",
            Self::Lock { .. } => "raise RLIMIT_MEMLOCK for the signer to at least 64 KiB",
            Self::Socket { .. } => "start toolcell again",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_says_what_happened_and_what_to_do() {
        let io = || std::io::Error::from_raw_os_error(13);
        let all = [
            SignerError::File { name: "key.pem", doing: "opened", source: io() },
            SignerError::File {
                name: "public.pem.new",
                doing: "written",
                source: std::io::Error::from_raw_os_error(28),
            },
            SignerError::FileMode {
                name: "key.pem",
                expected: "a plain file of this user with mode 0600",
                found: "of mode 0640".to_owned(),
            },
            SignerError::Key { source: ed25519_dalek::pkcs8::Error::ParametersMalformed },
            SignerError::PublicKey { source: toolcell_receipts::KeyError::Weak },
            SignerError::Random { source: getrandom::Error::UNSUPPORTED },
            SignerError::Lock { source: region::Error::UnmappedRegion },
            SignerError::Memory { what: "gone" },
            SignerError::KeyLost { entries: 3 },
            SignerError::Socket { source: io() },
            SignerError::Length { got: 16_777_217, most: 16_777_216 },
            SignerError::Encoding {
                what: "a message from the daemon",
                source: postcard::Error::DeserializeUnexpectedEnd,
            },
        ];
        let lines = all.iter().map(|error| format!("{error}\n    {}\n", error.remedy()));
        insta::assert_snapshot!(lines.collect::<String>());
    }
}
