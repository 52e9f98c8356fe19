//! Making collections: by `create`, and by the first write to a name.

use super::names;
use crate::background::Job;
use crate::catalog::{Collection, Content, Index, Life, Validation};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use crate::transaction::locks::LockKey;
use crate::transaction::write_set::WriteSet;
use crate::transaction::{EngineTransaction, Open};
use document::backend::{Mode, Session};
use document::op::{CollectionOptions, Context, Durability, Namespace};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

pub(super) async fn run(
    engine: &Engine,
    session: &mut Session,
    context: &Context,
    ns: Namespace,
    options: CollectionOptions,
) -> Result<Vec<Doc<'static>>> {
    names::check(&ns, &engine.catalog())?;
    if let Some(other) = engine.catalog().get(&ns) {
        return Err(exists(other));
    }
    if options.other.as_ref().is_some_and(|other| other.contains("timeseries")) {
        return Err(Error::not_implemented("a time-series collection without the layer that keeps buckets"));
    }
    if options.capped.is_some() {
        return Err(Error::not_implemented("a capped collection"));
    }
    let options = stored_options(&options)?;
    let validation = Validation::from_options(&options)?;
    if let Some(transaction) = session.transaction.as_mut() {
        let transaction = EngineTransaction::of(&mut **transaction)?;
        if let Some(other) = transaction.moment()?.catalog.get(&ns) {
            return Err(exists(other));
        }
        let mut open = transaction.take()?;
        let collection = Collection { options, validation, ..new_collection(engine, &ns)? };
        return match Open::make(engine, &mut open.write_set, collection) {
            Ok(_) => {
                transaction.give_back(open);
                Ok(super::nothing())
            }
            Err(error) => {
                transaction.fail(open);
                Err(error)
            }
        };
    }
    let made =
        make(engine, &ns, context, context.durability, |collection| Collection { options, validation, ..collection });
    match made.await? {
        None => Ok(super::nothing()),
        Some(other) => Err(exists(&other)),
    }
}

fn exists(other: &Collection) -> Error {
    let message = match other.content {
        Content::Stored(_) => format!("Collection {} already exists.", other.ns),
        Content::View(_) => format!("A view already exists. NS: {}", other.ns),
    };
    Error::new(Code::NamespaceExists, message)
}

/// The options as `listCollections` shows them, checked.
fn stored_options(options: &CollectionOptions) -> Result<Doc<'static>> {
    let mut writer = DocWriter::new();
    if let Some(validator) = &options.validator {
        writer.append("validator", &Value::Document(validator.borrow()));
    }
    check_enumeration(
        "create",
        "validationLevel",
        options.validation_level.as_deref(),
        &["off", "strict", "moderate"],
    )?;
    check_enumeration("create", "validationAction", options.validation_action.as_deref(), &["error", "warn"])?;
    if let Some(level) = &options.validation_level {
        writer.append("validationLevel", &Value::from(level.as_str()));
    }
    if let Some(action) = &options.validation_action {
        writer.append("validationAction", &Value::from(action.as_str()));
    }
    if let Some(other) = &options.other {
        for (name, value) in other.borrow().iter() {
            writer.append(name.as_str(), &value);
        }
    }
    Ok(writer.finish())
}

pub(super) fn check_enumeration(command: &str, field: &str, given: Option<&str>, allowed: &[&str]) -> Result<()> {
    match given {
        Some(given) if !allowed.contains(&given) => Err(Error::bad_value(format!(
            "Enumeration value '{given}' for field '{command}.{field}' is not a valid value."
        ))),
        _ => Ok(()),
    }
}

/// Makes the collection that a write needs; it may have been made meanwhile.
pub(crate) async fn implicitly(engine: &Engine, ns: &Namespace, context: &Context) -> Result<()> {
    names::check(ns, &engine.catalog())?;
    make(engine, ns, context, Durability::Relaxed, |collection| collection).await.map(|_| ())
}

/// Makes a collection unless there is one of that name, which is then given.
async fn make(
    engine: &Engine,
    ns: &Namespace,
    context: &Context,
    durability: Durability,
    shape: impl FnOnce(Collection) -> Collection,
) -> Result<Option<Arc<Collection>>> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    let mut write_set = WriteSet::loose(&engine.inner.core);
    if let Some(other) = hold_name(engine, ns, context, &mut write_set).await? {
        return Ok(Some(other));
    }
    let collection = shape(new_collection(engine, ns)?);
    write_set.change(Change::Put(Arc::new(collection)));
    engine.inner.committer.submit(write_set.take(durability)).done().await?;
    Ok(None)
}

/// Waits for a transaction that is making the name; gives what has it then.
pub(super) async fn hold_name(
    engine: &Engine,
    ns: &Namespace,
    context: &Context,
    write_set: &mut WriteSet,
) -> Result<Option<Arc<Collection>>> {
    if let Some(other) = engine.catalog().get(ns) {
        return Ok(Some(other.clone()));
    }
    let key = LockKey::namespace(ns);
    engine.inner.core.locks.wait(write_set.owner(), key, Mode::Exclusive, context).await?;
    write_set.adopt(key);
    Ok(engine.catalog().get(ns).cloned())
}

/// A collection without options that is not in the catalog yet.
pub(crate) fn new_collection(engine: &Engine, ns: &Namespace) -> Result<Collection> {
    names::check(ns, &engine.catalog())?;
    let space = engine.inner.pool.take(&engine.inner.core.store)?;
    engine.inner.background.send(Job::Refill);
    Ok(Collection {
        id: engine.new_collection_id(),
        ns: ns.clone(),
        uuid: new_uuid(),
        options: Doc::empty(),
        validation: None,
        indexes: vec![Arc::new(Index::on_id())],
        content: Content::Stored(space),
        life: Arc::new(Life { next_index: AtomicU64::new(1), ..Life::default() }),
    })
}

/// A random UUID, version 4.
pub(crate) fn new_uuid() -> [u8; 16] {
    let mut bytes = rand::random::<[u8; 16]>();
    if let Some(byte) = bytes.get_mut(6) {
        *byte = (*byte & 0x0F) | 0x40;
    }
    if let Some(byte) = bytes.get_mut(8) {
        *byte = (*byte & 0x3F) | 0x80;
    }
    bytes
}
