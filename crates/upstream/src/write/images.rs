//! Writes that show what they changed, in a transaction.
//!
//! One document: `findAndModify` gives the image before; plain operators are then applied here, so that one round trip is
//! enough; of other updates the image after is read. Many documents: read, write by `_id` with the original filter beside, read.

use super::plain;
use crate::answer::{checked, count, write_errors};
use crate::command::Command;
use crate::retries;
use crate::to_mql;
use crate::transaction::UpstreamTransaction;
use crate::upstream::Upstream;
use document::backend::Session;
use document::error::Scope;
use document::filter::{Details, Filter};
use document::op::{
    Capture, Change, Context, DeleteStatement, FindAndModify, Hint, Modify, Namespace, UpdateOp, UpdateStatement,
    WriteError, WriteOp, Written,
};
use document::update::{Applied, Update};
use document::{Doc, DocWriter, Error, Result, Value};

/// What `findAndModify` puts before the words that `update` and `delete` have for the same error.
const DOING: &str = "Plan executor error during findAndModify :: caused by :: ";

/// How many rows are taken at once.
const ROWS: i64 = 100_000;

/// Operators whose effect depends on nothing but the document.
const PLAIN: &[&str] = &[
    "$addToSet",
    "$bit",
    "$inc",
    "$max",
    "$min",
    "$mul",
    "$pop",
    "$pull",
    "$pullAll",
    "$push",
    "$rename",
    "$set",
    "$setOnInsert",
    "$unset",
];

/// The look-up of a retryable write, sent with the first command: an attempt is the first far more often than not.
#[derive(Default)]
pub(crate) struct RetryLookUp {
    pub(crate) look_up: Option<Command>,
    pub(crate) ids: Vec<i32>,
    /// Some of it was done before: the transaction is of no use.
    pub(crate) repeated: bool,
}

/// A writer of images: the session that asks, and the collection.
struct Images<'a> {
    upstream: &'a Upstream,
    session: &'a mut Session,
    context: &'a Context,
    capture: &'a Capture,
    ns: &'a Namespace,
    asked: &'a mut RetryLookUp,
}

pub(crate) async fn write(
    upstream: &Upstream,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
    asked: &mut RetryLookUp,
) -> Result<Written> {
    let mut images = Images { upstream, session, context, capture, ns: super::namespace(op), asked };
    let mut total = Written::default();
    match op {
        WriteOp::Insert(_) => return plain::write(upstream, session, context, op, capture).await,
        WriteOp::FindAndModify(op) => return images.find_and_modify(op).await,
        WriteOp::Update(op) => {
            for (index, statement) in op.statements.iter().enumerate() {
                let result = images.update(statement, op.bypass_validation).await;
                if !add(&mut total, index, result)? {
                    break;
                }
            }
        }
        WriteOp::Delete(op) => {
            for (index, statement) in op.statements.iter().enumerate() {
                let result = images.delete(statement).await;
                if !add(&mut total, index, result)? {
                    break;
                }
            }
        }
    }
    Ok(total)
}

/// Adds a statement's outcome; false if it failed, which ends the transaction.
fn add(total: &mut Written, index: usize, result: Result<Written>) -> Result<bool> {
    match result {
        Ok(mut written) => {
            total.n += written.n;
            total.modified += written.modified;
            total.upserted.extend(written.upserted.into_iter().map(|(_, id)| (index, id)));
            total.changes.append(&mut written.changes);
            Ok(true)
        }
        Err(error) if error.scope() != Scope::Statement => Err(error),
        Err(error) => {
            total.errors.push(WriteError { index, error });
            Ok(false)
        }
    }
}

