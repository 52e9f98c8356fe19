//! `killOp`.

use super::Command;
use crate::dispatch::Call;
use document::{Code, Error, Result};

const STRUCTURE: &str = "killOp";

pub(crate) const COMMAND: Command = Command {
    names: &["killOp"],
    help: "Stops a command that runs.",
    structure: STRUCTURE,
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let mut id = None;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "op" => id = Some(param.integer()?),
            _ => return Err(param.unknown()),
        }
    }
    let id = id.ok_or_else(|| Error::new(Code::NoSuchKey, "Missing expected field \"op\""))?;
    for client in call.server.clients.lock().values() {
        if i64::from(client.operation.id()) == id {
            client.operation.kill();
        }
    }
    call.reply.append_text("info", "attempting to kill op");
    Ok(())
}
