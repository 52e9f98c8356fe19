//! `createIndexes`: all of them or none.

use super::{alone, apply, build, create, existing_index, index_spec, is_view, newest, not_found};
use crate::background::Job;
use crate::catalog::{Collection, Index};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use crate::transaction::retries::uuid_text;
use crate::transaction::write_set::WriteSet;
use crate::transaction::{EngineTransaction, Open};
use document::backend::Session;
use document::op::{Context, Namespace};
use document::value::show;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// MongoDB's limit of indexes per collection.
const MAX_INDEXES: usize = 64;
/// And of keys per index.
const MAX_KEYS: usize = 32;
/// Up to so many documents are indexed while writers wait.
const SMALL: u64 = 1_000;

pub(super) async fn run(
    engine: &Engine,
    session: &mut Session,
    context: &Context,
    ns: &Namespace,
    given: &[Doc<'static>],
) -> Result<Vec<Doc<'static>>> {
    if given.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    let specs: Vec<Doc<'static>> = given.iter().map(index_spec::complete).collect::<Result<_>>()?;
    if let Some(transaction) = session.transaction.as_mut() {
        let transaction = EngineTransaction::of(&mut **transaction)?;
        let mut open = transaction.take()?;
        let result = in_transaction(engine, &mut open.write_set, ns, &specs);
        match &result {
            Ok(_) => transaction.give_back(open),
            Err(_) => transaction.fail(open),
        }
        return result;
    }
    let made = engine.catalog().get(ns).is_none();
    if made {
        create::implicitly(engine, ns, context).await?;
    }
    let (collection, before, new) = match register(engine, context, ns, &specs).await? {
        Registered::All(count) => return Ok(vec![reply(count, count, None)]),
        Registered::Ready(before, after) => return Ok(vec![reply(before, after, Some(made))]),
        Registered::Building(collection, before, new) => (collection, before, new),
    };
    let result = build::entries(engine, context, &collection, &new).await;
    let _one_at_a_time = engine.inner.defining.lock().await;
    let Some(current) = newest(engine, collection.id) else {
        return Err(Error::new(Code::IndexBuildAborted, "the collection was dropped while the index was being built"));
    };
    if let Err(error) = result {
        let _gate = alone(&current, context).await?;
        let kept = |index: &Arc<Index>| !new.iter().any(|new| new.id == index.id);
        let indexes = current.indexes.iter().filter(|index| kept(index)).cloned().collect();
        apply(engine, context, vec![Change::Put(Arc::new(Collection { indexes, ..(*current).clone() }))]).await?;
        for index in new {
            engine.inner.background.send(Job::EraseIndex(current.clone(), index.id));
        }
        return Err(failed(&current, error));
    }
    let indexes: Vec<Arc<Index>> = current
        .indexes
        .iter()
        .map(|index| match new.iter().any(|new| new.id == index.id) {
            true => index.with_spec(index.spec.clone(), true).map(Arc::new),
            false => Ok(index.clone()),
        })
        .collect::<Result<_>>()?;
    let after = indexes.len();
    apply(engine, context, vec![Change::Put(Arc::new(Collection { indexes, ..(*current).clone() }))]).await?;
    Ok(vec![reply(before, after, Some(made))])
}

/// In a transaction indexes are made only with their collection, before it has documents.
fn in_transaction(
    engine: &Engine,
    write_set: &mut WriteSet,
    ns: &Namespace,
    specs: &[Doc<'static>],
) -> Result<Vec<Doc<'static>>> {
    let known = write_set.moment().catalog.get(ns).cloned();
    let made = known.is_none();
    let collection = match known {
        Some(known) => known,
        None => Open::make(engine, write_set, create::new_collection(engine, ns)?)?,
    };
    if collection.view().is_some() {
        return Err(is_view(ns));
    }
    let (next, new) = with_new(&collection, specs, true)?;
    let (before, after) = (collection.indexes.len(), next.indexes.len());
    if new.is_empty() {
        return Ok(vec![reply(before, before, None)]);
    }
    let refused = |what: &str| {
        let message = format!("Cannot create new indexes on {what} collection {ns} in a multi-document transaction.");
        Err(Error::new(Code::OperationNotSupportedInTransaction, message))
    };
    if !write_set.has_made(&collection) {
        return refused("existing");
    }
    if write_set.counted(&collection) != 0 {
        return refused("non-empty");
    }
    write_set.change(Change::Put(Arc::new(next)));
    Ok(vec![reply(before, after, Some(made))])
}

