//! The collections of a shape: what is there, the stored one with its validator and indexes, and the view over all places.

use crate::life::access::Access;
use crate::life::relocate::way_back;
use crate::life::{indexes, names};
use crate::mql;
use crate::rule::Rule;
use crate::rule::shape::Place;
use crate::shapes::bucket::{Bucket, Dialect};
use document::filter::Filter;
use document::op::{AdminOp, CollectionOptions, Namespace};
use document::{Array, Code, Doc, Result, Value};

/// A collection or view as `listCollections` shows it.
pub(crate) struct Found {
    pub(crate) kind: String,
    pub(crate) options: Doc<'static>,
}

impl Found {
    pub(crate) fn is_view(&self) -> bool {
        self.kind == "view"
    }

    /// What a view is over.
    pub(crate) fn view_on(&self) -> Option<String> {
        self.options.get("viewOn").and_then(|on| on.as_str().map(str::to_owned))
    }
}

/// What has that name.
pub(crate) async fn found(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<Found>> {
    let filter = Filter::equality("name", &Value::from(&*ns.collection));
    let list = AdminOp::ListCollections { db: ns.db.to_string(), filter, name_only: false };
    let rows = at.backend.admin(at.session, at.context, list).await?;
    Ok(rows.first().map(|row| {
        let kind = row.get("type").and_then(|kind| kind.as_str().map(str::to_owned));
        let options = match row.get("options") {
            Some(Value::Document(options)) => options.into_owned(),
            _ => Doc::empty(),
        };
        Found { kind: kind.unwrap_or_else(|| "collection".to_owned()), options }
    }))
}

/// Whether a collection has no document; one that is not there has none.
pub(crate) async fn is_empty(at: &mut Access<'_>, ns: &Namespace) -> Result<bool> {
    let find = document::op::Find { limit: Some(1), ..crate::life::access::find(ns, Filter::all()) };
    Ok(at.find(find).await?.is_empty())
}

/// A name for what has to make room: free now, and Pleach's own, so that clients leave it alone.
pub(crate) async fn free_name(at: &mut Access<'_>, ns: &Namespace) -> Result<Namespace> {
    let plain = names::aside(ns);
    let mut name = plain.clone();
    for number in 2.. {
        if found(at, &name).await?.is_none() {
            break;
        }
        name = Namespace::new(&plain.db, &format!("{}.{number}", plain.collection));
    }
    Ok(name)
}

/// How stages are written: so that a dump can be restored into any MongoDB.
pub(crate) fn dialect(_: &Access<'_>) -> Dialect {
    Dialect::MongoDb
}

/// What the logical collection is a view of: the first place, and all others behind it.
pub(crate) fn view(sides: &[Place], dialect: Dialect) -> Option<(String, Array<'static>)> {
    let (first, others) = sides.split_first()?;
    let mut stages: Vec<Value<'static>> = first.shape.view(dialect).iter().collect();
    for other in others {
        let (stored, pipeline) = (Value::from(&*other.stored.collection), other.shape.view(dialect));
        stages.push(mql::call("$unionWith", mql::object([("coll", stored), ("pipeline", Value::Array(pipeline))])));
    }
    Some((first.stored.collection.to_string(), stages.into_iter().collect()))
}

/// `{ create: …, validator: … }`: what a person would run.
pub(crate) fn creation(bucket: &Bucket) -> Doc<'static> {
    let name = ("create", Value::from(&*bucket.into.collection));
    mql::document([name, ("validator", Value::Document(bucket.validator()))])
}

/// `{ create: …, viewOn, pipeline }`, or the same as a change of the view that is there.
pub(crate) fn view_command(logical: &Namespace, sides: &[Place], dialect: Dialect, is_there: bool) -> Doc<'static> {
    let Some((on, stages)) = view(sides, dialect) else { return Doc::empty() };
    let verb = if is_there { "collMod" } else { "create" };
    let name = (verb, Value::from(&*logical.collection));
    mql::document([name, ("viewOn", Value::string(on)), ("pipeline", Value::Array(stages))])
}

