//! `top`.

use super::Command;
use crate::dispatch::Call;
use document::{Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["top"],
    help: "Tells the time spent per collection: not measured, so the list is empty.",
    structure: "top",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let fields = call.reply.fields();
    fields.start_document("totals").append("note", &Value::from("all times in microseconds")).end();
    Ok(())
}
