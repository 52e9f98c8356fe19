//! Writes as one command each. An insert's images are its documents.

use crate::answer::{self, count};
use crate::command::{Command, session_document};
use crate::to_mql;
use crate::transaction::UpstreamTransaction;
use crate::upstream::Upstream;
use document::backend::Session;
use document::op::{Capture, Change, Context, Insert, WriteOp, Written};
use document::{Doc, DocWriter, Env, Result, Value};

pub(crate) async fn write(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let prepared = Prepared::new(op, context);
    let outside = session.transaction.is_none();
    let mut command = prepared.command;
    if outside {
        command = command.with_some("writeConcern", context.sent.write_concern.as_ref());
        if let (Some(id), Some(number)) = (session.id, session.retry) {
            // One statement on one document, exactly once: the server's own record does it (SEMANTICS R4).
            command = command.with_doc("lsid", &session_document(&id)).with("txnNumber", number);
            command = match op {
                WriteOp::FindAndModify(op) => command.with("stmtId", op.statement_id),
                _ => {
                    let ids = super::statement_ids(op).into_iter().map(Value::Int32);
                    command.with("stmtIds", ids.collect::<document::Array<'static>>())
                }
            };
        }
    }
    let reply = match outside {
        true => crate::transaction::within(context, upstream.run(session, context, command)).await?,
        false => upstream.run(session, context, command).await?,
    };
    if let Some(error) = answer::concern_error(&reply) {
        session.concern_error = Some(error);
    }
    Ok(outcome(op, &reply, &prepared.documents, capture))
}

/// A command that is ready to be sent, and the documents that it inserts, complete.
pub(crate) struct Prepared {
    pub(crate) command: Command,
    pub(crate) documents: Vec<Doc<'static>>,
}

impl Prepared {
    pub(crate) fn new(op: &WriteOp, context: &Context) -> Prepared {
        let mut documents = Vec::new();
        let variables = context.sent.variables.as_ref();
        let command = match op {
            WriteOp::Insert(op) => {
                documents = complete(op, &context.env);
                let command = Command::new(&op.ns.db, "insert", Value::from(op.ns.collection.to_string()));
                bypass(command.with("ordered", op.ordered), op.bypass_validation)
                    .with_sequence("documents", documents.clone())
            }
            WriteOp::Update(op) => {
                let statement = |statement| to_mql::update_statement(statement, &statement.filter.source);
                let command = Command::new(&op.ns.db, "update", Value::from(op.ns.collection.to_string()));
                bypass(command.with("ordered", op.ordered), op.bypass_validation)
                    .with_some("let", variables)
                    .with_sequence("updates", op.statements.iter().map(statement).collect())
            }
            WriteOp::Delete(op) => {
                let statement = |statement| to_mql::delete_statement(statement, &statement.filter.source);
                Command::new(&op.ns.db, "delete", Value::from(op.ns.collection.to_string()))
                    .with("ordered", op.ordered)
                    .with_some("let", variables)
                    .with_sequence("deletes", op.statements.iter().map(statement).collect())
            }
            WriteOp::FindAndModify(op) => to_mql::find_and_modify(op, false, variables),
        };
        Prepared { command, documents }
    }
}

fn bypass(command: Command, bypass: bool) -> Command {
    if bypass { command.with("bypassDocumentValidation", true) } else { command }
}

/// The documents with `_id`, and that first.
fn complete(op: &Insert, env: &Env) -> Vec<Doc<'static>> {
    let complete = |doc: &Doc<'static>| {
        if doc.iter().next().is_some_and(|(name, _)| name.as_str() == "_id") {
            return doc.clone();
        }
        let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 24);
        writer.append("_id", &doc.get("_id").unwrap_or_else(|| Value::ObjectId((env.new_id)())));
        for (name, value) in doc.borrow().iter().filter(|(name, _)| name.as_str() != "_id") {
            writer.append(name.as_str(), &value);
        }
        writer.finish()
    };
    op.documents.iter().map(complete).collect()
}

/// What a reply says was done.
pub(crate) fn outcome(op: &WriteOp, reply: &Doc<'_>, documents: &[Doc<'static>], capture: &Capture) -> Written {
    let mut written = Written { n: count(reply, "n"), modified: count(reply, "nModified"), ..Written::default() };
    written.errors = answer::write_errors(reply);
    if let Some(Value::Array(upserted)) = reply.get("upserted") {
        for one in upserted.iter() {
            if let Value::Document(one) = one
                && let Some(id) = one.get("_id")
            {
                let index = answer::number(&one, "index").and_then(|index| usize::try_from(index).ok());
                written.upserted.push((index.unwrap_or_default(), id.into_owned()));
            }
        }
    }
    if let Some(Value::Array(ids)) = reply.get("retriedStmtIds") {
        written.retried = ids.iter().filter_map(|id| id.as_number().and_then(|id| id.to_i32_truncated())).collect();
    }
    // Of one statement only.
    if let Some(id) = reply.get("retriedStmtId").and_then(|id| id.as_number()?.to_i32_truncated()) {
        written.retried = vec![id];
    }
    match op {
        WriteOp::FindAndModify(_) => add_found_document(reply, &mut written),
        WriteOp::Insert(insert) if !matches!(capture, Capture::Nothing) => {
            let first_failed = written.errors.first().map(|failed| failed.index);
            for (at, doc) in documents.iter().enumerate() {
                let failed = written.errors.iter().any(|failed| failed.index == at)
                    || insert.ordered && first_failed.is_some_and(|failed| at > failed);
                if !failed && let Some(id) = doc.get("_id") {
                    written.changes.push(Change { id, before: None, after: Some(capture.cut(doc)) });
                }
            }
        }
        _ => {}
    }
    written
}

/// What `findAndModify` says about itself.
pub(crate) fn add_found_document(reply: &Doc<'_>, written: &mut Written) {
    if let Some(Value::Document(value)) = reply.get("value") {
        written.document = Some(value.into_owned());
    }
    let Some(Value::Document(about)) = reply.get("lastErrorObject") else { return };
    written.n = count(&about, "n");
    let existing = about.get("updatedExisting").is_some_and(|existing| existing.is_truthy());
    written.modified = u64::from(existing);
    if let Some(id) = about.get("upserted") {
        written.upserted.push((0, id.into_owned()));
    }
}

/// Writes of a transaction, back to back, behind other commands: the replies to those, and what came of the writes as far as
/// none failed.
pub(crate) async fn run_all(
    transaction: &mut UpstreamTransaction,
    context: &Context,
    before: Vec<Command>,
    ops: &[(&WriteOp, &Capture)],
) -> Result<(Vec<Doc<'static>>, Vec<Result<Written>>)> {
    let (mut commands, count) = (before, ops.len());
    let mut documents = Vec::with_capacity(count);
    for (op, _) in ops {
        let prepared = Prepared::new(op, context);
        commands.push(prepared.command);
        documents.push(prepared.documents);
    }
    let mut replies = transaction.run_all(context, commands).await?;
    let written = replies.split_off(replies.len().saturating_sub(count));
    let mut outcomes = Vec::with_capacity(count);
    for ((reply, (op, capture)), documents) in written.into_iter().zip(ops).zip(&documents) {
        let outcome = answer::checked(reply).map(|reply| outcome(op, &reply, documents, capture));
        let failed = outcome.as_ref().map_or(true, |written| !written.errors.is_empty());
        outcomes.push(outcome);
        if failed {
            break;
        }
    }
    Ok((replies, outcomes))
}
