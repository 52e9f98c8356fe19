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
    for collection in catalog.collections(db) {
        let mut row = DocWriter::new();
        row.append("name", &Value::from(&*collection.ns.collection));
        let stored = matches!(collection.content, Content::Stored(_));
        row.append("type", &Value::from(if stored { "collection" } else { "view" }));
        if !name_only {
            row.append("options", &Value::Document(collection.options.borrow()));
            row.start_document("info");
            row.append("readOnly", &Value::Bool(!stored));
            if stored {
                row.append("uuid", &Value::Binary { subtype: 4, bytes: Blob::Borrowed(&collection.uuid) });
            }
            row.end();
            if let Some(index) = collection.indexes.first() {
                row.append("idIndex", &Value::Document(index.spec.borrow()));
            }
        }
        let row = row.finish();
        if filter.matches(&row, &context.env)? {
            rows.push(row);
        }
    }
    Ok(rows)
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
