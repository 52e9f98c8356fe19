//! `listCollections`, `listDatabases`, `listIndexes`.

use super::{is_view, not_found};
use crate::catalog::{Catalog, Content};
use crate::engine::Engine;
use document::filter::Filter;
use document::op::{Context, Namespace};
use document::{Blob, Doc, DocWriter, Result, Value};

pub(super) fn collections(
    catalog: &Catalog,
    db: &str,
    filter: &Filter,
    name_only: bool,
    context: &Context,
) -> Result<Vec<Doc<'static>>> {
    let mut rows = Vec::new();
    let mut views = false;
    for collection in catalog.collections(db) {
        views |= collection.view().is_some();
        let stored = matches!(collection.content, Content::Stored(_));
        let (name, options) = (&*collection.ns.collection, &collection.options);
        let uuid = stored.then_some(&collection.uuid);
        rows.push(row(name, options, uuid, collection.indexes.first().map(|index| &index.spec), name_only));
    }
    // MongoDB keeps views in a collection, and lists it.
    if views {
        let uuid = xxhash_rust::xxh3::xxh3_128(db.as_bytes()).to_be_bytes();
        let index = crate::catalog::Index::on_id();
        rows.push(row("system.views", &Doc::empty(), Some(&uuid), Some(&index.spec), name_only));
    }
    let mut kept = Vec::with_capacity(rows.len());
    for row in rows {
        if filter.matches(&row, &context.env)? {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// One row; a view has no `uuid`.
fn row(
    name: &str,
    options: &Doc<'_>,
    uuid: Option<&[u8; 16]>,
    id_index: Option<&Doc<'static>>,
    name_only: bool,
) -> Doc<'static> {
    let mut row = DocWriter::new();
    row.append("name", &Value::from(name));
    row.append("type", &Value::from(if uuid.is_some() { "collection" } else { "view" }));
    if !name_only {
        row.append("options", &Value::Document(options.borrow()));
        row.start_document("info");
        row.append("readOnly", &Value::Bool(uuid.is_none()));
        if let Some(uuid) = uuid {
            row.append("uuid", &Value::Binary { subtype: 4, bytes: Blob::Borrowed(uuid) });
        }
        row.end();
        if let Some(spec) = id_index {
            row.append("idIndex", &Value::Document(spec.borrow()));
        }
    }
    row.finish()
}

pub(super) fn databases(
    engine: &Engine,
    filter: &Filter,
    name_only: bool,
    context: &Context,
) -> Result<Vec<Doc<'static>>> {
    let catalog = engine.catalog();
    let mut rows = Vec::new();
    for db in catalog.databases() {
        let size: u64 = catalog
            .collections(db)
            .map(|collection| match &collection.content {
                Content::Stored(space) => space.disk_bytes() + space.memtable_bytes(),
                Content::View(_) => 0,
            })
            .sum();
        let mut row = DocWriter::new();
        row.append("name", &Value::from(&**db));
        row.append("sizeOnDisk", &Value::Int64(i64::try_from(size).unwrap_or(i64::MAX)));
        row.append("empty", &Value::Bool(false));
        let row = row.finish();
        if filter.matches(&row, &context.env)? {
            rows.push(if name_only { name_of(db) } else { row });
        }
    }
    Ok(rows)
}

fn name_of(db: &str) -> Doc<'static> {
    let mut row = DocWriter::new();
    row.append("name", &Value::from(db));
    row.finish()
}

pub(super) fn indexes(catalog: &Catalog, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    let Some(collection) = catalog.get(ns) else { return Err(not_found(format!("ns does not exist: {ns}"))) };
    if collection.view().is_some() {
        return Err(is_view(ns));
    }
    Ok(collection.indexes.iter().filter(|index| index.ready).map(|index| index.spec.clone()).collect())
}