/// The collection with the new indexes, and those.
fn with_new(collection: &Collection, specs: &[Doc<'static>], ready: bool) -> Result<(Collection, Vec<Arc<Index>>)> {
    let mut next = collection.clone();
    let mut new: Vec<Arc<Index>> = Vec::new();
    for spec in specs {
        if let Some(existing) = existing_index::find(&next, spec)? {
            if new.iter().any(|new| new.id == existing.id) {
                let message = "Cannot build two identical indexes. Try again without duplicate indexes.";
                return Err(failed(collection, Error::new(Code::OperationFailed, message)));
            }
            if !existing.ready {
                let message = format!("the index {} is being built", existing.name);
                return Err(Error::new(Code::ConflictingOperationInProgress, message));
            }
            continue;
        }
        if next.indexes.len() >= MAX_INDEXES {
            let key = match spec.get("key") {
                Some(Value::Document(key)) => show::document(&key).to_string(),
                _ => String::new(),
            };
            let message = format!("add index fails, too many indexes for {} key:{key}", collection.ns);
            return Err(Error::new(Code::CannotCreateIndex, message));
        }
        let id = u32::try_from(collection.life.next_index.fetch_add(1, Ordering::Relaxed)).unwrap_or(u32::MAX);
        let index = Arc::new(Index::from_spec(id, spec.clone(), ready)?);
        if index.keys.len() > MAX_KEYS {
            let message = format!("Index build failed: too many keys in the pattern: {}", index.keys.len());
            return Err(Error::new(Code::Location(13103), message));
        }
        next.indexes.push(index.clone());
        new.push(index);
    }
    Ok((next, new))
}

enum Registered {
    /// They are all there already.
    All(usize),
    /// Nothing or little was to be indexed: it is done.
    Ready(usize, usize),
    Building(Arc<Collection>, usize, Vec<Arc<Index>>),
}

/// Adds the new indexes to the collection. From then on every writer keeps them up to date.
async fn register(engine: &Engine, context: &Context, ns: &Namespace, specs: &[Doc<'static>]) -> Result<Registered> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    let find = || engine.catalog().get(ns).cloned().ok_or_else(|| not_found(format!("ns does not exist: {ns}")));
    let collection = find()?;
    if collection.view().is_some() {
        return Err(is_view(ns));
    }
    let before = collection.indexes.len();
    let (mut next, new) = with_new(&collection, specs, false)?;
    if new.is_empty() {
        return Ok(Registered::All(before));
    }
    let _gate = alone(&collection, context).await?;
    if collection.count() > SMALL {
        let next = Arc::new(next);
        super::apply_relaxed(engine, vec![Change::Put(next.clone())]).await?;
        return Ok(Registered::Building(next, before, new));
    }
    for index in &mut next.indexes {
        if !index.ready && new.iter().any(|new| new.id == index.id) {
            *index = Arc::new(index.with_spec(index.spec.clone(), true)?);
        }
    }
    let next = Arc::new(next);
    let fresh: Vec<Arc<Index>> =
        next.indexes.iter().filter(|index| new.iter().any(|new| new.id == index.id)).cloned().collect();
    build::at_once(engine, context, &next, &fresh).await.map_err(|error| failed(&next, error))?;
    Ok(Registered::Ready(before, next.indexes.len()))
}

fn failed(collection: &Collection, error: Error) -> Error {
    let prefix = format!(
        "Index build failed: {}: Collection {} ( {} ) :: caused by :: ",
        uuid_text(&create::new_uuid()),
        collection.ns,
        uuid_text(&collection.uuid)
    );
    match error.code() {
        Code::MaxTimeMSExpired | Code::Interrupted | Code::InterruptedAtShutdown => error,
        _ => error.context(&prefix),
    }
}

fn reply(before: usize, after: usize, made: Option<bool>) -> Doc<'static> {
    let count = |count: usize| Value::Int32(i32::try_from(count).unwrap_or(i32::MAX));
    let mut reply = DocWriter::new();
    reply.append("numIndexesBefore", &count(before));
    reply.append("numIndexesAfter", &count(after));
    match made {
        Some(made) => {
            reply.append("createdCollectionAutomatically", &Value::Bool(made));
            reply.append("commitQuorum", &Value::from("votingMembers"));
        }
        None => {
            reply.append("note", &Value::from("all indexes already exist"));
        }
    }
    reply.finish()
}
