//! `collStats`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use crate::namespace;
use document::Result;
use document::op::AdminOp;

const STRUCTURE: &str = "collStats";

pub(crate) const COMMAND: Command = Command {
    names: &["collStats", "collstats"],
    help: "Counts what a collection and its indexes hold.",
    access: Access::Read,
    structure: STRUCTURE,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    let mut scale = 1;
    for param in call.request.params(STRUCTURE).filter(|param| param.name() == "scale") {
        scale = param.positive()?;
    }
    let op = AdminOp::CollStats { ns, scale };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}
