//! `lockInfo`.

use super::Command;
use crate::dispatch::Call;
use document::{Array, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["lockInfo"],
    help: "Lists locks: none is held between commands.",
    structure: "lockInfo",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    call.reply.append("lockInfo", Array::empty());
    Ok(())
}
