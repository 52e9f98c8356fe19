//! `create` and `collMod` that would give a rule's collection a validator which refuses what the rule writes: they are refused by the
//! same look at the data that `apply` takes, before every later write of a client fails.

use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::layer::refused::exists;
use crate::life::preview::refused_validator;
use crate::life::relocate::stored;
use crate::rule::Rule;
use document::backend::Session;
use document::op::{AdminOp, CollectionOptions, Context, Namespace};
use document::{Doc, DocWriter, Result, Value};
use std::sync::Arc;

const OPTIONS: &[&str] = &["validator", "validationLevel", "validationAction"];

/// Fails if the collection would have such a validator afterwards.
pub(super) async fn check(executor: &Executor, context: &Context, op: &AdminOp) -> Result<()> {
    let (ns, requested) = match op {
        AdminOp::CollMod { ns, change } => (ns, chosen(change)),
        AdminOp::Create { ns, options } => (ns, of_options(options)),
        _ => return Ok(()),
    };
    if requested.is_empty() {
        return Ok(());
    }
    let rules = executor.rules();
    let Some(local) = rules.of(ns).filter(|local| !local.hosted.is_empty()) else { return Ok(()) };
    let hosted: Vec<&Arc<Rule>> = local.hosted.iter().map(|kept| &kept.rule).collect();
    let options = match op {
        // MongoDB says that a name is taken.
        AdminOp::Create { .. } if exists(executor, context, ns).await? => return Ok(()),
        AdminOp::Create { .. } => requested,
        _ => changed(executor, context, ns, &requested).await?,
    };
    let mut own = Session::default();
    let mut at = Access { backend: &*executor.inner, session: &mut own, context };
    refused_validator(&mut at, ns, &options, &hosted).await?.map_or(Ok(()), Err)
}

/// The options that the collection has, with what is said of them now.
async fn changed(
    executor: &Executor,
    context: &Context,
    ns: &Namespace,
    requested: &Doc<'static>,
) -> Result<Doc<'static>> {
    let mut own = Session::default();
    let mut at = Access { backend: &*executor.inner, session: &mut own, context };
    let current = stored::look_up(&mut at, ns).await?.map_or_else(Doc::empty, |found| chosen(&found.options));
    let mut all = DocWriter::new();
    for name in OPTIONS {
        if let Some(value) = requested.get(name).or_else(|| current.get(name)) {
            all.append(name, &value);
        }
    }
    Ok(all.finish())
}

fn chosen(options: &Doc<'_>) -> Doc<'static> {
    let mut chosen = DocWriter::new();
    for (name, value) in options.iter().filter(|(name, _)| OPTIONS.contains(&name.as_str())) {
        chosen.append(name.as_str(), &value);
    }
    chosen.finish()
}

fn of_options(options: &CollectionOptions) -> Doc<'static> {
    let mut requested = DocWriter::new();
    if let Some(validator) = &options.validator {
        requested.append("validator", &Value::Document(validator.borrow()));
    }
    for (name, word) in
        [("validationLevel", &options.validation_level), ("validationAction", &options.validation_action)]
    {
        if let Some(word) = word {
            requested.append(name, &Value::from(&**word));
        }
    }
    requested.finish()
}
