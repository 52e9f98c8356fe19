//! Writes of clients that work with an older version (`shop@1`, SEMANTICS R19, R34).
//!
//! A document that such a client inserts is brought to the newest version. A statement about paths that no step since its version
//! concerns is sent as it is. Any other is run in a transaction: the newest documents that it is about are read, what the client sees
//! of them is changed as it says, and the difference is written as an ordinary statement on newest documents, with all that follows
//! from it. So rules know nothing of older clients.

mod attempts;
mod found;
mod statement;

use crate::active::alias::Alias;
use crate::execute::executor::Executor;
use crate::execute::outlier::older;
use crate::execute::read::client_version::projected;
use crate::execute::statements;
use crate::rule::lens::ArrayName;
use crate::rule::{Lens, Outlier};
use document::backend::{Backend, Session};
use document::op::{
    Capture, Context, FindAndModify, Insert, Modify, Namespace, SortSpec, UpdateStatement, WriteError, WriteOp, Written,
};
use document::{Error, Result};
use statement::Work;
use std::sync::Arc;

/// A client's version of a collection.
pub(super) struct ClientVersion<'c> {
    /// Gives and takes newest documents.
    backend: &'c dyn Backend,
    executor: &'c Arc<Executor>,
    lens: Arc<Lens>,
    version: i32,
    context: &'c Context,
    /// The arrays of the collection that overflow, under their names in the version.
    arrays: Vec<Arc<Outlier>>,
    /// Those that have another name now, and the versions without that.
    renamed: Option<(Lens, Vec<ArrayName>)>,
}

/// Runs statements of a client of an older version. `op` names the collection in the database itself.
pub(crate) async fn write(
    backend: &dyn Backend,
    executor: &Arc<Executor>,
    alias: &Alias,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let version = alias.version()?;
    let rules = executor.rules();
    let Some(lens) = rules.lenses().at(op.ns(), version)?.cloned() else {
        return backend.write(session, context, op, capture).await;
    };
    let client = ClientVersion::of(backend, executor, (lens, version), context, op.ns())?;
    match op {
        WriteOp::Insert(insert) => client.insert(session, insert).await,
        WriteOp::FindAndModify(modify) => client.find_and_modify(session, op, modify).await,
        WriteOp::Update(_) | WriteOp::Delete(_) if client.is_same(op) => {
            backend.write(session, context, op, capture).await
        }
        WriteOp::Update(_) | WriteOp::Delete(_) => client.statements(session, op).await,
    }
}

impl<'c> ClientVersion<'c> {
    fn of(
        backend: &'c dyn Backend,
        executor: &'c Arc<Executor>,
        (lens, version): (Arc<Lens>, i32),
        context: &'c Context,
        ns: &Namespace,
    ) -> Result<ClientVersion<'c>> {
        let rules = executor.rules();
        let arrays = older::arrays(&rules, ns, &lens, version);
        let names = older::renamed(&rules, ns, &lens, version);
        let renamed = match names.is_empty() {
            true => None,
            false => Some((lens.with_own_names(version, &names)?, names)),
        };
        Ok(ClientVersion { backend, executor, lens, version, context, arrays, renamed })
    }
}

