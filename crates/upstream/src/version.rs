//! Versions of fences: what was read earlier may be relied on while nobody had its fence exclusively since.
//!
//! An exclusive pass leaves an id of its own in all slots of a row, in the transaction of the change that it is for. A plan that read the
//! row's version together with what the fence is about passes a slot later on the condition that it still has this version: no
//! change was committed in between, and none can be committed beside it. The ids are drawn anew for every pass and never counted,
//! so that slots which went with their database and were made again cannot come to an old version.

use crate::command::Command;
use crate::fence::{self, Pass};
use crate::transaction::{UpstreamTransaction, over};
use crate::upstream::Upstream;
use document::backend::{FenceKey, FenceVersion, Session};
use document::op::Context;
use document::{Code, Doc, DocWriter, Error, Result, Value};

/// Where a slot has it.
const FIELD: &str = "v";

/// Writes the part of an exclusive pass that leaves a new version.
pub(crate) fn leave(update: &mut DocWriter) {
    update.start_document("$set").append(FIELD, &Value::ObjectId(rand::random())).end();
}

/// See [`document::backend::Pipelining::versions`].
pub(crate) async fn read(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    keys: &[FenceKey],
) -> Result<Vec<Option<FenceVersion>>> {
    let Some(db) = keys.first().map(|key| key.db.to_string()) else { return Ok(Vec::new()) };
    let slots: Vec<i32> = keys.iter().map(|key| fence::first_slot(fence::row(key))).collect();
    let mut filter = DocWriter::new();
    filter.start_document("_id").append("$in", &Value::Array(slots.iter().copied().map(Value::Int32).collect())).end();
    let command = Command::new(&db, "find", Value::from(fence::COLLECTION))
        .with_doc("filter", &filter.finish())
        .with("batchSize", Value::Int32(i32::try_from(slots.len()).unwrap_or(i32::MAX)))
        .with("singleBatch", true);
    let reply = upstream.run(session, context, command).await?;
    let Some(Value::Document(cursor)) = reply.get("cursor") else { return Ok(vec![None; slots.len()]) };
    let Some(Value::Array(rows)) = cursor.get("firstBatch") else { return Ok(vec![None; slots.len()]) };
    let of_slot = |slot: &i32| {
        rows.iter().find_map(|row| match row {
            Value::Document(row) if row.get("_id") == Some(Value::Int32(*slot)) => version(&row),
            _ => None,
        })
    };
    Ok(slots.iter().map(of_slot).collect())
}

fn version(slot: &Doc<'_>) -> Option<FenceVersion> {
    match slot.get(FIELD) {
        Some(Value::ObjectId(id)) => Some(FenceVersion(id)),
        _ => None,
    }
}

/// See [`document::backend::Pipelining::fence_at`].
pub(crate) async fn take(
    upstream: &Upstream,
    session: &mut Session,
    key: &FenceKey,
    version: FenceVersion,
) -> Result<()> {
    let transaction = UpstreamTransaction::of(session).ok_or_else(over)?;
    fence::prepare(upstream, &transaction.line()?, &key.db).await?;
    let slot = fence::any_slot(fence::row(key));
    transaction.fences.push(Pass { db: key.db.to_string(), slot, version: Some(version) });
    Ok(())
}

/// Counts a slot up, or fails: where the version is another, and where there is no slot, which the upsert would make of its
/// `_id` alone. The version is looked at in the update, because a filter of the `_id` alone is found without a plan.
pub(crate) fn pass(slot: &Doc<'_>, version: &FenceVersion) -> Doc<'static> {
    let mut statement = DocWriter::new();
    statement.append("q", &Value::Document(slot.borrow())).append("upsert", &Value::Bool(true));
    statement.start_array("u").start_document_at(0).start_document("$set").start_document("n").start_array("$cond");
    statement.start_document_at(0).start_array("$eq");
    statement.append_at(0, &Value::from("$v")).append_at(1, &Value::ObjectId(version.0)).end().end();
    statement.start_document_at(1).start_array("$add");
    statement.append_at(0, &Value::from("$n")).append_at(1, &Value::Int64(1)).end().end();
    // The name of a type is no number.
    statement.start_document_at(2).start_document("$toInt").append("$type", &Value::from("$_id")).end().end();
    statement.end().end().end().end().end();
    statement.finish()
}

/// Whether [`pass`] found another version.
pub(crate) fn is_outdated(error: &Error) -> bool {
    error.code() == Code::ConversionFailure
}
