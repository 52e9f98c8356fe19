//! Insert: completes each document, then writes it. Documents of one command share a batch.

use super::stored_document::{self, MAX_DOCUMENT};
use super::{Driver, Stop};
use document::op::{Insert, WriteError, Written};
use document::{Code, Doc, DocWriter, Env, Error, Result, Value};

pub(super) async fn run(driver: &mut Driver<'_>, op: &Insert) -> Result<Written> {
    let mut written = Written::default();
    let collection = match driver.enter_or_make(&op.ns).await {
        Ok(collection) => collection,
        Err(error) => return refused(error, op),
    };
    if let Err(error) = driver.admit(&collection).await {
        return refused(error, op);
    }
    for (index, doc) in op.documents.iter().enumerate() {
        let statement = super::target::statement_id(&op.statement_ids, index);
        if driver.retry.as_ref().is_some_and(|retry| retry.done(statement).is_some()) {
            written.n += 1;
            written.retried.push(statement);
            continue;
        }
        let result = match complete(doc, &driver.context.env, || driver.engine.inner.core.clock.tick()) {
            Ok(doc) => one(driver, &collection, op, &doc, &mut written).await,
            Err(error) => Err(Stop::Statement(error)),
        };
        match result {
            Ok(()) => {
                written.n += 1;
                if let Some(retry) = &mut driver.retry {
                    retry.inserted(statement);
                }
                driver.breathe().await?;
            }
            Err(Stop::Command(error)) => return Err(error),
            Err(Stop::Statement(error)) => {
                written.errors.push(WriteError { index, error });
                if op.ordered || driver.write_set.is_transaction() {
                    break;
                }
            }
        }
    }
    Ok(written)
}

/// What is wrong with the collection is wrong with each document.
fn refused(error: Error, op: &Insert) -> Result<Written> {
    match Stop::from(error) {
        Stop::Command(error) => Err(error),
        Stop::Statement(error) => {
            let count = if op.ordered { 1 } else { op.documents.len() };
            let errors = (0..count).map(|index| WriteError { index, error: error.clone() }).collect();
            Ok(Written { errors, ..Written::default() })
        }
    }
}

async fn one(
    driver: &mut Driver<'_>,
    collection: &std::sync::Arc<crate::catalog::Collection>,
    op: &Insert,
    doc: &Doc<'_>,
    written: &mut Written,
) -> Result<(), Stop> {
    let target = stored_document::Target { collection, env: &driver.context.env, bypass: op.bypass_validation };
    loop {
        match stored_document::insert(&mut driver.write_set, &target, doc) {
            Ok(()) => break,
            Err(halt) => driver.settle(halt).await?,
        }
    }
    driver.captured(written, doc.get("_id").unwrap_or(Value::Missing), None, Some(doc));
    Ok(())
}

/// The document as it is stored: `_id` there and first, empty top-level timestamps filled in; refused if MongoDB would.
pub(super) fn complete<'d>(doc: &'d Doc<'_>, env: &Env, now: impl Fn() -> u64) -> Result<Doc<'d>> {
    let size = doc.as_bytes().len();
    if size > MAX_DOCUMENT {
        let message = format!("object to insert too large. size in bytes: {size}, max size: {MAX_DOCUMENT}");
        return Err(Error::new(Code::BadValue, message));
    }
    let doc = doc.borrow();
    let mut id = None;
    let (mut first, mut stamp) = (false, false);
    for (position, (name, value)) in doc.iter().enumerate() {
        if name.as_bytes() == b"_id" {
            first = position == 0;
            id.get_or_insert(value);
        } else if matches!(value, Value::Timestamp(0)) {
            stamp = true;
        }
    }
    if let Some(id) = &id {
        check_id(id)?;
        if first && !stamp {
            return Ok(doc);
        }
    }
    let mut writer = DocWriter::with_capacity(size + 20);
    writer.append("_id", &id.unwrap_or_else(|| Value::ObjectId((env.new_id)())));
    let mut fields = doc.iter();
    while let Some((name, kind, bytes)) = fields.next_raw() {
        if name.as_bytes() == b"_id" {
            continue;
        }
        if kind == document::raw::kind::TIMESTAMP && bytes.as_slice() == [0; 8] {
            writer.append(name.as_str(), &Value::Timestamp(now()));
        } else {
            writer.append_raw(name.as_str(), kind, bytes.as_slice());
        }
    }
    Ok(writer.finish())
}

/// What MongoDB refuses as an `_id`.
pub(super) fn check_id(id: &Value<'_>) -> Result<()> {
    match id {
        Value::Array(_) | Value::Regex { .. } | Value::Undefined => {
            let message = format!("The '_id' value cannot be of type {}", id.type_name());
            Err(Error::new(Code::InvalidIdField, message))
        }
        Value::Document(doc) => check_names(doc),
        _ => Ok(()),
    }
}

fn check_names(doc: &Doc<'_>) -> Result<()> {
    for (name, value) in doc.borrow().iter() {
        if name.as_str().starts_with('$') {
            let message = format!("_id fields may not contain '$'-prefixed fields: {name} is not valid for storage.");
            return Err(Error::new(Code::DollarPrefixedFieldName, message));
        }
        if let Value::Document(doc) = value {
            check_names(&doc)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    #[test]
    fn a_document_gets_its_id_in_front() {
        let id = bson::oid::ObjectId::from_bytes([0x5a; 12]);
        let check = |given: bson::Document, expected: bson::Document| {
            let given = Doc::from(given);
            assert_eq!(complete(&given, &Env::fixed(), || (7 << 32) | 3).unwrap(), Doc::from(expected));
        };
        check(doc! {"_id": 1, "a": 2}, doc! {"_id": 1, "a": 2});
        check(doc! {"a": 2, "_id": 1}, doc! {"_id": 1, "a": 2});
        check(doc! {"a": 2}, doc! {"_id": id, "a": 2});
        let (empty, now) = (bson::Timestamp { time: 0, increment: 0 }, bson::Timestamp { time: 7, increment: 3 });
        check(doc! {"_id": 1, "t": empty, "s": {"t": empty}}, doc! {"_id": 1, "t": now, "s": {"t": empty}});
        check(doc! {"_id": empty}, doc! {"_id": empty});
    }

    #[test]
    fn what_cannot_be_an_id_is_refused() {
        let check = |id: Bson, code: i32, message: &str| {
            let given = Doc::from(doc! {"_id": id});
            let error = complete(&given, &Env::fixed(), || 0).unwrap_err();
            assert_eq!((error.code().number(), error.message()), (code, message));
        };
        check(Bson::Array(vec![]), 53, "The '_id' value cannot be of type array");
        check(Bson::Undefined, 53, "The '_id' value cannot be of type undefined");
        let dollar = "_id fields may not contain '$'-prefixed fields: $a is not valid for storage.";
        check(Bson::Document(doc! {"b": {"$a": 1}}), 52, dollar);
    }
}
