//! Who is asking: from the credentials of the connection, never from anything that a request says.

use std::os::fd::AsFd as _;

use tokio::net::UnixStream;
use toolcell_policy::{Principal, Role};
use toolcell_receipts::statement;

use crate::decode::DecodedCall;
use crate::shares::Who;

/// Credentials of the process that connected, as of that moment (unix(7), SO_PEERCRED; SO_PEERGROUPS since Linux 4.13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Peer {
    /// User.
    pub(crate) uid: u32,
    /// Group.
    pub(crate) gid: u32,
    /// Process; for the receipt only, as numbers are used again. 0 if it is none of this pid namespace.
    pub(crate) pid: u32,
    /// Supplementary groups.
    pub(crate) groups: Vec<u32>,
}

impl Peer {
    /// Asks the kernel who is at the other end.
    ///
    /// # Errors
    /// The kernel does not tell; the connection must then be closed.
    pub(crate) fn of(socket: &UnixStream) -> std::io::Result<Self> {
        let credentials = socket.peer_cred()?;
        let pid = u32::try_from(credentials.pid().unwrap_or(0)).map_err(std::io::Error::other)?;
        let groups = toolcell_sys::peer_groups(socket.as_fd())?;
        Ok(Self { uid: credentials.uid(), gid: credentials.gid(), pid, groups })
    }
}

/// Always an operator.
const ROOT: u32 = 0;

/// Whether this user is an operator of the instance.
pub(crate) fn is_operator(uid: u32, operator_uids: &[u32]) -> bool {
    uid == ROOT || operator_uids.contains(&uid)
}

/// Somebody with a name and a role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    principal: Principal,
    tenant: String,
    peer: Peer,
}

impl Identity {
    /// The one behind a connection. Operators are root and those users that the instance was started with; everybody
    /// else who may connect is a caller. Each user is a tenant of his own.
    pub(crate) fn of(peer: &Peer, operator_uids: &[u32]) -> Self {
        let role = if is_operator(peer.uid, operator_uids) { Role::Operator } else { Role::Caller };
        let id = format!("uid:{}", peer.uid);
        let principal = Principal { uid: peer.uid, gid: peer.gid, role, id: id.clone() };
        Self { principal, tenant: id, peer: peer.clone() }
    }

    /// Who the policy decides about.
    pub(crate) fn principal(&self) -> &Principal {
        &self.principal
    }

    /// The group whose calls he may see.
    pub(crate) fn tenant(&self) -> &str {
        &self.tenant
    }

    /// Under whose ids host paths are opened.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Whose share is taken of what there is for everybody.
    pub(crate) fn who(&self) -> Who {
        Who { uid: self.principal.uid, is_operator: self.principal.role == Role::Operator }
    }

    /// Whether he may see and cancel the calls of others, and read the log.
    pub(crate) fn sees_everything(&self) -> bool {
        matches!(self.principal.role, Role::Operator | Role::Auditor)
    }

    /// As it stands in receipts.
    pub(crate) fn submitter(&self) -> statement::Submitter {
        statement::Submitter {
            id: self.principal.id.clone(),
            role: self.principal.role.as_str().to_owned(),
            tenant: self.tenant.clone(),
            peer: statement::Peer { uid: self.peer.uid, gid: self.peer.gid, pid: self.peer.pid },
        }
    }
}

/// A request that was understood, and who sent it.
#[derive(Debug)]
pub(crate) struct IdentifiedCall {
    decoded: DecodedCall,
    identity: Identity,
}

impl IdentifiedCall {
    /// What was asked for.
    pub(crate) fn decoded(&self) -> &DecodedCall {
        &self.decoded
    }

    /// By whom.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }
}

/// Names the sender of a request.
pub(crate) fn identify(decoded: DecodedCall, operator_uids: &[u32]) -> IdentifiedCall {
    let identity = Identity::of(decoded.peer(), operator_uids);
    IdentifiedCall { decoded, identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_kernel_tells_who_is_at_the_other_end() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let peer = Peer::of(&ours).unwrap();
        assert_eq!(peer.uid, rustix::process::getuid().as_raw());
        assert_eq!(peer.pid, std::process::id());
    }

    #[test]
    fn only_root_and_the_listed_users_are_operators_and_each_user_is_a_tenant() {
        let peer = |uid| Peer { uid, gid: 1, pid: 1, groups: Vec::new() };
        let operator = Identity::of(&peer(1000), &[1000]);
        let caller = Identity::of(&peer(1001), &[1000]);
        assert_eq!(Identity::of(&peer(0), &[1000]).principal().role, Role::Operator);
        assert_eq!(operator.principal().role, Role::Operator);
        assert_eq!(caller.principal().role, Role::Caller);
        assert!(operator.sees_everything() && !caller.sees_everything());
        assert_ne!(operator.tenant(), caller.tenant());
    }
}
