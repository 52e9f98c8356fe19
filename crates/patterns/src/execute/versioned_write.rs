//! Writes to collections whose documents have several versions (SEMANTICS R19): every statement means newest documents.
//!
//! A statement about paths that no version changes is sent as it is. Before any other, the old documents that it is about are
//! brought to the newest version where they are stored, and then it is sent to newest documents only. To bring a document up changes
//! nothing that a client sees: it may happen at any time, by anyone, and stay if the statement fails. So operators, pipelines,
//! positions in arrays, retry records and counts are the backend's own.

use crate::active::Lenses;
use crate::execute::read::versioned;
use crate::execute::read::versioned::variables;
use crate::execute::statements;
use crate::rule::Lens;
use document::backend::{Backend, BatchLimit, Cursor, Session};
use document::filter::Filter;
use document::op::{
    Capture, Change, Context, DeleteStatement, Find, FindAndModify, Insert, Modify, Namespace, ReadOp, SortSpec,
    UpdateOp, UpdateStatement, WriteError, WriteOp, Written,
};
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::Path;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// How many old documents are brought up by one statement.
const TOGETHER: usize = 500;

/// How often a statement is sent again whose document was made an old one meanwhile.
const TRIES: u32 = 5;

const STORED: BatchLimit = BatchLimit { documents: 500, bytes: 16 << 20 };

/// Runs statements that mean newest documents. Captured images are newest documents too.
pub(crate) async fn write(
    backend: &dyn Backend,
    lenses: &Lenses,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let Some(lens) = lenses.of(op.ns()) else { return backend.write(session, context, op, capture).await };
    let mut writing = Writing { backend, lenses, lens, session, context, capture, ns: op.ns() };
    match op {
        WriteOp::Insert(insert) => {
            let op = WriteOp::Insert(inserted(lens, insert, context)?);
            backend.write(writing.session, context, &op, capture).await
        }
        WriteOp::FindAndModify(modify) => writing.find_and_modify(modify).await,
        WriteOp::Update(_) | WriteOp::Delete(_) => writing.statements(op).await,
    }
}

/// The documents of an insert with their numbers.
pub(crate) fn inserted(lens: &Lens, op: &Insert, context: &Context) -> Result<Insert> {
    let documents: Result<Vec<Doc<'static>>> = op.documents.iter().map(|doc| lens.written(doc, &context.env)).collect();
    Ok(Insert { documents: documents?, ..op.clone() })
}

struct Writing<'w> {
    backend: &'w dyn Backend,
    lenses: &'w Lenses,
    lens: &'w Arc<Lens>,
    session: &'w mut Session,
    context: &'w Context,
    capture: &'w Capture,
    ns: &'w Namespace,
}

