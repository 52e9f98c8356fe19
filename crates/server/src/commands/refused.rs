//! Commands that MongoDB has and this server has not: the answer says so.

use super::{Access, Command};
use crate::dispatch::Call;
use crate::route;
use document::backend::Head;
use document::{Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &[
        "applyOps",
        "cloneCollectionAsCapped",
        "convertToCapped",
        "createRole",
        "createUser",
        "dropUser",
        "grantRolesToUser",
        "mapReduce",
        "mapreduce",
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
    let head = Head { name, class: route::class(name), db, target, user: user.as_ref(), body: &request.body };
    // In front of a real MongoDB a rule may be why the command was not passed on.
    call.server.backend.refuse(&head, call.client.relay.as_ref()).await?;
    Err(Error::not_implemented(format!("the command '{}'", call.request.name)))
}
