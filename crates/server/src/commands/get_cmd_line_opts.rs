//! `getCmdLineOpts`.

use super::Command;
use crate::dispatch::Call;
use document::{Array, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["getCmdLineOpts"],
    help: "Tells how the process was started.",
    structure: "getCmdLineOpts",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let arguments = call.server.options.arguments.iter().map(|argument| Value::from(argument.clone()));
    call.reply.append("argv", arguments.collect::<Array<'static>>());
    let port = Value::Int32(i32::from(call.server.address.port()));
    let bind = Value::from(call.server.address.ip().to_string());
    let fields = call.reply.fields();
    fields.start_document("parsed").start_document("net");
    fields.append("bindIp", &bind).append("port", &port).end().end();
    Ok(())
}