impl Writing<'_> {
    /// One by one: what one does may be what the next is about.
    async fn statements(&mut self, op: &WriteOp) -> Result<Written> {
        let mut total = Written::default();
        for at in 0..statements::count(op) {
            let written = match self.statement(&statements::part(op, at..at + 1)).await {
                Ok(written) => written,
                Err(error) if error.is_of_statement() && at > 0 => {
                    Written { errors: vec![WriteError { index: 0, error }], ..Written::default() }
                }
                Err(error) => return Err(error),
            };
            let has_failed = !written.errors.is_empty();
            statements::add(&mut total, written, at);
            if has_failed && statements::is_ordered(op) {
                break;
            }
        }
        Ok(total)
    }

    async fn statement(&mut self, op: &WriteOp) -> Result<Written> {
        let (mut op, mut tries) = (op.clone(), 0);
        let target = match &mut op {
            WriteOp::Update(update) => match update.statements.first_mut() {
                Some(statement) => self.prepared(statement)?,
                None => return Ok(Written::default()),
            },
            WriteOp::Delete(delete) => match delete.statements.first() {
                Some(statement) => self.deleted(statement),
                None => return Ok(Written::default()),
            },
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => return Ok(Written::default()),
        };
        if !target.needs_newest {
            return self.send(&op).await;
        }
        let current = self.lens.current();
        match &mut op {
            WriteOp::Update(update) => {
                update.statements.iter_mut().for_each(|one| one.filter = target.filter.clone().and(current.clone()))
            }
            WriteOp::Delete(delete) => {
                delete.statements.iter_mut().for_each(|one| one.filter = target.filter.clone().and(current.clone()))
            }
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => {}
        }
        loop {
            let is_found = self.bring_up(&target.filter, target.multi).await?;
            let written = self.send(&op).await?;
            tries += 1;
            // The document was made an old one in between, by a writer beside Pleach.
            if !is_found || target.multi || written.n > 0 || !written.errors.is_empty() || tries == TRIES {
                return Ok(written);
            }
        }
    }

    async fn find_and_modify(&mut self, op: &FindAndModify) -> Result<Written> {
        let mut op = op.clone();
        if let Modify::Update { update, upsert, .. } = &mut op.action {
            self.checked(update)?;
            *update = self.numbered(update, &op.filter, *upsert)?;
        }
        let (asked, sort) = (op.filter.clone(), op.sort.clone());
        for _ in 1..TRIES {
            // What is shown must be the newest, whatever is changed. Which one is the first by an order is decided over all.
            let is_found = match &sort {
                Some(sort) => match self.first(&asked, sort).await? {
                    Some(id) => {
                        let one = Filter::equality("_id", &id);
                        self.upgrade(one.clone(), false).await?;
                        // A collation may take another document's `_id` for the same.
                        let asked = if asked.collation.is_some() { Filter::all() } else { asked.clone() };
                        op.filter = asked.and(one).and(self.lens.current());
                        true
                    }
                    None => {
                        op.filter = asked.clone().and(self.lens.current());
                        false
                    }
                },
                None => {
                    op.filter = asked.clone().and(self.lens.current());
                    self.bring_up(&asked, false).await?
                }
            };
            let written = self.send(&WriteOp::FindAndModify(Box::new(op.clone()))).await?;
            if !is_found || written.n > 0 || !written.errors.is_empty() || !written.retried.is_empty() {
                return Ok(written);
            }
        }
        let message = "the document was made one of an older version again and again";
        Err(Error::new(Code::WriteConflict, message))
    }

    /// What a statement is about; the statement is made one on newest documents.
    fn prepared(&self, statement: &mut UpdateStatement) -> Result<Target> {
        self.checked(&statement.update)?;
        let changes = update_changes(self.lens, &statement.update);
        statement.update = self.numbered(&statement.update, &statement.filter, statement.upsert)?;
        let needs_newest = changes || reads_changed(self.lens, &statement.filter);
        Ok(Target { filter: statement.filter.clone(), multi: statement.multi, needs_newest })
    }

    fn deleted(&self, statement: &DeleteStatement) -> Target {
        let needs_newest = reads_changed(self.lens, &statement.filter);
        Target { filter: statement.filter.clone(), multi: statement.multi, needs_newest }
    }

    /// The number is not a client's to choose: an operator may only say what it is anyway.
    fn checked(&self, update: &Update) -> Result<()> {
        let Value::Document(spec) = &update.source else { return Ok(()) };
        if update.is_replacement() {
            return Ok(());
        }
        for (operator, fields) in spec.iter() {
            let Value::Document(fields) = fields else { continue };
            let Some(given) = fields.get(&self.lens.field) else { continue };
            let is_same = given.as_i64_exact() == Some(i64::from(self.lens.newest()));
            if !(is_same && matches!(operator.as_str(), "$set" | "$setOnInsert" | "$max")) {
                let message = format!(
                    "'{}' is the version of the document, which is {} to its clients; it goes with the document's shape",
                    self.lens.field,
                    self.lens.newest()
                );
                return Err(Error::new(Code::ImmutableField, message));
            }
        }
        Ok(())
    }

    /// The update as one that leaves newest documents, and numbers what it inserts.
    fn numbered(&self, update: &Update, filter: &Filter, upsert: bool) -> Result<Update> {
        let field = &*self.lens.field;
        let newest = Value::Int32(self.lens.newest());
        match &update.source {
            Value::Document(whole) if update.is_replacement() => {
                let whole = self.lens.written(whole, &self.context.env)?;
                let mut numbered = Update::parse(&Value::Document(whole), &[], &mut Names::new())?;
                numbered.whole = update.whole;
                Ok(numbered)
            }
            Value::Document(spec) if upsert && !names_field(spec, field) && !sets_by_filter(filter, field) => {
                let mut writer = DocWriter::with_capacity(spec.as_bytes().len() + 64);
                let mut on_insert = DocWriter::new();
                for (operator, fields) in spec.iter() {
                    match (operator.as_str(), &fields) {
                        ("$setOnInsert", Value::Document(fields)) => {
                            for (name, value) in fields.iter() {
                                on_insert.append(name.as_str(), &value);
                            }
                        }
                        (operator, _) => {
                            writer.append(operator, &fields);
                        }
                    }
                }
                on_insert.append(field, &newest);
                writer.append("$setOnInsert", &Value::Document(on_insert.finish()));
                Update::parse(&Value::Document(writer.finish()), &update.array_filters, &mut Names::new())
            }
            Value::Array(stages) if upsert => {
                let number = crate::mql::call_with("$ifNull", [crate::mql::field(field), newest]);
                let stamp = crate::mql::call("$set", crate::mql::object([(field, number)]));
                let stages = stages.iter().chain([stamp]).collect();
                let mut names = variables(self.context)?;
                for (name, value) in update.constants.iter().flat_map(Doc::iter) {
                    names.bind_constant(name.as_str(), value.into_owned());
                }
                let mut numbered = Update::parse(&Value::Array(stages), &[], &mut names)?;
                numbered.constants = update.constants.clone();
                Ok(numbered)
            }
            _ => Ok(update.clone()),
        }
    }

    /// Brings old documents that match to the newest version: all, or one of them. Returns whether there was one.
    async fn bring_up(&mut self, filter: &Filter, multi: bool) -> Result<bool> {
        if !reads_changed(self.lens, filter) {
            return self.upgrade(filter.clone(), multi).await;
        }
        let ids = self.old_matches(filter, multi).await?;
        for some in ids.chunks(TOGETHER) {
            self.upgrade(Filter::among("_id", some.to_vec()), true).await?;
        }
        Ok(!ids.is_empty())
    }

    /// The same for stored documents that match.
    async fn upgrade(&mut self, filter: Filter, multi: bool) -> Result<bool> {
        let filter = self.lens.old().and(filter);
        let statement = UpdateStatement { filter, update: self.lens.upgrade(), multi, upsert: false, hint: None };
        let op = WriteOp::Update(UpdateOp::of(self.ns.clone(), vec![statement]));
        let written = self.beside(&op).await?;
        match written.errors.into_iter().next() {
            Some(failed) => Err(failed.error),
            None => Ok(written.n > 0),
        }
    }

    /// A statement that is not the client's: in its transaction if there is one, and without its retry number.
    async fn beside(&mut self, op: &WriteOp) -> Result<Written> {
        if self.session.transaction.is_none() {
            let mut own = self.session.sibling();
            return self.backend.write(&mut own, self.context, op, &Capture::Nothing).await;
        }
        let retry = self.session.retry.take();
        let written = self.backend.write(self.session, self.context, op, &Capture::Nothing).await;
        self.session.retry = retry;
        written
    }

    /// The `_id`s of documents that are stored in an older version and match in the newest; one is enough unless `multi`.
    async fn old_matches(&mut self, filter: &Filter, multi: bool) -> Result<Vec<Value<'static>>> {
        let is_collated = document::op::is_collated(filter.collation.as_ref());
        let stored = self.lens.push_to_old(filter);
        let find = match is_collated {
            true => versioned::old_matching(self.lens, self.ns, filter),
            false => ReadOp::Find(Find::matching(self.ns.clone(), stored.collated(filter.collation.clone()))),
        };
        let (lens, env) = (self.lens.clone(), self.context.env.clone());
        let mut ids = Vec::new();
        let mut beside = self.session.sibling();
        let retry = self.session.retry.take();
        let session = if self.session.transaction.is_some() { &mut *self.session } else { &mut beside };
        let mut cursor: Box<dyn Cursor> = self.backend.read(session, self.context, find).await?;
        loop {
            let batch = cursor.next(session, self.context, STORED).await?;
            for stored in batch.documents {
                let newest = match is_collated {
                    true => stored,
                    false => lens.up(&stored, &env)?.unwrap_or(stored),
                };
                if is_collated || filter.matches(&newest, &env)? {
                    ids.extend(newest.get("_id"));
                }
            }
            if batch.exhausted || !multi && !ids.is_empty() {
                break;
            }
        }
        self.session.retry = retry;
        ids.truncate(if multi { usize::MAX } else { 1 });
        Ok(ids)
    }

    /// The `_id` of the first document by an order.
    async fn first(&mut self, filter: &Filter, sort: &SortSpec) -> Result<Option<Value<'static>>> {
        let find = Find { sort: Some(sort.clone()), limit: Some(1), ..Find::matching(self.ns.clone(), filter.clone()) };
        let mut beside = self.session.sibling();
        let retry = self.session.retry.take();
        let session = if self.session.transaction.is_some() { &mut *self.session } else { &mut beside };
        let mut cursor = versioned::open(self.backend, self.lenses, session, self.context, ReadOp::Find(find)).await?;
        let batch = cursor.next(session, self.context, BatchLimit { documents: 1, bytes: 16 << 20 }).await?;
        self.session.retry = retry;
        Ok(batch.documents.first().and_then(|doc| doc.get("_id")))
    }

    /// The client's own statement; what it shows of documents is shown in the newest version.
    async fn send(&mut self, op: &WriteOp) -> Result<Written> {
        if matches!(self.capture, Capture::Nothing) {
            return self.backend.write(self.session, self.context, op, self.capture).await;
        }
        let mut written = self.backend.write(self.session, self.context, op, &Capture::Everything).await?;
        for Change { before, after, .. } in &mut written.changes {
            for image in [before, after].into_iter().flatten() {
                let newest = self.lens.up(image, &self.context.env)?;
                *image = self.capture.cut(newest.as_ref().unwrap_or(image));
            }
        }
        Ok(written)
    }
}

