//! `listCollections`.

use super::{Command, InTransaction};
use crate::batch;
use crate::dispatch::Call;
use crate::params::{Param, Params};
use crate::profiler::collection;
use document::Result;
use document::backend::Class;
use document::filter::Filter;
use document::op::AdminOp;
use document::pipeline::expr::Names;

const STRUCTURE: &str = "listCollections";

pub(crate) const COMMAND: Command = Command {
    names: &["listCollections"],
    help: "Lists the collections and views of a database.",
    structure: STRUCTURE,
    class: Class::ListCollections,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let (mut filter, mut name_only, mut size) = (Filter::all(), false, None);
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "filter" => filter = Filter::parse(&param.document()?, &mut Names::new())?,
            "nameOnly" => name_only = param.loose_bool()?,
            "cursor" => size = batch_size(param, "listCollections.cursor")?,
            "authorizedCollections" | "authorizedDatabases" | "includePendingDrops" => {}
            _ => return Err(param.unknown()),
        }
    }
    let db = call.db().to_owned();
    let namespace = format!("{db}.$cmd.listCollections");
    let profiled = collection::listed(call, &filter, name_only)?;
    let op = AdminOp::ListCollections { db, filter, name_only };
    let mut documents = call.server.backend.admin(&mut call.session, &call.context, op).await?;
    documents.extend(profiled);
    batch::list(call, namespace, documents, size);
    Ok(())
}

/// `cursor: { batchSize }` of a command that lists things.
pub(crate) fn batch_size(param: Param<'_>, structure: &str) -> Result<Option<u64>> {
    let mut size = None;
    let cursor = param.document()?;
    for option in Params::of(structure, &cursor.borrow()) {
        match option.name() {
            "batchSize" => size = Some(option.count()?),
            _ => return Err(option.unknown()),
        }
    }
    Ok(size)
}
