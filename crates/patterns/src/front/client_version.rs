//! Clients that work with an older version of a database, under its name and the number: `shop@1` (SEMANTICS R19, R34).
//!
//! Everything that they ask is asked of the database itself, with their rights there; no MongoDB ever sees the name. Documents are shown
//! and taken in their version. What defines something is not theirs: it would be said in the words of another version.

use crate::active::Rules;
use crate::active::alias::Alias;
use crate::active::route::is_stream;
use crate::execute::client_version;
use crate::execute::outlier::older;
use crate::execute::outlier::reads::InOneMoment;
use crate::execute::read;
use crate::front::{ClientFront, rights};
use crate::layer::refuse_collation;
use crate::rule::Outlier;
use document::backend::{Class, Cursor, Head, Route, Session};
use document::op::{AdminOp, Capture, Context, Explained, Namespace, ReadOp, Verbosity, WriteOp, Written};
use document::pipeline::Sink;
use document::value::Path;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// Who answers a command on such a name.
pub(super) fn route(command: &Head<'_>) -> Route {
    let class = command.class;
    match class {
        Class::Hello | Class::Pleach | Class::BulkWrite | Class::ServerStatus => Route::Plain,
        Class::Authenticate
        | Class::EndSessions
        | Class::CommitTransaction
        | Class::AbortTransaction
        | Class::Other => Route::Forward,
        _ if is_stream(command) => Route::Refused,
        _ => Route::Planned,
    }
}

/// A command that is about no documents, for the database itself.
pub(super) fn rewritten(alias: &Alias, command: &Head<'_>) -> Option<Doc<'static>> {
    if document::raw::validate(command.body.as_bytes()).is_err() {
        return None;
    }
    let mut body = DocWriter::with_capacity(command.body.as_bytes().len());
    for (name, value) in command.body.iter() {
        match name.as_str() {
            "$db" => body.append("$db", &Value::string(alias.db.to_string())),
            name => body.append(name, &value),
        };
    }
    Some(body.finish())
}

/// Fails if the command watches something: events tell of newest documents.
pub(super) fn refuse_stream(alias: &Alias, command: &Head<'_>) -> Result<()> {
    if !is_stream(command) {
        return Ok(());
    }
    let message = format!("'{}' cannot be watched: change streams tell of documents as they are stored", command.db);
    Err(Error::new(Code::CommandNotSupported, message).with_hint(format!("watch '{}'", alias.db)))
}

pub(super) async fn read(
    front: &ClientFront,
    alias: &Alias,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
) -> Result<Box<dyn Cursor>> {
    let version = alias.version()?;
    let op = of_database(alias, op)?;
    let rules = front.executor().rules();
    let Some(arrays) = tested_arrays(&rules, version, &op)? else {
        return read::client_version::open(front, rules.lenses(), version, session, context, op).await;
    };
    refuse_collation(&op)?;
    if session.transaction.is_some() {
        let op = older::read(front.executor(), session, context, &arrays, op).await?;
        return read::client_version::open(front, rules.lenses(), version, session, context, op).await;
    }
    let mut own = session.sibling();
    front.executor().inner.begin(&mut own, context).await?;
    let op = older::read(front.executor(), &mut own, context, &arrays, op).await?;
    let cursor = read::client_version::open(front, rules.lenses(), version, &mut own, context, op).await?;
    Ok(Box::new(InOneMoment { own, cursor }))
}

/// The arrays with overflow that the read's filter tests, if that is tested on what the client sees.
fn tested_arrays(rules: &Rules, version: i32, op: &ReadOp) -> Result<Option<Vec<Arc<Outlier>>>> {
    let ns = op.ns();
    let Some(lens) = rules.lenses().at(ns, version)? else { return Ok(None) };
    let arrays = older::arrays(rules, ns, lens, version);
    let is_tested = older::concerns(&arrays, op) && !read::client_version::is_passed_on(lens, version, op);
    Ok(is_tested.then_some(arrays))
}

pub(super) async fn write(
    front: &ClientFront,
    alias: &Alias,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    let mut op = op.clone();
    let ns = match &mut op {
        WriteOp::Insert(op) => &mut op.ns,
        WriteOp::Update(op) => &mut op.ns,
        WriteOp::Delete(op) => &mut op.ns,
        WriteOp::FindAndModify(op) => &mut op.ns,
    };
    *ns = alias.namespace(ns);
    let (executor, line) = (front.executor(), session.relay.clone());
    let outcome = client_version::write(front, executor, alias, session, context, &op, capture).await;
    rights::of_write(executor, line, &op, outcome).await
}

pub(super) async fn explain(
    front: &ClientFront,
    alias: &Alias,
    session: &mut Session,
    context: &Context,
    op: Explained,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let version = alias.version()?;
    let rules = front.executor().rules();
    match op {
        Explained::Read(op) => {
            let op = of_database(alias, op)?;
            read::client_version::explain(front, rules.lenses(), version, session, context, op, verbosity).await
        }
        Explained::Write(op) => {
            let message = format!("a write of an older client ('{}@{version}') cannot be explained", alias.db);
            let hint = format!("explain the write of '{}' that it becomes; {} was not run", alias.db, op.ns());
            Err(Error::new(Code::CommandNotSupported, message).with_hint(hint))
        }
    }
}

fn of_database(alias: &Alias, mut op: ReadOp) -> Result<ReadOp> {
    let ns = match &mut op {
        ReadOp::Find(op) => &mut op.ns,
        ReadOp::Count(op) => &mut op.ns,
        ReadOp::Distinct(op) => &mut op.ns,
        ReadOp::Aggregate(op) => {
            if matches!(op.pipeline.sink, Some(Sink::Out { .. })) {
                return Err(defines(alias, &op.ns));
            }
            &mut op.ns
        }
    };
    *ns = alias.namespace(ns);
    Ok(op)
}

/// Work on whole collections, for the database itself; what defines or removes one is refused.
pub(super) fn admin(rules: &Rules, alias: &Alias, op: AdminOp) -> Result<AdminOp> {
    let version = alias.version()?;
    let db = || alias.db.to_string();
    Ok(match op {
        AdminOp::ListCollections { filter, name_only, .. } => AdminOp::ListCollections { db: db(), filter, name_only },
        AdminOp::DbStats { scale, .. } => AdminOp::DbStats { db: db(), scale },
        AdminOp::ListIndexes { ns } => AdminOp::ListIndexes { ns: alias.namespace(&ns) },
        AdminOp::CollStats { ns, scale } => AdminOp::CollStats { ns: alias.namespace(&ns), scale },
        AdminOp::Validate { ns, full } => AdminOp::Validate { ns: alias.namespace(&ns), full },
        AdminOp::Extension { command, body, .. } => AdminOp::Extension { command, db: db(), body },
        // Object mappers make the collections and indexes of their models whenever they start.
        AdminOp::Create { ns, options } => AdminOp::Create { ns: alias.namespace(&ns), options },
        AdminOp::CreateIndexes { ns, indexes } => {
            let ns = alias.namespace(&ns);
            if let Some(lens) = rules.lenses().at(&ns, version)? {
                let moved = |index: &Doc<'static>| {
                    is_strict(index) && keys(index).any(|path| lens.changes_since(version, &path))
                };
                if indexes.iter().any(moved) {
                    let message = format!(
                        "an index that decides about documents of '{ns}' cannot be on a field that has changed since version {version}"
                    );
                    let hint = format!("make it in '{}', in the words of the newest version", alias.db);
                    return Err(Error::new(Code::CannotCreateIndex, message).with_hint(hint));
                }
            }
            AdminOp::CreateIndexes { ns, indexes }
        }
        AdminOp::CreateView { ns, .. } => return Err(defines(alias, &ns)),
        AdminOp::Drop { ns } => return Err(defines(alias, &ns)),
        AdminOp::DropIndexes { ns, .. } => return Err(defines(alias, &ns)),
        AdminOp::CollMod { ns, .. } => return Err(defines(alias, &ns)),
        AdminOp::Compact { ns } => return Err(defines(alias, &ns)),
        AdminOp::Rename { from, .. } => return Err(defines(alias, &from)),
        AdminOp::DropDatabase { db } => return Err(defines(alias, &Namespace::new(&db, ""))),
        other => other,
    })
}

