//! Commands that MongoDB has and this server has not: the answer says so.

use super::{Access, Command, class};
use crate::dispatch::Call;
use document::backend::{Class, Head};
use document::{Error, Result};

/// These write, and rules must know about them: each has a class of its own.
pub(crate) const APPLY_OPS: Command = Command { names: &["applyOps"], class: Class::ApplyOps, ..COMMAND };

pub(crate) const CLONE_AS_CAPPED: Command =
    Command { names: &["cloneCollectionAsCapped"], class: Class::CloneAsCapped, ..COMMAND };

pub(crate) const CONVERT_TO_CAPPED: Command =
    Command { names: &["convertToCapped"], class: Class::ConvertToCapped, ..COMMAND };

pub(crate) const MAP_REDUCE: Command =
    Command { names: &["mapReduce", "mapreduce"], class: Class::MapReduce, ..COMMAND };

pub(crate) const COMMAND: Command = Command {
    names: &[
        "createRole",
        "createUser",
        "dropUser",
        "grantRolesToUser",
        "reIndex",
        "setFeatureCompatibilityVersion",
        "shutdown",
        "updateUser",
    ],
    help: "Refused: known to MongoDB, not there on the embedded store.",
    access: Access::Refused,
    structure: "refused",
    takes_write_concern: true,
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let (request, user) = (call.request, call.owner().user);
    let (name, db, target) = (request.name.as_str(), request.db.as_str(), request.target.as_str());
    let head = Head { name, class: class(name), db, target, user: user.as_ref(), body: &request.body };
    // In front of a real MongoDB a rule may be why the command was not passed on.
    call.server.backend.refuse(&head, call.client.relay.as_ref()).await?;
    Err(Error::not_implemented(format!("the command '{}'", call.request.name)))
}
