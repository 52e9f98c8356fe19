//! What a client may do, and is told, of commands that rules concern (SEMANTICS R37). Statements run on the client's own line, so
//! MongoDB refuses what the client may not do. Where none is sent, because nothing matched, a rule refuses, or Pleach itself
//! answers, the client's privileges are asked for here; and no error names a collection that the client may not read.

use crate::active::Rules;
use crate::active::side_writes::SideWrite;
use crate::execute::executor::Executor;
use crate::execute::rights::discreet::discreet;
use crate::execute::rights::{Rights, named};
use crate::rule::names;
use document::backend::{Head, Relay};
use document::op::{AdminOp, Modify, Namespace, WriteOp, Written};
use document::{Doc, Error, Result};
use std::sync::Arc;

/// The outcome of a client's write as the client may see it. Costs nothing where something was written.
pub(super) async fn of_write(
    executor: &Executor,
    line: Option<Arc<dyn Relay>>,
    op: &WriteOp,
    outcome: Result<Written>,
) -> Result<Written> {
    let Some(line) = line.filter(|_| !outcome.as_ref().is_ok_and(|written| has_written(op, written))) else {
        return outcome;
    };
    let rights = for_write(executor, Some(&line), op).await?;
    let rules = executor.rules();
    match outcome {
        Ok(mut written) => {
            for failed in &mut written.errors {
                failed.error = discreet(&rights, &rules, op.ns(), failed.error.clone());
            }
            Ok(written)
        }
        Err(error) => Err(discreet(&rights, &rules, op.ns(), error)),
    }
}

/// Whether a statement that writes was sent and did something: then MongoDB has decided.
fn has_written(op: &WriteOp, written: &Written) -> bool {
    let deletes = match op {
        WriteOp::Delete(_) => true,
        WriteOp::FindAndModify(op) => matches!(op.action, Modify::Remove),
        WriteOp::Insert(_) => true,
        WriteOp::Update(_) => false,
    };
    written.errors.is_empty() && (written.modified > 0 || !written.upserted.is_empty() || deletes && written.n > 0)
}

/// The rights of the sender of a write; fails unless it may send it.
async fn for_write(executor: &Executor, line: Option<&Arc<dyn Relay>>, op: &WriteOp) -> Result<Rights> {
    let rights = Rights::of(&*executor.inner, line, &named(op)).await?.naming([op.ns().clone()]);
    rights.need_to_write(op, executor.rules().shaped(op.ns()).map(|shaped| &**shaped))?;
    Ok(rights)
}

/// Fails unless the client may send the write that is to be explained.
pub(super) async fn before_explain(executor: &Executor, line: Option<Arc<dyn Relay>>, op: &WriteOp) -> Result<Rights> {
    for_write(executor, line.as_ref(), op).await
}

/// The rights of the sender of a command about one collection.
pub(super) async fn for_collection(
    executor: &Executor,
    line: Option<&Arc<dyn Relay>>,
    command: &str,
    ns: &Namespace,
) -> Result<Rights> {
    let sent = format!("{command}: \"{}\"", ns.collection);
    Ok(Rights::of(&*executor.inner, line, &sent).await?.naming([ns.clone()]))
}

/// Fails unless the client may drop the database: its collections are dropped on its behalf, whatever it may do to each.
pub(super) async fn before_drop_database(executor: &Executor, line: Option<&Arc<dyn Relay>>, db: &str) -> Result<()> {
    Rights::of(&*executor.inner, line, "dropDatabase: 1").await?.need_on_database("dropDatabase", db)
}

/// The rights by which `serverStatus` shows rules.
pub(super) async fn for_server_status(executor: &Executor, line: Option<&Arc<dyn Relay>>) -> Result<Rights> {
    Rights::of(&*executor.inner, line, "serverStatus: 1").await
}

/// Fails unless the client may define this: asked only where a rule concerns the collection, since Pleach may refuse or change
/// it before MongoDB sees it.
pub(super) async fn before_admin(
    executor: &Executor,
    line: Option<Arc<dyn Relay>>,
    op: &AdminOp,
) -> Result<Option<Rights>> {
    let Some(Defined { action, command, ns }) = defined(op) else { return Ok(None) };
    if line.is_none() || !is_concerned(&executor.rules(), op, ns) {
        return Ok(None);
    }
    let rights = for_collection(executor, line.as_ref(), command, ns).await?;
    match op {
        AdminOp::Rename { from, to, drop_target } => {
            let rights = rights.naming([from.clone(), to.clone()]);
            need_to_rename(&rights, from, to, *drop_target)?;
            Ok(Some(rights))
        }
        _ => rights.need(action, ns).map(|()| Some(rights)),
    }
}

/// What MongoDB asks of whoever renames a collection: across databases, what copying it and dropping it takes.
fn need_to_rename(rights: &Rights, from: &Namespace, to: &Namespace, drop_target: bool) -> Result<()> {
    match from.db == to.db {
        true => rights.need_on_database("renameCollectionSameDB", &from.db)?,
        false => {
            rights.need_all(&["find", "dropCollection"], from)?;
            rights.need_all(&["insert", "createIndex"], to)?;
        }
    }
    if drop_target { rights.need("dropCollection", to) } else { Ok(()) }
}

