//! `features`.

use super::Command;
use crate::dispatch::Call;
use document::{Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["features"],
    help: "Tells about the script engine: there is none.",
    structure: "features",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    call.reply.fields().start_document("js").append("utf8", &Value::Bool(true)).end();
    Ok(())
}
