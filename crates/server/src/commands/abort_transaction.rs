//! `abortTransaction`.

use super::commit_transaction::outside;
use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use document::Result;
use document::backend::Class;

pub(crate) const COMMAND: Command = Command {
    names: &["abortTransaction"],
    help: "Ends a transaction without effects.",
    access: Access::Write,
    structure: "abortTransaction",
    class: Class::AbortTransaction,
    admin_only: true,
    in_transaction: InTransaction::NotFirst,
    ends_transaction: true,
    takes_write_concern: true,
    in_api_version_1: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let (Some(transaction), Some(visit)) = (call.session.transaction.take(), call.visit.as_mut()) else {
        return Err(outside("abortTransaction"));
    };
    transaction.abort();
    visit.abort();
    call.server.counters.transactions_aborted.add(1);
    Ok(())
}
