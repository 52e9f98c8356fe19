//! `usersInfo`.

use super::Command;
use crate::dispatch::Call;
use document::{Array, Result};

pub(crate) const COMMAND: Command = Command {
    names: &["usersInfo"],
    help: "Lists users: there are none.",
    structure: "usersInfo",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    call.reply.append("users", Array::empty());
    Ok(())
}
