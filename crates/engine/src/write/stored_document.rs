//! One document in, changed or out: its record and its entries in all indexes, in one write set.
//!
//! Everything that can fail (locks, validation, duplicate keys) comes first; then the writes, which cannot: a document is
//! never written without its index entries.

use super::validate;
use crate::catalog::{Collection, Index};
use crate::index::{self, Entries, Entry};
use crate::store::Space;
use crate::store::keys::{self, PREFIX, document, record};
use crate::transaction::commit::Change;
use crate::transaction::locks::LockKey;
use crate::transaction::write_set::{Halt, WriteSet};
use bytes::Bytes;
use document::value::show;
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};
use std::sync::Arc;

/// The longest encoded `_id`: documents are clustered by it.
const MAX_ID: usize = 32 << 10;

/// MongoDB's limit of a document's size.
pub(crate) const MAX_DOCUMENT: usize = 16 << 20;

/// Where a statement writes.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub collection: &'a Arc<Collection>,
    pub env: &'a Env,
    /// `bypassDocumentValidation`.
    pub bypass: bool,
}

impl Target<'_> {
    pub(crate) fn space(&self) -> Result<&Space> {
        self.collection.space()
    }
}

/// The key under which the document with this `_id` is stored; an `_id` that is too long is refused.
pub(crate) fn document_key(id: &Value<'_>) -> Result<Bytes> {
    let key = keys::document_key(id);
    if key.len() > MAX_ID {
        let message = format!("_id takes {} bytes; the embedded store takes at most {MAX_ID}", key.len());
        return Err(Error::new(Code::KeyTooLong, message));
    }
    Ok(key)
}

/// Inserts a complete document (`_id` first).
pub(crate) fn insert(write_set: &mut WriteSet, target: &Target<'_>, doc: &Doc<'_>) -> Result<(), Halt> {
    let id = doc.borrow().get("_id").unwrap_or(Value::Missing);
    let key = document_key(&id)?;
    let space = target.space()?;
    validate::check(target, None, doc)?;
    // What the transaction sees is a duplicate even if somebody else is just about to remove it.
    if write_set.is_transaction() && write_set.seen(space, &key)?.is_some() {
        return Err(duplicate_id(target.collection, &id).into());
    }
    write_set.lock(LockKey::entry(space.id(), &key))?;
    if !write_set.is_newest() && write_set.current(space, &key)?.is_some() {
        return Err(duplicate_id(target.collection, &id).into());
    }
    let added = added_entries(target, doc, &key, write_set)?;
    write_set.put(space, key, record(doc));
    write_entries(write_set, target.collection, space, added);
    write_set.count(target.collection, 1, size(doc));
    Ok(())
}

/// Puts `after` in the place of `before`, which is stored under `key` and locked.
pub(crate) fn replace(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    key: &Bytes,
    before: &Doc<'_>,
    after: &Doc<'_>,
) -> Result<(), Halt> {
    let space = target.space()?;
    if after.as_bytes().len() > MAX_DOCUMENT {
        let message = format!("Resulting document after update is larger than {MAX_DOCUMENT}");
        return Err(Error::new(Code::Location(17419), message).into());
    }
    validate::check(target, Some(before), after)?;
    let mut added = Vec::new();
    let mut removed = Vec::new();
    for index in target.collection.secondary() {
        let old = index::entries(index, before, id_part(key), target.env)?;
        let new = index::entries(index, after, id_part(key), target.env)?;
        let fresh: Vec<Entry> = new.entries.iter().filter(|entry| !old.entries.contains(entry)).cloned().collect();
        check_unique(write_set, target, index, space, &fresh)?;
        let keys = |entry: &Entry| new.entries.iter().any(|kept| kept.key == entry.key);
        removed.extend(old.entries.into_iter().filter(|entry| !keys(entry)));
        added.push((index.clone(), Entries { entries: fresh, marks: new.marks }));
    }
    write_set.put(space, key.clone(), record(after));
    for entry in removed {
        write_set.remove(space, entry.key);
    }
    write_entries(write_set, target.collection, space, added);
    write_set.count(target.collection, 0, size(after) - size(before));
    Ok(())
}

