//! Commands that MongoDB has and this server has not: the answer says so.

use super::{Access, Command};
use crate::dispatch::Call;
use document::{Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &[
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
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    Err(Error::not_implemented(format!("the command '{}'", call.request.name)))
}
