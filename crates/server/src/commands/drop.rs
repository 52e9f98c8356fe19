//! `drop`.

use super::Command;
use crate::dispatch::Call;
use crate::namespace;
use crate::profiler::collection;
use document::Result;
use document::backend::Class;
use document::op::AdminOp;

const STRUCTURE: &str = "drop";

pub(crate) const COMMAND: Command = Command {
    names: &["drop"],
    help: "Removes a collection with its indexes, or a view.",
    structure: STRUCTURE,
    class: Class::Drop,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "collectionUUID" => {}
            _ => return Err(param.unknown()),
        }
    }
    if let Some(answer) = collection::dropped(call)? {
        call.reply.append_all(&answer);
        return Ok(());
    }
    let op = AdminOp::Drop { ns };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}
