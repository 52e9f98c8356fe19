//! `drop` and `dropDatabase`: names go at once, files in the background.

use super::{alone, apply, not_found};
use crate::background::Job;
use crate::catalog::{Collection, Content};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use document::op::{Context, Namespace};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

pub(super) async fn collection(engine: &Engine, context: &Context, ns: &Namespace) -> Result<Vec<Doc<'static>>> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    let Some(collection) = engine.catalog().get(ns).cloned() else { return Err(not_found("ns not found")) };
    remove(engine, context, std::slice::from_ref(&collection)).await?;
    let mut reply = DocWriter::new();
    if collection.view().is_none() {
        let count = i32::try_from(collection.indexes.len()).unwrap_or(i32::MAX);
        reply.append("nIndexesWas", &Value::Int32(count));
    }
    reply.append("ns", &Value::from(ns.to_string()));
    Ok(vec![reply.finish()])
}

pub(super) async fn database(engine: &Engine, context: &Context, db: &str) -> Result<Vec<Doc<'static>>> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    let collections: Vec<Arc<Collection>> = engine.catalog().collections(db).cloned().collect();
    remove(engine, context, &collections).await?;
    Ok(super::nothing())
}

/// Removes collections together.
pub(super) async fn remove(engine: &Engine, context: &Context, collections: &[Arc<Collection>]) -> Result<()> {
    if collections.is_empty() {
        return Ok(());
    }
    let mut gates = Vec::with_capacity(collections.len());
    for collection in collections {
        gates.push(alone(collection, context).await?);
    }
    apply(engine, context, collections.iter().cloned().map(Change::Drop).collect()).await?;
    for collection in collections {
        if let Content::Stored(space) = &collection.content {
            engine.inner.background.send(Job::Remove(space.clone()));
        }
    }
    Ok(())
}
