//! `validate`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use crate::namespace;
use document::op::AdminOp;
use document::{Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["validate"],
    help: "Checks a collection's documents against its index entries.",
    access: Access::Read,
    structure: "validate",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    let mut full = false;
    for param in call.request.params("validate") {
        match param.name() {
            "full" => full = param.value.is_truthy(),
            "repair" | "metadata" | "fixMultikey" if param.value.is_truthy() => {
                return Err(Error::not_implemented(format!("validate with '{}'", param.name())));
            }
            _ => {}
        }
    }
    let op = AdminOp::Validate { ns, full };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}