impl Images<'_> {
    async fn run(&mut self, command: Command) -> Result<Doc<'static>> {
        let (Some(look_up), Some(transaction)) = (self.asked.look_up.take(), UpstreamTransaction::of(self.session))
        else {
            return self.upstream.run(self.session, self.context, command).await;
        };
        let mut replies = transaction.run_all(self.context, vec![look_up, command]).await?.into_iter();
        let found = checked(replies.next().unwrap_or_else(Doc::empty))?;
        if retries::recall(&found, &self.asked.ids).is_some() {
            self.asked.repeated = true;
            return Err(super::done_before());
        }
        checked(replies.next().unwrap_or_else(Doc::empty))
    }

    async fn update(&mut self, statement: &UpdateStatement, bypass_validation: bool) -> Result<Written> {
        if statement.multi || statement.update.constants.is_some() {
            return self.update_read(statement, bypass_validation).await;
        }
        let op = FindAndModify {
            ns: self.ns.clone(),
            filter: statement.filter.clone(),
            sort: None,
            action: Modify::Update { update: statement.update.clone(), upsert: statement.upsert, return_new: false },
            projection: None,
            hint: statement.hint.clone(),
            bypass_validation,
            statement_id: 0,
        };
        let written = self.find_and_modify(&op).await.map_err(plainly)?;
        Ok(Written { document: None, ..written })
    }

    async fn delete(&mut self, statement: &DeleteStatement) -> Result<Written> {
        if statement.multi {
            return self.delete_read(statement).await;
        }
        let op = FindAndModify {
            ns: self.ns.clone(),
            filter: statement.filter.clone(),
            sort: None,
            action: Modify::Remove,
            projection: None,
            hint: statement.hint.clone(),
            bypass_validation: false,
            statement_id: 0,
        };
        let written = self.find_and_modify(&op).await.map_err(plainly)?;
        Ok(Written { document: None, ..written })
    }

    async fn find_and_modify(&mut self, op: &FindAndModify) -> Result<Written> {
        let command = to_mql::find_and_modify(op, true, self.context.sent.variables.as_ref());
        let reply = self.run(command).await?;
        let mut written = Written::default();
        plain::add_found_document(&reply, &mut written);
        let before = written.document.take();
        let env = &self.context.env;
        let mut details = Details::default();
        if let Some(before) = &before {
            op.filter.matches_with(before, env, &mut details)?;
        }
        let shown = |doc: &Doc<'static>| match &op.projection {
            Some(projection) => projection.apply(doc, &details, env),
            None => Ok(doc.clone()),
        };
        match (&op.action, before) {
            (Modify::Remove, None) => {}
            (Modify::Remove, Some(before)) => {
                written.modified = 0;
                written.document = Some(shown(&before)?);
                self.note(&mut written, Some(&before), None);
            }
            (Modify::Update { update, return_new, .. }, Some(before)) => {
                let after = match is_plain(update) && op.filter.collation.is_none() {
                    true => match update.apply(&before, &details, env)? {
                        Applied::Unchanged => before.clone(),
                        Applied::Changed(after) => after,
                    },
                    false => self.one(&before).await?,
                };
                written.modified = u64::from(before != after);
                let new = *return_new;
                written.document = Some(shown(if new { &after } else { &before })?);
                self.note(&mut written, Some(&before), Some(&after));
            }
            (Modify::Update { return_new, .. }, None) => {
                if let Some((_, id)) = written.upserted.first() {
                    let mut made = DocWriter::new();
                    made.append("_id", id);
                    let after = self.one(&made.finish()).await?;
                    if *return_new {
                        written.document = Some(shown(&after)?);
                    }
                    self.note(&mut written, None, Some(&after));
                }
            }
        }
        Ok(written)
    }

    /// Reads, updates by `_id` with the filter kept beside, reads again.
    async fn update_read(&mut self, statement: &UpdateStatement, bypass_validation: bool) -> Result<Written> {
        let limit = if statement.multi { 0 } else { 1 };
        let before = self.matching(&statement.filter, statement.hint.as_ref(), limit).await?;
        let ids: Vec<Value<'static>> = before.iter().filter_map(|doc| doc.get("_id")).collect();
        if ids.is_empty() && !statement.upsert {
            return Ok(Written::default());
        }
        let filter = match ids.is_empty() {
            true => statement.filter.source.clone(),
            false => to_mql::among_ids(&ids, &statement.filter.source),
        };
        let hintless = UpdateStatement { hint: None, upsert: statement.upsert && ids.is_empty(), ..statement.clone() };
        let command = Command::new(&self.ns.db, "update", Value::from(self.ns.collection.to_string()))
            .with("bypassDocumentValidation", bypass_validation)
            .with_some("let", self.context.sent.variables.as_ref())
            .with_sequence("updates", vec![to_mql::update_statement(&hintless, &filter)]);
        let reply = self.run(command).await?;
        if let Some(failed) = write_errors(&reply).into_iter().next() {
            return Err(failed.error);
        }
        let op = WriteOp::Update(UpdateOp { bypass_validation, ..UpdateOp::of(self.ns.clone(), Vec::new()) });
        let mut written = plain::outcome(&op, &reply, &[], &Capture::Nothing);
        let mut ids = ids;
        ids.extend(written.upserted.iter().map(|(_, id)| id.clone()));
        let after = self.by_ids(&ids).await?;
        for id in &ids {
            let of = |images: &[Doc<'static>]| images.iter().find(|doc| doc.get("_id").as_ref() == Some(id)).cloned();
            self.note(&mut written, of(&before).as_ref(), of(&after).as_ref());
        }
        Ok(written)
    }

    async fn delete_read(&mut self, statement: &DeleteStatement) -> Result<Written> {
        let before = self.matching(&statement.filter, statement.hint.as_ref(), 0).await?;
        let ids: Vec<Value<'static>> = before.iter().filter_map(|doc| doc.get("_id")).collect();
        if ids.is_empty() {
            return Ok(Written::default());
        }
        let hintless = DeleteStatement { hint: None, ..statement.clone() };
        let filter = to_mql::among_ids(&ids, &statement.filter.source);
        let command = Command::new(&self.ns.db, "delete", Value::from(self.ns.collection.to_string()))
            .with_some("let", self.context.sent.variables.as_ref())
            .with_sequence("deletes", vec![to_mql::delete_statement(&hintless, &filter)]);
        let reply = self.run(command).await?;
        if let Some(failed) = write_errors(&reply).into_iter().next() {
            return Err(failed.error);
        }
        let mut written = Written { n: count(&reply, "n"), ..Written::default() };
        for before in &before {
            self.note(&mut written, Some(before), None);
        }
        Ok(written)
    }

    /// The documents that a statement would change, cut to what is captured.
    async fn matching(&mut self, filter: &Filter, hint: Option<&Hint>, limit: i64) -> Result<Vec<Doc<'static>>> {
        let mut command = self
            .find(&filter.source)
            .with_some("collation", filter.collation.as_ref())
            .with_some("let", self.context.sent.variables.as_ref());
        if limit > 0 {
            command = command.with("limit", limit);
        }
        self.rows(to_mql::with_hint(command, hint)).await
    }

    async fn by_ids(&mut self, ids: &[Value<'static>]) -> Result<Vec<Doc<'static>>> {
        let command = self.find(&to_mql::by_ids(ids));
        self.rows(command).await
    }

    /// The document of that `_id` as it is now.
    async fn one(&mut self, of: &Doc<'static>) -> Result<Doc<'static>> {
        let mut filter = DocWriter::new();
        filter.start_document("_id").append("$eq", &of.get("_id").unwrap_or(Value::Null)).end();
        let command = Command::new(&self.ns.db, "find", Value::from(self.ns.collection.to_string()))
            .with_doc("filter", &filter.finish())
            .with("limit", 1_i64)
            .with("singleBatch", true);
        Ok(self.rows(command).await?.into_iter().next().unwrap_or_else(Doc::empty))
    }

    fn find(&self, filter: &Doc<'_>) -> Command {
        let command =
            Command::new(&self.ns.db, "find", Value::from(self.ns.collection.to_string())).with_doc("filter", filter);
        let Capture::Paths(paths) = self.capture else { return command.with("batchSize", ROWS) };
        let mut fields = DocWriter::new();
        let mut named: Vec<&str> = vec!["_id"];
        for path in paths {
            if !named.contains(&path.first()) {
                named.push(path.first());
            }
        }
        named.iter().for_each(|name| _ = fields.append(name, &Value::Int32(1)));
        command.with_doc("projection", &fields.finish()).with("batchSize", ROWS)
    }

    async fn rows(&mut self, command: Command) -> Result<Vec<Doc<'static>>> {
        let mut reply = self.run(command).await?;
        let mut rows = Vec::new();
        loop {
            let Some(Value::Document(cursor)) = reply.get("cursor") else { return Ok(rows) };
            for name in ["firstBatch", "nextBatch"] {
                if let Some(Value::Array(batch)) = cursor.get(name) {
                    rows.extend(batch.iter().filter_map(|row| match row {
                        Value::Document(row) => Some(row.into_owned()),
                        _ => None,
                    }));
                }
            }
            let id = crate::answer::number(&cursor, "id").unwrap_or_default();
            if id == 0 {
                return Ok(rows);
            }
            let more = Command::new(&self.ns.db, "getMore", id)
                .with("collection", Value::from(self.ns.collection.to_string()));
            reply = self.run(more).await?;
        }
    }

    fn note(&self, written: &mut Written, before: Option<&Doc<'static>>, after: Option<&Doc<'static>>) {
        let id = before.or(after).and_then(|doc| doc.get("_id")).unwrap_or(Value::Null);
        let cut = |doc: &Doc<'static>| self.capture.cut(doc);
        written.changes.push(Change { id, before: before.map(cut), after: after.map(cut) });
    }
}

/// Whether the update does the same here as there.
fn is_plain(update: &Update) -> bool {
    let Value::Document(source) = &update.source else { return false };
    update.is_replacement() || source.iter().all(|(name, _)| PLAIN.contains(&name.as_str()))
}

fn plainly(error: Error) -> Error {
    match error.message().strip_prefix(DOING) {
        None => error,
        Some(message) => {
            let mut plain = Error::new(error.code(), message);
            for label in error.labels() {
                plain = plain.with_label(label);
            }
            match error.info() {
                Some(info) => plain.with_info(info.clone()),
                None => plain,
            }
        }
    }
}
