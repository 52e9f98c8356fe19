//! `fsync`.

use super::{Access, Command};
use crate::dispatch::Call;
use document::op::AdminOp;
use document::{Error, Result};

const STRUCTURE: &str = "fsync";

pub(crate) const COMMAND: Command = Command {
    names: &["fsync"],
    help: "Waits until every acknowledged write is on disk.",
    access: Access::Write,
    structure: STRUCTURE,
    admin_only: true,
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "lock" if param.value.is_truthy() => return Err(Error::not_implemented("fsync with lock: true")),
            "lock" | "fsyncLockAcquisitionTimeoutMillis" => {}
            _ => return Err(param.unknown()),
        }
    }
    call.server.backend.admin(&mut call.session, &call.context, AdminOp::Sync).await?;
    call.reply.append("numFiles", 1);
    Ok(())
}
