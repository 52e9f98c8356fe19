//! The transactions that are open in the server: who brings a rule on waits for those that began before it.

use crate::command::Command;
use crate::shared::Shared;
use crate::via::Via;
use document::backend::Session;
use document::{Array, Code, Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// The bytes of each one's session and number; nothing if the user may not see those of others.
pub(crate) async fn transactions(shared: &Arc<Shared>) -> Result<Option<Vec<Vec<u8>>>> {
    let via = Via::of(shared, &Session::default());
    // Far more than a server keeps open: no second batch is asked for.
    let mut cursor = DocWriter::new();
    cursor.append("batchSize", &Value::Int32(100_000));
    let command =
        Command::new("admin", "aggregate", 1).with("pipeline", pipeline()).with_doc("cursor", &cursor.finish());
    let reply = match via.run(command).await {
        Err(error) if error.code() == Code::Unauthorized => return Ok(None),
        other => other?,
    };
    let Some(Value::Document(cursor)) = reply.get("cursor") else { return Ok(None) };
    let Some(Value::Array(rows)) = cursor.get("firstBatch") else { return Ok(None) };
    let bytes = |row| match row {
        Value::Document(row) => Some(Doc::as_bytes(&row).to_vec()),
        _ => None,
    };
    Ok(Some(rows.iter().filter_map(bytes).collect()))
}

fn pipeline() -> Value<'static> {
    let mut current = DocWriter::new();
    current.start_document("$currentOp").append("allUsers", &Value::Bool(true));
    current.append("idleSessions", &Value::Bool(true)).end();
    let mut open = DocWriter::new();
    open.start_document("$match").append("transaction.parameters.autocommit", &Value::Bool(false)).end();
    let mut named = DocWriter::new();
    named.start_document("$project").append("_id", &Value::Int32(0)).append("lsid.id", &Value::Int32(1));
    named.append("transaction.parameters.txnNumber", &Value::Int32(1)).end();
    let stages = [current.finish(), open.finish(), named.finish()];
    Value::Array(stages.into_iter().map(Value::Document).collect::<Array<'static>>())
}
