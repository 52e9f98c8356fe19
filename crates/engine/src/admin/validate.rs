//! `validate`: every document against its index entries, every index entry against its document.

use super::not_found;
use crate::catalog::{Collection, Index};
use crate::index;
use crate::store::Space;
use crate::store::keys::{self, DOCUMENTS, EntryParts, document, index_prefix};
use crate::transaction::snapshot::ReadSnapshot;
use crate::transaction::write_set::Moment;
use crate::write::stored_document::id_part;
use document::op::{Context, Namespace};
use document::{ArrayWriter, Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// At most so many faults are listed.
const LISTED: usize = 20;

#[derive(Default)]
struct Faults {
    invalid: u64,
    unfit: u64,
    missing: ArrayWriter,
    extra: ArrayWriter,
    corrupt: ArrayWriter,
    errors: Vec<String>,
    /// Names of the indexes with faults.
    broken: Vec<Arc<str>>,
}

pub(super) fn run(moment: &Moment, ns: &Namespace, context: &Context) -> Result<Doc<'static>> {
    let Some(collection) = moment.catalog.get(ns) else {
        return Err(not_found(format!("Collection '{ns}' does not exist to validate.")));
    };
    if collection.view().is_some() {
        return Err(Error::new(Code::CommandNotSupportedOnView, "Cannot validate a view"));
    }
    let mut faults = Faults::default();
    let space = collection.space()?;
    let records = check_documents(&moment.snapshot, space, collection, context, &mut faults)?;
    let mut keys = vec![records];
    for index in collection.secondary() {
        keys.push(check_entries(&moment.snapshot, space, index, context, &mut faults)?);
    }
    Ok(reply(collection, records, &keys, faults))
}

fn check_documents(
    snapshot: &ReadSnapshot,
    space: &Space,
    collection: &Collection,
    context: &Context,
    faults: &mut Faults,
) -> Result<u64> {
    let mut records = 0;
    for entry in snapshot.range(space, &index_prefix(DOCUMENTS), &index_prefix(DOCUMENTS + 1), false) {
        let (key, value) = entry?;
        records += 1;
        if records % 1_000 == 0 {
            crate::transaction::locks::check_patience(context)?;
        }
        let Ok(doc) = document(value).and_then(|doc| document::raw::validate(doc.as_bytes()).map(|()| doc)) else {
            faults.invalid += 1;
            if faults.corrupt.count() < LISTED {
                faults.corrupt.push(&Value::from(format!("{key:02x?}")));
            }
            continue;
        };
        let id = doc.get("_id").unwrap_or(Value::Missing);
        if keys::document_key(&id) != key {
            faults.invalid += 1;
            faults.error(format!(
                "a document is stored under a key that is not that of its _id: {}",
                document::value::show::element(&id)
            ));
        }
        if let Some(validation) = &collection.validation
            && !validation.filter.matches(&doc, &context.env)?
        {
            faults.unfit += 1;
        }
        for index in collection.secondary() {
            for entry in index::entries(index, &doc, id_part(&key), &context.env)?.entries {
                if snapshot.get(space, &entry.key)?.as_ref() != Some(&entry.value) {
                    let row = described(index, &id, &index::values(index, &entry));
                    faults.fault(index, |faults| &mut faults.missing, row);
                }
            }
        }
    }
    Ok(records)
}

fn check_entries(
    snapshot: &ReadSnapshot,
    space: &Space,
    index: &Arc<Index>,
    context: &Context,
    faults: &mut Faults,
) -> Result<u64> {
    let mut count = 0;
    for entry in snapshot.range(space, &index_prefix(index.id), &index_prefix(index.id + 1), false) {
        let (key, value) = entry?;
        count += 1;
        if count % 1_000 == 0 {
            crate::transaction::locks::check_patience(context)?;
        }
        let found = match EntryParts::parse(&key, &value) {
            None => None,
            Some(parts) => snapshot.get(space, &keys::document_key_of(parts.id))?.map(document).transpose()?,
        };
        let belongs = match &found {
            None => false,
            Some(doc) => {
                let id = keys::document_key(&doc.get("_id").unwrap_or(Value::Missing));
                let expected = index::entries(index, doc, id_part(&id), &context.env)?;
                expected.entries.iter().any(|expected| expected.key == key)
            }
        };
        if !belongs {
            let id = found.as_ref().and_then(|doc| doc.get("_id")).unwrap_or(Value::Missing);
            let row = described(index, &id, &Doc::empty());
            faults.fault(index, |faults| &mut faults.extra, row);
        }
    }
    Ok(count)
}

fn described(index: &Index, id: &Value<'_>, values: &Doc<'_>) -> Doc<'static> {
    let mut row = DocWriter::new();
    row.append("indexName", &Value::from(&*index.name));
    row.append("idKey", id);
    row.append("indexKey", &Value::Document(values.borrow()));
    row.finish()
}

impl Faults {
    fn fault(&mut self, index: &Index, list: impl Fn(&mut Faults) -> &mut ArrayWriter, row: Doc<'static>) {
        if !self.broken.contains(&index.name) {
            self.broken.push(index.name.clone());
            self.error(format!("Index with name '{}' has inconsistencies.", index.name));
        }
        let list = list(self);
        if list.count() < LISTED {
            list.push(&Value::Document(row));
        }
    }

    fn error(&mut self, message: String) {
        if self.errors.len() < LISTED {
            self.errors.push(message);
        }
    }
}

fn reply(collection: &Collection, records: u64, keys: &[u64], faults: Faults) -> Doc<'static> {
    let number = |number: u64| match i32::try_from(number) {
        Ok(number) => Value::Int32(number),
        Err(_) => Value::Int64(i64::try_from(number).unwrap_or(i64::MAX)),
    };
    let valid = faults.invalid == 0 && faults.errors.is_empty() && faults.broken.is_empty();
    let mut reply = DocWriter::new();
    reply.append("ns", &Value::from(collection.ns.to_string()));
    reply.append("nInvalidDocuments", &number(faults.invalid));
    reply.append("nNonCompliantDocuments", &number(faults.unfit));
    reply.append("nrecords", &number(records));
    reply.append("nIndexes", &number(collection.indexes.len() as u64));
    reply.start_document("keysPerIndex");
    for (index, count) in collection.indexes.iter().zip(keys) {
        reply.append(&index.name, &number(*count));
    }
    reply.end();
    reply.start_document("indexDetails");
    for index in &collection.indexes {
        let sound = !faults.broken.contains(&index.name);
        reply.start_document(&index.name).append("valid", &Value::Bool(sound)).end();
    }
    reply.end();
    reply.append("valid", &Value::Bool(valid));
    reply.append("repaired", &Value::Bool(false));
    let mut warnings = ArrayWriter::new();
    if faults.unfit > 0 {
        warnings.push(&Value::from(
            "Detected one or more documents not compliant with the collection's schema. Check logs for log id 5363500.",
        ));
    }
    reply.append("warnings", &Value::Array(warnings.finish()));
    let errors = faults.errors.into_iter().map(Value::from).collect();
    reply.append("errors", &Value::Array(errors));
    reply.append("extraIndexEntries", &Value::Array(faults.extra.finish()));
    reply.append("missingIndexEntries", &Value::Array(faults.missing.finish()));
    reply.append("corruptRecords", &Value::Array(faults.corrupt.finish()));
    reply.finish()
}
