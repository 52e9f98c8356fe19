//! `whatsmyuri`.

use super::Command;
use crate::dispatch::Call;
use document::Result;

pub(crate) const COMMAND: Command = Command {
    names: &["whatsmyuri"],
    help: "Tells a client its own address.",
    structure: "whatsmyuri",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let address = call.client.address.to_string();
    call.reply.append("you", address);
    Ok(())
}
