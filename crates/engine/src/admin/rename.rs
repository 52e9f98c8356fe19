//! `renameCollection`: a write to the catalog; the data stays where it is.

use super::{alone, apply, create, names, not_found};
use crate::background::Job;
use crate::catalog::{Collection, Content};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use crate::transaction::write_set::WriteSet;
use document::op::{Context, Namespace};
use document::{Code, Doc, Error, Result};
use std::sync::Arc;

pub(super) async fn run(
    engine: &Engine,
    context: &Context,
    from: &Namespace,
    to: Namespace,
    drop_target: bool,
) -> Result<Vec<Doc<'static>>> {
    if *from == to {
        return Err(Error::new(Code::IllegalOperation, "Can't rename a collection to itself"));
    }
    let _one_at_a_time = engine.inner.defining.lock().await;
    let catalog = engine.catalog();
    let Some(source) = catalog.get(from).cloned() else {
        return Err(not_found(format!("Source collection {from} does not exist")));
    };
    if source.view().is_some() {
        return Err(Error::new(Code::CommandNotSupportedOnView, format!("cannot rename view: {from}")));
    }
    names::check(&to, &catalog).map_err(|error| {
        Error::new(Code::IllegalOperation, format!("error with target namespace: {}", error.message()))
    })?;
    let mut name = WriteSet::loose(&engine.inner.core);
    let target = create::hold_name(engine, &to, context, &mut name).await?;
    match &target {
        Some(target) if target.view().is_some() => {
            let message = format!("a view already exists with that name: {to}");
            return Err(Error::new(Code::NamespaceExists, message));
        }
        Some(_) if !drop_target => return Err(Error::new(Code::NamespaceExists, "target namespace exists")),
        _ => {}
    }
    let _gate = alone(&source, context).await?;
    let mut changes = Vec::new();
    let mut target_gate = None;
    if let Some(target) = &target {
        target_gate = Some(alone(target, context).await?);
        changes.push(Change::Drop(target.clone()));
    }
    changes.push(Change::Unname(from.clone()));
    changes.push(Change::Put(Arc::new(Collection { ns: to, ..(*source).clone() })));
    apply(engine, context, changes).await?;
    drop(target_gate);
    if let Some(Content::Stored(space)) = target.map(|target| target.content.clone()) {
        engine.inner.background.send(Job::Remove(space));
    }
    Ok(super::nothing())
}