/// What a statement is about.
struct Target {
    filter: Filter,
    multi: bool,
    /// Whether it can only be run on newest documents.
    needs_newest: bool,
}

fn reads_changed(lens: &Lens, filter: &Filter) -> bool {
    filter.reads().is_none_or(|paths| paths.iter().any(|path| lens.changes(path)))
}

/// Whether what an update does depends on the version of the document that it is done to.
fn update_changes(lens: &Lens, update: &Update) -> bool {
    let Value::Document(spec) = &update.source else { return true };
    if update.is_replacement() {
        return false;
    }
    crate::active::named(spec).any(|name| lens.changes(&steady(&name)))
}

/// The path up to where it goes into an array.
fn steady(dotted: &str) -> Path {
    let path = Path::new(dotted);
    let steady = path.parts.iter().take_while(|part| part.index.is_none() && !part.name.starts_with('$'));
    Path { parts: steady.cloned().collect() }
}

fn names_field(spec: &Doc<'_>, field: &str) -> bool {
    spec.iter().any(|(_, fields)| matches!(fields, Value::Document(fields) if fields.contains(field)))
}

/// Whether what is inserted has the field from the filter.
fn sets_by_filter(filter: &Filter, field: &str) -> bool {
    filter.root.required_equality(field).is_some()
}
