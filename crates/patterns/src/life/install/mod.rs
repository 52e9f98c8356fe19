//! The one place where what rules need in the database ([`Needs`]) is compared with what is there, planned, made, undone and given back.
//!
//! What is there and serves is used. What is made is remembered in the catalog ([`made`]), so that it is removed with the last rule
//! that needs it, and nothing else is.

pub(crate) mod indexes;
pub(crate) mod made;
mod validation;
pub(crate) mod validators;

#[cfg(test)]
mod tests;

pub(crate) use indexes::{PlannedIndex, create_all, missing, missing_beside, serves};
pub(crate) use made::MadeIndex;

use crate::execute::access::Access;
use crate::life::catalog;
use crate::life::relocate::stored::{drop_if_there, is_empty, look_up};
use crate::life::versions::change;
use crate::mql;
use crate::rule::{Lens, Needs, Rule, ViewNeed};
use document::op::{AdminOp, CollectionOptions, Namespace};
use document::value::Path;
use document::{Code, Result, Value};
use std::sync::Arc;

/// Makes what a rule needs and is not there: its own collections first, views last. Done again it changes nothing.
pub(crate) async fn install(at: &mut Access<'_>, rule: &Rule, needs: &Needs) -> Result<()> {
    for (ns, options) in &needs.collections {
        ensure_collection(at, ns, options).await?;
    }
    ensure_indexes(at, rule).await?;
    for view in &needs.views {
        let view = over_newest(at, rule, view).await?;
        ensure_view(at, &view).await?;
    }
    Ok(())
}

/// The view of all items of an array, over hosts as they are in the newest version.
async fn over_newest(at: &mut Access<'_>, rule: &Rule, view: &ViewNeed) -> Result<ViewNeed> {
    let Some(outlier) = rule.outlier() else { return Ok(view.clone()) };
    let moved = Path::new(&outlier.field);
    Ok(match lens_of(at, &view.on).await?.filter(|lens| lens.changes(&moved)) {
        Some(lens) => {
            let pipeline = lens.view().iter().chain(view.pipeline.iter()).collect();
            ViewNeed { pipeline, ..view.clone() }
        }
        None => view.clone(),
    })
}

/// What tells the versions of a collection's documents apart, by the catalog; `None` if there is one version.
pub(crate) async fn lens_of(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<Arc<Lens>>> {
    for row in catalog::load(at, &ns.db).await?.iter().filter(|row| row.state.is_kept()) {
        // A row that is no rule of the database says nothing.
        let Ok(rule) = row.rule_in(&ns.db) else { continue };
        if rule.host == *ns && rule.lens().is_some() {
            return Ok(change::in_force(row, Arc::new(rule))?.lens().cloned());
        }
    }
    Ok(None)
}

pub(crate) async fn ensure_indexes(at: &mut Access<'_>, rule: &Rule) -> Result<()> {
    for planned in missing(at, rule).await? {
        indexes::create(at, rule, &planned).await?;
    }
    Ok(())
}

/// A collection that is there gets the validator that its rule needs; its other options stay.
pub(crate) async fn ensure_collection(at: &mut Access<'_>, ns: &Namespace, options: &CollectionOptions) -> Result<()> {
    let op = match (look_up(at, ns).await?, &options.validator) {
        (None, _) => AdminOp::Create { ns: ns.clone(), options: options.clone() },
        (Some(found), Some(validator)) => {
            if matches!(found.options.get("validator"), Some(Value::Document(there)) if there == *validator) {
                return Ok(());
            }
            let change = mql::document([("validator", Value::Document(validator.borrow()))]);
            AdminOp::CollMod { ns: ns.clone(), change }
        }
        (Some(_), None) => return Ok(()),
    };
    match at.backend.admin(at.session, at.context, op).await {
        Err(error) if error.code() == Code::NamespaceExists => Ok(()),
        other => other.map(drop),
    }
}

/// Makes a view, or what it is. An empty collection of its name makes room.
pub(crate) async fn ensure_view(at: &mut Access<'_>, view: &ViewNeed) -> Result<()> {
    let ViewNeed { ns, on, pipeline } = view;
    let op = match look_up(at, ns).await? {
        Some(found) if found.is_view() => {
            let same = found.view_on().as_deref() == Some(&*on.collection)
                && matches!(found.options.get("pipeline"), Some(Value::Array(stages)) if stages.as_bytes() == pipeline.as_bytes());
            if same {
                return Ok(());
            }
            AdminOp::CollMod { ns: ns.clone(), change: mql::document(definition(view)) }
        }
        there => {
            if there.is_some() && is_empty(at, ns).await? {
                drop_if_there(at, ns).await?;
            }
            let on = on.collection.to_string();
            AdminOp::CreateView { ns: ns.clone(), on, pipeline: pipeline.clone() }
        }
    };
    at.backend.admin(at.session, at.context, op).await.map(drop)
}

fn definition(view: &ViewNeed) -> [(&'static str, Value<'_>); 2] {
    [("viewOn", Value::from(&*view.on.collection)), ("pipeline", Value::Array(view.pipeline.borrow()))]
}

/// `{ create: …, validator: … }`: what a person would run for a collection of the rule's own.
pub(crate) fn creation(ns: &Namespace, options: &CollectionOptions) -> document::Doc<'static> {
    let validator = options.validator.as_ref().map_or(Value::Missing, |validator| Value::Document(validator.borrow()));
    mql::document([("create", Value::from(&*ns.collection)), ("validator", validator)])
}

/// `{ create: …, viewOn, pipeline }`, or the same as a change of the view that is there.
pub(crate) fn view_command(view: &ViewNeed, is_there: bool) -> document::Doc<'static> {
    let verb = if is_there { "collMod" } else { "create" };
    let name = (verb, Value::from(&*view.ns.collection));
    mql::document([name].into_iter().chain(definition(view)))
}