/// Removes the document that is stored under `key` and locked.
pub(crate) fn remove(write_set: &mut WriteSet, target: &Target<'_>, key: &Bytes, before: &Doc<'_>) -> Result<(), Halt> {
    let space = target.space()?;
    let mut removed = Vec::new();
    for index in target.collection.secondary() {
        removed.extend(index::entries(index, before, id_part(key), target.env)?.entries);
    }
    write_set.remove(space, key.clone());
    for entry in removed {
        write_set.remove(space, entry.key);
    }
    write_set.count(target.collection, -1, -size(before));
    Ok(())
}

/// Locks a document that a transaction has seen; a conflict if it is no longer as that was.
pub(crate) fn claim(write_set: &mut WriteSet, space: &Space, key: &Bytes) -> Result<(), Halt> {
    write_set.lock(LockKey::entry(space.id(), key))?;
    if !write_set.is_newest() {
        write_set.current(space, key)?;
    }
    Ok(())
}

/// Locks the document under `key` and reads what this write set may change.
pub(crate) fn lock_and_read(
    write_set: &mut WriteSet,
    space: &Space,
    key: &Bytes,
) -> Result<Option<Doc<'static>>, Halt> {
    write_set.lock(LockKey::entry(space.id(), key))?;
    Ok(write_set.current(space, key)?.map(document).transpose()?)
}

/// The encoded `_id` in a document's key: what index entries end with.
pub(crate) fn id_part(key: &[u8]) -> &[u8] {
    key.get(PREFIX..).unwrap_or_default()
}

fn size(doc: &Doc<'_>) -> i64 {
    i64::try_from(doc.as_bytes().len()).unwrap_or(i64::MAX)
}

fn added_entries(
    target: &Target<'_>,
    doc: &Doc<'_>,
    key: &Bytes,
    write_set: &mut WriteSet,
) -> Result<Vec<(Arc<Index>, Entries)>, Halt> {
    let mut added = Vec::with_capacity(target.collection.secondary().len());
    for index in target.collection.secondary() {
        let entries = index::entries(index, doc, id_part(key), target.env)?;
        check_unique(write_set, target, index, target.space()?, &entries.entries)?;
        added.push((index.clone(), entries));
    }
    Ok(added)
}

/// Locks the keys of a unique index and looks whether another document has them.
pub(crate) fn check_unique(
    write_set: &mut WriteSet,
    target: &Target<'_>,
    index: &Arc<Index>,
    space: &Space,
    entries: &[Entry],
) -> Result<(), Halt> {
    if !index.unique {
        return Ok(());
    }
    for entry in entries {
        let values = entry.key.get(..entry.unique_length).unwrap_or_default();
        // No encoding of an `_id` begins with 0xFF.
        let mut end = values.to_vec();
        end.push(0xFF);
        let another = |found: &[u8]| found != entry.key;
        let taken = || Halt::from(duplicate(target.collection, index, &index::values(index, entry)));
        if write_set.is_transaction() && write_set.sees_key(space, values, &end, another)? {
            return Err(taken());
        }
        write_set.lock(LockKey::entry(space.id(), values))?;
        if write_set.has_key(space, values, &end, another)? {
            return Err(taken());
        }
    }
    Ok(())
}

/// The entries, and the array marks that readers need before they can see them.
pub(crate) fn write_entries(
    write_set: &mut WriteSet,
    collection: &Collection,
    space: &Space,
    added: Vec<(Arc<Index>, Entries)>,
) {
    for (index, entries) in added {
        if entries.marks.iter().any(|mark| *mark != 0) && index.mark_multikey(&entries.marks) {
            write_set.change(Change::Marked(collection.ns.clone()));
        }
        for entry in entries.entries {
            write_set.put(space, entry.key, entry.value);
        }
    }
}

fn duplicate_id(collection: &Collection, id: &Value<'_>) -> Error {
    let mut value = DocWriter::new();
    value.append("_id", id);
    match collection.indexes.first() {
        Some(index) => duplicate(collection, index, &value.finish()),
        None => Error::new(Code::DuplicateKey, "E11000 duplicate key error"),
    }
}

/// MongoDB's duplicate key error; `values` are the index's key names with the values that are there twice.
pub(crate) fn duplicate(collection: &Collection, index: &Index, values: &Doc<'_>) -> Error {
    let message = format!(
        "E11000 duplicate key error collection: {} index: {} dup key: {}",
        collection.ns,
        index.name,
        show::document(values)
    );
    let mut info = DocWriter::new();
    info.append("keyPattern", &Value::Document(index.key_pattern()));
    info.append("keyValue", &Value::Document(values.borrow()));
    Error::new(Code::DuplicateKey, message).with_info(info.finish())
}
