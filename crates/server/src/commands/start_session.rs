//! `startSession`.

use super::{Command, InTransaction};
use crate::dispatch::Call;
use crate::identity;
use document::{Blob, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["startSession"],
    help: "Makes a session id.",
    structure: "startSession",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let id = identity::uuid();
    let minutes = call.server.options.session_timeout.as_secs() / 60;
    let fields = call.reply.fields();
    fields.start_document("id");
    fields.append("id", &Value::Binary { subtype: 4, bytes: Blob::Borrowed(&id) }).end();
    fields.append("timeoutMinutes", &Value::Int32(i32::try_from(minutes).unwrap_or(i32::MAX)));
    Ok(())
}
