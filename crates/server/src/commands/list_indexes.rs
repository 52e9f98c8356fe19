//! `listIndexes`.

use super::{Command, InTransaction, list_collections};
use crate::dispatch::Call;
use crate::{batch, namespace};
use document::Result;
use document::backend::Class;
use document::op::AdminOp;

const STRUCTURE: &str = "listIndexes";

pub(crate) const COMMAND: Command = Command {
    names: &["listIndexes"],
    help: "Lists the indexes of a collection.",
    structure: STRUCTURE,
    class: Class::ListIndexes,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    let mut size = None;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "cursor" => size = list_collections::batch_size(param, "listIndexes.cursor")?,
            "includeBuildUUIDs" | "isTimeseriesNamespace" => {}
            _ => return Err(param.unknown()),
        }
    }
    let namespace = ns.to_string();
    let op = AdminOp::ListIndexes { ns };
    let documents = call.server.backend.admin(&mut call.session, &call.context, op).await?;
    batch::list(call, namespace, documents, size);
    Ok(())
}
