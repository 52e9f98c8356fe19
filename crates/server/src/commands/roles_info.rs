//! `rolesInfo`.

use super::Command;
use crate::dispatch::Call;
use document::{Array, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["rolesInfo"],
    help: "Lists roles: there are none.",
    structure: "rolesInfo",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    call.reply.append("roles", Array::empty());
    Ok(())
}
