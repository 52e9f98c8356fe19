//! [`Remote`]: what only a backend across a network can do. [`Relay`]: one client's own line through it.

use super::{Answer, Privileges, Session};
use crate::error::Result;
use crate::op::Namespace;
use crate::raw::Doc;
use std::any::Any;
use std::sync::Arc;

/// What only a backend across a network can do: other processes use the same server, and it knows users.
pub trait Remote: Send + Sync {
    /// A line of its own for a client that has connected.
    fn connect(&self) -> Arc<dyn Relay>;

    /// Makes ready what fences and retry records need in that database; call it before the first rule there is maintained.
    fn prepare<'a>(&'a self, session: &'a mut Session, db: &'a str) -> Answer<'a, ()>;

    /// How another process finds what this one would leave open if it were killed now; `None` if it leaves nothing.
    fn leftover(&self) -> Option<Doc<'static>>;

    /// Ends the transactions of another process, by its leftover, if that process is gone or its time has expired; says whether
    /// it was so.
    fn end_leftover<'a>(&'a self, leftover: &'a Doc<'a>, expired: bool) -> Answer<'a, bool>;

    /// The transactions that are open in the server, whoever began them; `None` if the server does not tell.
    fn open_transactions(&self) -> Answer<'_, Option<Vec<Vec<u8>>>>;

    /// The cursors that are open on these namespaces in the server, as far as it tells.
    fn open_cursors<'a>(&'a self, namespaces: &'a [Namespace]) -> Answer<'a, Vec<i64>>;

    /// The `$clusterTime` of the server, signed by it, to be passed on.
    fn gossip(&self) -> Option<Doc<'static>>;

    /// What the server lets the user of this line do, or our own user if there is no line; `None` if it restricts nobody.
    fn privileges<'a>(&'a self, line: Option<&'a Arc<dyn Relay>>) -> Answer<'a, Option<Privileges>>;
}

/// What the server behind a backend is, as last seen: a client's `hello` is answered from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub max_wire_version: i32,
    pub session_minutes: i32,
}

/// One client's own line to a real MongoDB: its authentication and its place in the order of commands live there. It opens
/// nothing before the first command.
pub trait Relay: Send + Sync {
    /// Passes a whole message on. The answer, if one is expected, is written behind what `reply` holds.
    fn forward<'a>(&'a self, message: &'a [u8], expects_reply: bool, reply: &'a mut Vec<u8>) -> Answer<'a, ()>;

    /// One command of ours on the client's behalf (its authentication inside `hello`), and what came back.
    fn command<'a>(&'a self, db: &'a str, command: Doc<'static>) -> Answer<'a, Doc<'static>>;

    /// What the client says about itself, for the server behind.
    fn introduce(&self, metadata: &Doc<'_>);

    /// The client begins to authenticate, or logs out: from now on the line cannot be opened again for it, and its user is unknown.
    fn authenticating(&self);

    /// Learns which user the line acts for, unless that is known.
    fn identify(&self) -> Answer<'_, ()>;

    /// The user that the line acts for, as `name@database`, as far as that is known; `None` for a client that has not authenticated.
    fn user(&self) -> Option<Arc<str>>;

    /// The state of the server behind; an error while it has no primary.
    fn standing(&self) -> Result<Standing>;

    /// Whether the line is lost for good: it was authenticated by the client, and only the client can do that again.
    fn is_lost(&self) -> bool;

    /// Whether both lines are known to act for the same user, so that statements of both may share a transaction (SEMANTICS R12,
    /// R37).
    fn shares_with(&self, _other: &dyn Relay) -> bool {
        false
    }

    /// Whether [`Relay::user`] is known.
    fn is_identified(&self) -> bool;

    /// Whether the client has begun to authenticate on it.
    fn is_authenticated(&self) -> bool;

    fn as_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}
