//! `compact`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use crate::namespace;
use document::Result;
use document::op::AdminOp;

pub(crate) const COMMAND: Command = Command {
    names: &["compact"],
    help: "Writes a collection anew without what was overwritten or deleted.",
    access: Access::Write,
    structure: "compact",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

/// MongoDB wants `force` on a primary, because others would wait; here nobody does, so it is not asked for.
async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    let op = AdminOp::Compact { ns };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}
