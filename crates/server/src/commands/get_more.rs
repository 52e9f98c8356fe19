//! `getMore`.

use super::Command;
use crate::batch;
use crate::dispatch::Call;
use crate::params::{Param, required};
use document::backend::Class;
use document::{Code, Error, Result, Text};

const STRUCTURE: &str = "getMore";

pub(crate) const COMMAND: Command = Command {
    names: &["getMore"],
    help: "Returns the next batch of an open cursor.",
    structure: STRUCTURE,
    class: Class::GetMore,
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.get_mores.add(1);
    let request = call.request;
    let id = Param::new(STRUCTURE, Text::borrowed("getMore"), request.target.clone()).long()?;
    let (mut collection, mut size) = (None, None);
    for param in request.params(STRUCTURE) {
        match param.name() {
            "collection" => collection = Some(param.text()?),
            "batchSize" => size = Some(param.count()?),
            "term" | "lastKnownCommittedOpTime" => {}
            _ => return Err(param.unknown()),
        }
    }
    let collection = required(collection, STRUCTURE, "collection")?;
    if collection.as_bytes().is_empty() {
        return Err(Error::new(Code::InvalidNamespace, "Collection names cannot be empty"));
    }
    let namespace = format!("{}.{collection}", request.db);
    let owner = call.owner();
    if request.generic.max_time_ms.is_some() {
        // Its owner is checked first, as in MongoDB; no cursor here waits for data.
        call.server.cursors.check(id, &namespace, &owner)?;
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    let open = call.server.cursors.take(id, &namespace, &owner)?;
    batch::next(call, open, size).await
}
