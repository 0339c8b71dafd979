//! Who is asking, by credential, and what that lets him ask for.

/// What a principal may do at all; the tools narrow it further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    /// Submits calls of the tools that are open to callers, and sees his own calls.
    Caller,
    /// Whoever runs the instance: submits any call whose tool is open to operators.
    Operator,
    /// Reads tools, calls and receipts. Submits nothing.
    Auditor,
}

impl Role {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Caller, Self::Operator, Self::Auditor];

    /// The word in policy files, texts and receipts.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Operator => "operator",
            Self::Auditor => "auditor",
        }
    }

    /// The role of that word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == word)
    }
}

impl std::fmt::Display for Role {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who is asking. The daemon makes it from the peer credentials of the connection (unix(7), SO_PEERCRED), never from
/// anything that the request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// User id of the peer.
    pub uid: u32,
    /// Group id of the peer.
    pub gid: u32,
    /// What he may do.
    pub role: Role,
    /// His name in receipts and logs, for instance `uid:1000`.
    pub id: String,
}
