//! `dbStats`, `collStats`, and the storage part of `serverStatus`. Sizes on disk are shared by a collection's documents and
//! indexes; what an index takes is estimated from its share of the keys.

use super::is_view;
use crate::catalog::{Collection, Content};
use crate::engine::Engine;
use document::op::Namespace;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};

/// What an index entry takes, about: encoded value, `_id`, type bits, overhead.
const ENTRY_BYTES: u64 = 40;

pub(super) fn database(engine: &Engine, db: &str, scale: i64) -> Doc<'static> {
    let catalog = engine.catalog();
    let (mut collections, mut views, mut objects, mut data, mut storage, mut indexes, mut index_size) =
        (0i32, 0i32, 0u64, 0u64, 0u64, 0u64, 0u64);
    for collection in catalog.collections(db) {
        match &collection.content {
            Content::View(_) => views += 1,
            Content::Stored(_) => {
                collections += 1;
                objects += collection.count();
                data += collection.bytes();
                indexes += collection.indexes.len() as u64;
                let sizes = Sizes::of(collection);
                storage += sizes.storage;
                index_size += sizes.indexes;
            }
        }
    }
    // Figures of a database that is not there are ints.
    let there = collections + views > 0;
    let scaled = |bytes: u64| match there {
        true => Value::Double(bytes as f64 / scale.max(1) as f64),
        false => Value::Int32(0),
    };
    let average = match objects {
        0 if there => Value::Double(0.0),
        0 => Value::Int32(0),
        _ => Value::Double(data as f64 / objects as f64),
    };
    let (total, free) = disk(engine);
    let mut reply = DocWriter::new();
    reply.append("db", &Value::from(db));
    reply.append("collections", &Value::Int32(collections));
    reply.append("views", &Value::Int32(views));
    reply.append("objects", &whole(objects));
    reply.append("avgObjSize", &average);
    reply.append("dataSize", &scaled(data));
    reply.append("storageSize", &scaled(storage));
    reply.append("indexes", &whole(indexes));
    reply.append("indexSize", &scaled(index_size));
    reply.append("totalSize", &scaled(storage + index_size));
    let factor = scale.max(1);
    let factor = if there { Value::Double(factor as f64) } else { whole(factor.cast_unsigned()) };
    reply.append("scaleFactor", &factor);
    reply.append("fsUsedSize", &scaled(total.saturating_sub(free)));
    reply.append("fsTotalSize", &scaled(total));
    reply.finish()
}

pub(super) fn collection(engine: &Engine, ns: &Namespace, scale: i64) -> Result<Doc<'static>> {
    let scaled = |bytes: u64| whole(bytes / u64::try_from(scale).unwrap_or(1).max(1));
    let mut reply = DocWriter::new();
    reply.append("ns", &Value::from(ns.to_string()));
    let catalog = engine.catalog();
    let Some(collection) = catalog.get(ns) else {
        for name in ["size", "count", "numOrphanDocs", "storageSize", "totalSize", "nindexes", "totalIndexSize"] {
            reply.append(name, &Value::Int32(0));
        }
        reply.start_document("indexDetails").end();
        reply.start_document("indexSizes").end();
        reply.append("scaleFactor", &whole(u64::try_from(scale).unwrap_or(1)));
        return Ok(reply.finish());
    };
    if collection.view().is_some() {
        return Err(is_view(ns));
    }
    let sizes = Sizes::of(collection);
    let count = collection.count();
    reply.append("size", &scaled(collection.bytes()));
    reply.append("count", &whole(count));
    if let Some(average) = collection.bytes().checked_div(count) {
        reply.append("avgObjSize", &whole(average));
    }
    reply.append("numOrphanDocs", &Value::Int32(0));
    reply.append("storageSize", &scaled(sizes.storage));
    reply.append("freeStorageSize", &Value::Int32(0));
    reply.append("capped", &Value::Bool(false));
    reply.append("nindexes", &whole(collection.indexes.len() as u64));
    reply.start_document("indexDetails");
    for index in collection.indexes.iter().filter(|index| index.ready) {
        let uses = index.uses();
        reply.start_document(&index.name).start_document("accesses");
        let operations = i64::try_from(uses.operations()).unwrap_or(i64::MAX);
        reply.append("ops", &Value::Int64(operations)).append("since", &Value::DateTime(uses.since())).end().end();
    }
    reply.end();
    let building: ArrayWriter =
        collection.indexes.iter().filter(|index| !index.ready).fold(ArrayWriter::new(), |mut names, index| {
            names.push(&Value::from(&*index.name));
            names
        });
    reply.append("indexBuilds", &Value::Array(building.finish()));
    reply.append("totalIndexSize", &scaled(sizes.indexes));
    reply.append("totalSize", &scaled(sizes.storage + sizes.indexes));
    reply.start_document("indexSizes");
    for index in &collection.indexes {
        reply.append(&index.name, &scaled(sizes.of_index));
    }
    reply.end();
    reply.append("scaleFactor", &whole(u64::try_from(scale).unwrap_or(1)));
    Ok(reply.finish())
}

/// For `serverStatus`.
pub(super) fn status(engine: &Engine) -> Doc<'static> {
    let inner = &engine.inner;
    let (cached, capacity) = inner.core.store.cache_bytes();
    let mut reply = DocWriter::new();
    reply.append("name", &Value::from("pleach"));
    reply.append("persistent", &Value::Bool(true));
    reply.append("supportsCommittedReads", &Value::Bool(true));
    reply.append("readOnly", &Value::Bool(inner.committer.failure().is_some()));
    reply.append("diskFull", &Value::Bool(inner.core.disk.space_left() != crate::store::disk_space::DiskSpace::Enough));
    reply.append("cacheBytes", &whole(cached));
    reply.append("cacheCapacityBytes", &whole(capacity));
    reply.append("unwrittenBytes", &whole(inner.core.store.unwritten_bytes()));
    reply.append("diskBytes", &whole(inner.core.store.disk_bytes()));
    reply.append("openTransactions", &whole(inner.transactions.count() as u64));
    reply.append("retryableSessions", &whole(inner.retries.count() as u64));
    reply.finish()
}

struct Sizes {
    storage: u64,
    indexes: u64,
    of_index: u64,
}

impl Sizes {
    fn of(collection: &Collection) -> Sizes {
        let Content::Stored(space) = &collection.content else { return Sizes { storage: 0, indexes: 0, of_index: 0 } };
        let all = space.disk_bytes() + space.memtable_bytes();
        let of_index = (collection.count() * ENTRY_BYTES).max(4096);
        let indexes = of_index * collection.indexes.len() as u64;
        Sizes { storage: all.saturating_sub(indexes).max(4096), indexes, of_index }
    }
}

/// An int if it fits, as MongoDB's figures are.
fn whole(number: u64) -> Value<'static> {
    match i32::try_from(number) {
        Ok(number) => Value::Int32(number),
        Err(_) => Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    }
}

fn disk(engine: &Engine) -> (u64, u64) {
    crate::store::folder::disk_bytes(&engine.inner.path).unwrap_or_default()
}
