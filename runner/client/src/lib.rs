//! A typed client of toolcell's API: HTTP/1.1 over the daemon's Unix socket.
//!
//! [`Client`] has one method for each endpoint. Each opens a connection of its own, so that a slow follower of an
//! output never holds up a cancel. Bodies travel as they are: what [`Client::call`] sends is exactly the bytes that
//! the request digest covers, and what it returns is exactly the bytes that the daemon stored.
//!
//! Guarantees: every response is bounded; a refusal, a broken transport and a broken protocol are three different
//! errors ([`ClientError`]); nothing is ever sent twice. Does not: start a daemon, retry, print, or verify receipts.

mod api;
mod error;
mod http1;
mod output;

pub use api::{CallReply, CallStatus, Client, Connection, Stage, Unread};
pub use error::ClientError;
pub use output::{OutputStream, Stream};