/// Makes the stored collection what the rule needs; done again it changes nothing.
pub(crate) async fn ensure_stored(at: &mut Access<'_>, rule: &Rule, bucket: &Bucket) -> Result<()> {
    let (ns, validator) = (&bucket.into, bucket.validator());
    match found(at, ns).await? {
        None => {
            let options = CollectionOptions { validator: Some(validator), ..CollectionOptions::default() };
            let made = at.backend.admin(at.session, at.context, AdminOp::Create { ns: ns.clone(), options }).await;
            tolerate(made, Code::NamespaceExists)?;
        }
        Some(found) => {
            let same = matches!(found.options.get("validator"), Some(Value::Document(there)) if there == validator);
            if !same {
                let change = mql::document([("validator", Value::Document(validator))]);
                at.backend.admin(at.session, at.context, AdminOp::CollMod { ns: ns.clone(), change }).await?;
            }
        }
    }
    for needed in indexes::missing(at, rule).await? {
        indexes::create(at, rule, &needed).await?;
    }
    Ok(())
}

/// Makes a plain collection with what it had before, if it is not there.
pub(crate) async fn ensure_plain(at: &mut Access<'_>, ns: &Namespace, had: Option<&Doc<'static>>) -> Result<()> {
    if found(at, ns).await?.is_some() {
        return Ok(());
    }
    let options = CollectionOptions { other: had.map(way_back::lasting), ..CollectionOptions::default() };
    let op = AdminOp::Create { ns: ns.clone(), options };
    let made = at.backend.admin(at.session, at.context, op).await;
    tolerate(made, Code::NamespaceExists)
}

/// Makes the logical collection a view over these sides.
pub(crate) async fn ensure_view(at: &mut Access<'_>, logical: &Namespace, sides: &[Place]) -> Result<()> {
    let Some((on, pipeline)) = view(sides, dialect(at)) else { return Ok(()) };
    let op = match found(at, logical).await? {
        Some(found) if found.is_view() => {
            let same = found.view_on().as_deref() == Some(&*on)
                && matches!(found.options.get("pipeline"), Some(Value::Array(stages)) if stages.as_bytes() == pipeline.as_bytes());
            if same {
                return Ok(());
            }
            let change = mql::document([("viewOn", Value::string(on)), ("pipeline", Value::Array(pipeline))]);
            AdminOp::CollMod { ns: logical.clone(), change }
        }
        Some(_) if is_empty(at, logical).await? => {
            drop_if_there(at, logical).await?;
            AdminOp::CreateView { ns: logical.clone(), on, pipeline }
        }
        _ => AdminOp::CreateView { ns: logical.clone(), on, pipeline },
    };
    at.backend.admin(at.session, at.context, op).await.map(drop)
}

/// Drops a collection or view, if it is there.
pub(crate) async fn drop_if_there(at: &mut Access<'_>, ns: &Namespace) -> Result<()> {
    let dropped = at.backend.admin(at.session, at.context, AdminOp::Drop { ns: ns.clone() }).await;
    tolerate(dropped, Code::NamespaceNotFound)
}

/// Renames; what was renamed before a stop is left as it is.
pub(crate) async fn rename(at: &mut Access<'_>, from: &Namespace, to: &Namespace) -> Result<()> {
    match (found(at, from).await?, found(at, to).await?) {
        (Some(source), None) if !source.is_view() => {
            let op = AdminOp::Rename { from: from.clone(), to: to.clone(), drop_target: false };
            at.backend.admin(at.session, at.context, op).await.map(drop)
        }
        // Renamed before a stop, and made anew since.
        (Some(source), Some(_)) if !source.is_view() && is_empty(at, from).await? => Ok(()),
        (Some(source), Some(_)) if !source.is_view() => Err(document::Error::new(
            Code::NamespaceExists,
            format!(
                "{from} was made anew by somebody who does not go through Pleach, after it had been renamed to {to}"
            ),
        )
        .with_hint(format!("put its documents into {to} and drop it"))),
        _ => Ok(()),
    }
}

fn tolerate(outcome: Result<Vec<Doc<'static>>>, code: Code) -> Result<()> {
    match outcome {
        Err(error) if error.code() == code => Ok(()),
        other => other.map(drop),
    }
}
