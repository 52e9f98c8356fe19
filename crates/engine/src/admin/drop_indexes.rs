//! `dropIndexes`: by name, by key pattern, several names, or all but the one on `_id`.

use super::{alone, apply, is_view, not_found};
use crate::background::Job;
use crate::catalog::{Collection, Index};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use document::op::{Context, Namespace};
use document::value::{order, show};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

pub(super) async fn run(
    engine: &Engine,
    context: &Context,
    ns: &Namespace,
    which: &Value<'static>,
) -> Result<Vec<Doc<'static>>> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    let Some(collection) = engine.catalog().get(ns).cloned() else {
        return Err(not_found(format!("ns not found {ns}")));
    };
    if collection.view().is_some() {
        return Err(is_view(ns));
    }
    // A list of nothing but a star is a star.
    let star = Value::from("*");
    let which = match which {
        Value::Array(names) if names.count() == 1 && names.get(0).as_ref().and_then(Value::as_str) == Some("*") => {
            &star
        }
        which => which,
    };
    let dropped = chosen(&collection, which)?;
    if !dropped.is_empty() {
        let _gate = alone(&collection, context).await?;
        let gone = |index: &Arc<Index>| dropped.iter().any(|other| other.id == index.id);
        let indexes = collection.indexes.iter().filter(|index| !gone(index)).cloned().collect();
        let next = Arc::new(Collection { indexes, ..(*collection).clone() });
        apply(engine, context, vec![Change::Put(next.clone())]).await?;
        for index in &dropped {
            engine.inner.background.send(Job::EraseIndex(next.clone(), index.id));
        }
    }
    let mut reply = DocWriter::new();
    reply.append("nIndexesWas", &Value::Int32(i32::try_from(collection.indexes.len()).unwrap_or(i32::MAX)));
    if which.as_str() == Some("*") {
        reply.append("msg", &Value::from("non-_id indexes dropped for collection"));
    }
    Ok(vec![reply.finish()])
}

fn chosen(collection: &Collection, which: &Value<'_>) -> Result<Vec<Arc<Index>>> {
    match which {
        Value::String(name) if name.as_str() == "*" => Ok(collection.secondary().to_vec()),
        Value::String(name) => Ok(vec![by_name(collection, name.as_str())?]),
        Value::Array(names) => names
            .iter()
            .map(|name| match &name {
                Value::String(name) => by_name(collection, name.as_str()),
                _ => Err(Error::type_mismatch(
                    "BSON field 'dropIndexes.index' is the wrong type 'array', expected types '[string']",
                )),
            })
            .collect(),
        Value::Document(key) => {
            let same = |index: &&Arc<Index>| order::compare_documents(&index.key_pattern(), key).is_eq();
            let found: Vec<&Arc<Index>> = collection.indexes.iter().filter(same).collect();
            match found.as_slice() {
                [] => {
                    Err(Error::new(Code::IndexNotFound, format!("can't find index with key: {}", show::document(key))))
                }
                [index] => droppable(index),
                several => {
                    let names: Vec<&str> = several.iter().map(|index| &*index.name).collect();
                    let message = format!(
                        "{} indexes found for key: {}, identify by name instead. Conflicting indexes: {}",
                        several.len(),
                        show::document(key),
                        names.join(", ")
                    );
                    Err(Error::new(Code::AmbiguousIndexKeyPattern, message))
                }
            }
            .map(|index| vec![index])
        }
        other => Err(Error::type_mismatch(format!(
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, object']",
            other.type_name()
        ))),
    }
}

fn by_name(collection: &Collection, name: &str) -> Result<Arc<Index>> {
    match collection.index(name) {
        Some(index) => droppable(index),
        None => Err(Error::new(Code::IndexNotFound, format!("index not found with name [{name}]"))),
    }
}

fn droppable(index: &Arc<Index>) -> Result<Arc<Index>> {
    if index.id == crate::store::keys::DOCUMENTS {
        return Err(Error::new(Code::InvalidOptions, "cannot drop _id index"));
    }
    Ok(index.clone())
}
