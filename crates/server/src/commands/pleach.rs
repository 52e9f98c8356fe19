//! `pleach`: hands the command to the layer that keeps the patterns.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use document::Result;
use document::backend::Class;
use document::op::AdminOp;

pub(crate) const COMMAND: Command = Command {
    names: &["pleach"],
    help: "Declares, checks, applies, audits, repairs and drops pattern rules.",
    access: Access::Catalog,
    structure: "pleach",
    class: Class::Pleach,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    let op = AdminOp::Extension {
        command: "pleach",
        db: call.db().to_owned(),
        body: call.request.body.clone().into_owned(),
    };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}