fn is_concerned(rules: &Rules, op: &AdminOp, ns: &Namespace) -> bool {
    let concerns = |ns: &Namespace| {
        let is_of_rule = rules.of(ns).is_some() || rules.shaped(ns).is_some() || rules.stored(ns).is_some();
        is_of_rule || names::is_bookkeeping(ns)
    };
    match op {
        AdminOp::Rename { from, to, .. } => concerns(from) || concerns(to),
        _ => concerns(ns),
    }
}

/// A definition: what MongoDB asks of its sender, how the command is called and which collection it is about.
struct Defined<'o> {
    action: &'static str,
    command: &'static str,
    ns: &'o Namespace,
}

fn defined(op: &AdminOp) -> Option<Defined<'_>> {
    let (action, command, ns) = match op {
        AdminOp::CollMod { ns, .. } => ("collMod", "collMod", ns),
        AdminOp::Create { ns, .. } | AdminOp::CreateView { ns, .. } => ("createCollection", "create", ns),
        AdminOp::CreateIndexes { ns, .. } => ("createIndex", "createIndexes", ns),
        AdminOp::Drop { ns } => ("dropCollection", "drop", ns),
        AdminOp::DropIndexes { ns, .. } => ("dropIndex", "dropIndexes", ns),
        AdminOp::ListIndexes { ns } => ("listIndexes", "listIndexes", ns),
        AdminOp::Rename { from, to, .. } if from.db != to.db => ("insert", "renameCollection", to),
        AdminOp::Rename { from, .. } => ("renameCollectionSameDB", "renameCollection", from),
        _ => return None,
    };
    Some(Defined { action, command, ns })
}

/// The outcome of a definition as the client may see it.
pub(super) fn of_admin(
    executor: &Executor,
    rights: Option<&Rights>,
    ns: Option<&Namespace>,
    outcome: Result<Vec<Doc<'static>>>,
) -> Result<Vec<Doc<'static>>> {
    match (rights, ns) {
        (Some(rights), Some(ns)) => outcome.map_err(|error| discreet(rights, &executor.rules(), ns, error)),
        _ => outcome,
    }
}

/// The collection that a definition is about.
pub(super) fn target(op: &AdminOp) -> Option<Namespace> {
    defined(op).map(|defined| defined.ns.clone())
}

/// A change stream that is refused is refused to a client that may watch the collection; others get MongoDB's error.
pub(super) async fn refuse_stream(
    executor: &Executor,
    command: &Head<'_>,
    line: Option<&Arc<dyn Relay>>,
    refused: Error,
) -> Result<()> {
    let (Some(line), Some(target)) = (line, command.target) else { return Err(refused) };
    let ns = Namespace::new(command.db, target);
    let rights = for_collection(executor, Some(line), "aggregate", &ns).await?;
    rights.need_all(&["changeStream", "find"], &ns)?;
    Err(discreet(&rights, &executor.rules(), &ns, refused))
}

/// A command that would change a collection behind the back of its rules is refused likewise.
pub(super) async fn refuse_behind(
    executor: &Executor,
    command: &Head<'_>,
    line: Option<&Arc<dyn Relay>>,
    target: &SideWrite,
    refused: Error,
) -> Result<()> {
    let sent = command.target.map_or_else(|| command.name.to_owned(), |first| format!("{}: \"{first}\"", command.name));
    let rights = Rights::of(&*executor.inner, line, &sent).await?;
    rights.need(target.action, &target.ns)?;
    Err(discreet(&rights, &executor.rules(), &target.ns, refused))
}

/// Fails unless the client may write where its pipeline ends: where that has no result, nothing is sent that MongoDB could refuse.
pub(super) async fn before_sink(
    executor: &Executor,
    command: &Head<'_>,
    line: Option<&Arc<dyn Relay>>,
    target: &Namespace,
) -> Result<()> {
    let (Some(line), Some(source)) = (line, command.target) else { return Ok(()) };
    let rights = for_collection(executor, Some(line), "aggregate", &Namespace::new(command.db, source)).await?;
    let rights = rights.naming([target.clone()]);
    let rules = executor.rules();
    match rules.shaped(target) {
        Some(shaped) => {
            shaped.places.iter().try_for_each(|place| rights.need_all(&["insert", "update"], &place.stored))
        }
        None => rights.need_all(&["insert", "update"], target),
    }
}

/// `$out` into a collection of a rule, likewise.
pub(super) async fn refuse_sink(
    executor: &Executor,
    line: Option<Arc<dyn Relay>>,
    ns: &Namespace,
    target: &Namespace,
    refused: Error,
) -> Error {
    let Some(line) = line else { return refused };
    let checked = async {
        let rights = for_collection(executor, Some(&line), "aggregate", ns).await?.naming([target.clone()]);
        rights.need("find", ns)?;
        rights.need_all(&["insert", "remove"], target)?;
        Ok(rights)
    };
    match checked.await {
        Ok(rights) => discreet(&rights, &executor.rules(), ns, refused),
        Err(error) => error,
    }
}
