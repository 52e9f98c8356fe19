//! `currentOp`.

use super::Command;
use crate::client::Client;
use crate::dispatch::Call;
use document::{Array, Doc, DocWriter, Result, Value};
use std::sync::Arc;

pub(crate) const COMMAND: Command = Command {
    names: &["currentOp"],
    help: "Lists the commands that run now.",
    structure: "currentOp",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let running: Array<'static> = list(call).into_iter().map(Value::Document).collect();
    call.reply.append("inprog", running);
    Ok(())
}

/// One document for each command that runs.
pub(crate) fn list(call: &Call<'_>) -> Vec<Doc<'static>> {
    let clients: Vec<Arc<Client>> = call.server.clients.lock().values().cloned().collect();
    let host = call.server.host();
    let mut found = Vec::new();
    for client in clients {
        let Some((id, what, elapsed)) = client.operation.running() else { continue };
        let micros = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        let mut fields = DocWriter::new();
        fields.append("type", &Value::from("op")).append("host", &Value::from(&*host));
        fields.append("desc", &Value::from(format!("conn{}", client.id)));
        fields.append("connectionId", &Value::Int32(client.id));
        fields.append("client", &Value::from(client.address.to_string()));
        if let Some(metadata) = &*client.metadata.lock() {
            fields.append("clientMetadata", &Value::Document(metadata.borrow()));
        }
        fields.append("active", &Value::Bool(true)).append("opid", &Value::Int32(id));
        fields.append("secs_running", &Value::Int64(micros / 1_000_000));
        fields.append("microsecs_running", &Value::Int64(micros));
        fields.append("op", &Value::from("command")).append("ns", &Value::from(what.namespace));
        fields.start_document("command").append(what.command, &Value::Int32(1)).end();
        found.push(fields.finish());
    }
    found
}
