//! `commitTransaction`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use document::backend::Class;
use document::op::{AdminOp, Durability};
use document::{Code, Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["commitTransaction"],
    help: "Makes the effects of a transaction visible and lasting.",
    access: Access::Write,
    structure: "commitTransaction",
    class: Class::CommitTransaction,
    admin_only: true,
    in_transaction: InTransaction::NotFirst,
    ends_transaction: true,
    takes_write_concern: true,
    in_api_version_1: true,
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    // The parameters belong to sharded transactions; there is one server.
    let (Some(number), Some(visit)) = (call.transaction(), call.visit.as_mut()) else {
        return Err(outside("commitTransaction"));
    };
    if visit.is_committed(number) {
        // Sent again, perhaps to be surer than the first time.
        if call.context.durability == Durability::Synced {
            call.server.backend.admin(&mut call.session, &call.context, AdminOp::Sync).await?;
        }
        return Ok(());
    }
    let Some(transaction) = call.session.transaction.take() else { return Err(outside("commitTransaction")) };
    match transaction.commit(&call.context).await {
        Ok(()) => {
            visit.commit();
            call.server.counters.transactions_committed.add(1);
            Ok(())
        }
        Err(error) => {
            visit.abort();
            call.server.counters.transactions_aborted.add(1);
            Err(error)
        }
    }
}

pub(crate) fn outside(command: &str) -> Error {
    Error::new(Code::CommandFailed, format!("{command} must be run within a transaction"))
}