/// The name of a database that a work on collections gives.
pub(super) fn database(op: &AdminOp) -> Option<&str> {
    match op {
        AdminOp::Create { ns, .. }
        | AdminOp::CreateView { ns, .. }
        | AdminOp::Drop { ns }
        | AdminOp::CollMod { ns, .. }
        | AdminOp::CreateIndexes { ns, .. }
        | AdminOp::ListIndexes { ns }
        | AdminOp::DropIndexes { ns, .. }
        | AdminOp::CollStats { ns, .. }
        | AdminOp::Validate { ns, .. }
        | AdminOp::Compact { ns } => Some(&ns.db),
        AdminOp::Rename { from, to, .. } => Some(if from.db.contains('@') { &from.db } else { &to.db }),
        AdminOp::DropDatabase { db }
        | AdminOp::ListCollections { db, .. }
        | AdminOp::DbStats { db, .. }
        | AdminOp::Extension { db, .. } => Some(db),
        _ => None,
    }
}

/// Whether an index does more than find documents.
fn is_strict(index: &Doc<'static>) -> bool {
    index.get("unique").is_some_and(|unique| unique.is_truthy()) || index.contains("expireAfterSeconds")
}

fn keys(index: &Doc<'static>) -> impl Iterator<Item = Path> {
    let keys = match index.get("key") {
        Some(Value::Document(keys)) => keys,
        _ => Doc::empty(),
    };
    keys.iter().map(|(name, _)| Path::new(name.as_str())).collect::<Vec<_>>().into_iter()
}

fn defines(alias: &Alias, ns: &Namespace) -> Error {
    let message =
        format!("'{}' is an older version of '{}': it defines no collections and removes none", ns.db, alias.db);
    Error::new(Code::OperationFailed, message).with_hint(format!("send it to '{}'", alias.db))
}
