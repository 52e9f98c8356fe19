//! What is open in the server: an apply waits for the transactions that began before it, and a switchover that takes a collection
//! away for the cursors on it.

use crate::client_or_own::ClientOrOwn;
use crate::command::Command;
use crate::shared::Shared;
use document::backend::Session;
use document::op::Namespace;
use document::{Array, Code, Doc, DocWriter, Result, Value};
use std::sync::Arc;

/// The bytes of each one's session and number; `None` if the user may not see those of others.
pub(crate) async fn transactions(shared: &Arc<Shared>) -> Result<Option<Vec<Vec<u8>>>> {
    let mut open = DocWriter::new();
    open.start_document("$match").append("transaction.parameters.autocommit", &Value::Bool(false)).end();
    let mut named = DocWriter::new();
    named.start_document("$project").append("_id", &Value::Int32(0)).append("lsid.id", &Value::Int32(1));
    named.append("transaction.parameters.txnNumber", &Value::Int32(1)).end();
    let rows = current(shared, "idleSessions", [open.finish(), named.finish()]).await?;
    Ok(rows.map(|rows| rows.iter().map(|row| row.as_bytes().to_vec()).collect()))
}

/// The ids of the cursors on these namespaces, idle or at work; none if the user may not see those of others.
pub(crate) async fn cursors(shared: &Arc<Shared>, namespaces: &[Namespace]) -> Result<Vec<i64>> {
    let names: Array<'static> = namespaces.iter().map(|ns| Value::from(ns.to_string())).collect();
    let mut open = DocWriter::new();
    open.start_document("$match").start_document("ns").append("$in", &Value::Array(names)).end().end();
    let mut named = DocWriter::new();
    named.start_document("$project").append("id", &Value::from("$cursor.cursorId")).end();
    let rows = current(shared, "idleCursors", [open.finish(), named.finish()]).await?.unwrap_or_default();
    let id = |row: &Doc<'static>| match row.get("id") {
        Some(Value::Int64(id)) => Some(id),
        _ => None,
    };
    Ok(rows.iter().filter_map(id).collect())
}

/// `$currentOp` with those idle ones, and what is left of it.
async fn current(shared: &Arc<Shared>, idle: &str, stages: [Doc<'static>; 2]) -> Result<Option<Vec<Doc<'static>>>> {
    let line = ClientOrOwn::of(shared, &Session::default());
    let mut current = DocWriter::new();
    current.start_document("$currentOp").append("allUsers", &Value::Bool(true)).append(idle, &Value::Bool(true)).end();
    let pipeline: Array<'static> = [current.finish()].into_iter().chain(stages).map(Value::Document).collect();
    // Far more than a server keeps open: no second batch is asked for.
    let mut cursor = DocWriter::new();
    cursor.append("batchSize", &Value::Int32(100_000));
    let command = Command::new("admin", "aggregate", 1)
        .with("pipeline", Value::Array(pipeline))
        .with_doc("cursor", &cursor.finish());
    let reply = match line.run(command).await {
        Err(error) if error.code() == Code::Unauthorized => return Ok(None),
        other => other?,
    };
    let Some(Value::Document(cursor)) = reply.get("cursor") else { return Ok(None) };
    let Some(Value::Array(rows)) = cursor.get("firstBatch") else { return Ok(None) };
    let row = |row| match row {
        Value::Document(row) => Some(Doc::into_owned(row)),
        _ => None,
    };
    Ok(Some(rows.iter().filter_map(row).collect()))
}