impl ClientVersion<'_> {
    /// Documents in the newest version; one that cannot be brought there fails by itself.
    async fn insert(&self, session: &mut Session, op: &Insert) -> Result<Written> {
        let (mut documents, mut places, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for (index, doc) in op.documents.iter().enumerate() {
            match self.lens.brought(doc, self.version, &self.context.env) {
                Ok(newest) => {
                    documents.push(newest);
                    places.push(index);
                }
                Err(error) => {
                    failed.push(WriteError { index, error });
                    if op.ordered {
                        break;
                    }
                }
            }
        }
        let mut written = match documents.is_empty() {
            true => Written::default(),
            false => {
                let whole = statements::chosen(&WriteOp::Insert(op.clone()), &places);
                let WriteOp::Insert(part) = whole else { return Ok(Written::default()) };
                let number = |at: &usize| {
                    op.statement_ids.get(*at).copied().unwrap_or_else(|| i32::try_from(*at).unwrap_or(i32::MAX))
                };
                let statement_ids = places.iter().map(number).collect();
                let part = WriteOp::Insert(Insert { documents, statement_ids, ..part });
                self.backend.write(session, self.context, &part, &Capture::Nothing).await?
            }
        };
        for error in &mut written.errors {
            error.index = places.get(error.index).copied().unwrap_or(error.index);
        }
        if !op.ordered || written.errors.is_empty() {
            written.errors.extend(failed);
            written.errors.sort_by_key(|failed| failed.index);
        }
        Ok(written)
    }

    /// Whether every statement means the same in newest documents.
    fn is_same(&self, op: &WriteOp) -> bool {
        match op {
            WriteOp::Update(op) => op.statements.iter().all(|statement| self.is_same_statement(statement)),
            WriteOp::Delete(op) => {
                op.statements.iter().all(|one| self.lens.seen_filter(&one.filter, self.version).left.is_none())
            }
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => false,
        }
    }

    fn is_same_statement(&self, statement: &UpdateStatement) -> bool {
        !statement.upsert
            && self.lens.is_same_update(&statement.update, self.version)
            && self.lens.seen_filter(&statement.filter, self.version).left.is_none()
    }

    fn is_same_order(&self, sort: Option<&SortSpec>) -> bool {
        sort.into_iter().flat_map(|sort| &sort.keys).all(|key| !self.lens.changes_since(self.version, &key.path))
    }

    /// One by one: what one does may be what the next is about.
    async fn statements(&self, session: &mut Session, op: &WriteOp) -> Result<Written> {
        let mut total = Written::default();
        for at in 0..statements::count(op) {
            let part = statements::part(op, at..at + 1);
            let outcome = match self.is_same(&part) {
                true => self.backend.write(session, self.context, &part, &Capture::Nothing).await,
                false => self.statement(session, &part).await,
            };
            let written = match outcome {
                Err(error) if error.is_of_statement() => statements::failed(0, error),
                other => other?,
            };
            let has_failed = !written.errors.is_empty();
            statements::add(&mut total, written, at);
            if has_failed && (statements::is_ordered(op) || session.transaction.is_some()) {
                break;
            }
        }
        Ok(total)
    }

    async fn statement(&self, session: &mut Session, op: &WriteOp) -> Result<Written> {
        match op {
            WriteOp::Update(update) => match update.statements.first() {
                Some(statement) if statement.multi => {
                    self.many(session, op, &Work::Update { statement, bypass: update.bypass_validation }).await
                }
                Some(statement) => {
                    let work = Work::Update { statement, bypass: update.bypass_validation };
                    self.settled(session, op, &work, update.statement_ids.first().copied()).await
                }
                None => Ok(Written::default()),
            },
            WriteOp::Delete(delete) => match delete.statements.first() {
                Some(statement) if statement.multi => self.many(session, op, &Work::Delete { statement }).await,
                Some(statement) => {
                    let number = delete.statement_ids.first().copied();
                    self.settled(session, op, &Work::Delete { statement }, number).await
                }
                None => Ok(Written::default()),
            },
            WriteOp::Insert(_) | WriteOp::FindAndModify(_) => Ok(Written::default()),
        }
    }

    async fn find_and_modify(&self, session: &mut Session, op: &WriteOp, modify: &FindAndModify) -> Result<Written> {
        let is_same_action = match &modify.action {
            Modify::Remove => true,
            Modify::Update { update, upsert, .. } => !upsert && self.lens.is_same_update(update, self.version),
        };
        let is_same = is_same_action
            && self.is_same_order(modify.sort.as_ref())
            && self.lens.seen_filter(&modify.filter, self.version).left.is_none();
        if !is_same {
            let written = self.settled(session, op, &Work::Modify(modify), Some(modify.statement_id)).await?;
            return match written.errors.into_iter().next() {
                Some(WriteError { error, .. }) => Err::<Written, Error>(error),
                None => Ok(Written { errors: Vec::new(), ..written }),
            };
        }
        let whole = WriteOp::FindAndModify(Box::new(FindAndModify { projection: None, ..modify.clone() }));
        let mut written = self.backend.write(session, self.context, &whole, &Capture::Nothing).await?;
        if let Some(newest) = written.document.take() {
            let env = &self.context.env;
            let seen = self.lens.seen(&newest, self.version, env)?;
            written.document = Some(projected(modify.projection.as_ref(), &modify.filter, &seen, env)?);
        }
        Ok(written)
    }
}
