//! `profile`.

use super::{Command, InTransaction};
use crate::dispatch::Call;
use document::{Error, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["profile"],
    help: "Tells that the profiler is off; it cannot be switched on.",
    structure: "profile",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    if call.request.target.as_i64_exact().is_none_or(|level| level > 0) {
        return Err(Error::not_implemented("the profiler"));
    }
    call.reply.append("was", 0).append("slowms", 100).append("sampleRate", 1.0);
    Ok(())
}
