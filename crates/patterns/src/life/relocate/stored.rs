//! The collections of a shape: what is there, the place of new documents, and the view over all places.

use crate::execute::access::Access;
use crate::life::install;
use crate::life::relocate::way_back;
use crate::mql;
use crate::rule::names;
use crate::rule::read::Dialect;
use crate::rule::shape::Place;
use crate::rule::{Rule, ViewNeed};
use document::filter::Filter;
use document::op::{AdminOp, CollectionOptions, Namespace};
use document::{Code, Doc, Result, Value};

/// A collection or view as `listCollections` shows it.
pub(crate) struct CollectionInfo {
    pub(crate) kind: String,
    pub(crate) options: Doc<'static>,
}

impl CollectionInfo {
    pub(crate) fn is_view(&self) -> bool {
        self.kind == "view"
    }

    /// What a view is over.
    pub(crate) fn view_on(&self) -> Option<String> {
        self.options.get("viewOn").and_then(|on| on.as_str().map(str::to_owned))
    }
}

/// What has that name.
pub(crate) async fn look_up(at: &mut Access<'_>, ns: &Namespace) -> Result<Option<CollectionInfo>> {
    let filter = Filter::equality("name", &Value::from(&*ns.collection));
    let list = AdminOp::ListCollections { db: ns.db.to_string(), filter, name_only: false };
    let rows = at.backend.admin(at.session, at.context, list).await?;
    Ok(rows.first().map(|row| {
        let kind = row.get("type").and_then(|kind| kind.as_str().map(str::to_owned));
        let options = match row.get("options") {
            Some(Value::Document(options)) => options.into_owned(),
            _ => Doc::empty(),
        };
        CollectionInfo { kind: kind.unwrap_or_else(|| "collection".to_owned()), options }
    }))
}

/// Whether a collection has no document; one that is not there has none.
pub(crate) async fn is_empty(at: &mut Access<'_>, ns: &Namespace) -> Result<bool> {
    let find = document::op::Find { limit: Some(1), ..crate::execute::access::find(ns, Filter::all()) };
    Ok(at.find(find).await?.is_empty())
}

/// A name for what has to make room: free now, and Pleach's own, so that clients leave it alone.
pub(crate) async fn free_name(at: &mut Access<'_>, ns: &Namespace) -> Result<Namespace> {
    let plain = names::aside(ns);
    let mut name = plain.clone();
    for number in 2.. {
        if look_up(at, &name).await?.is_none() {
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

/// What the logical collection is a view of: the first place, and all others behind it. `None` if there is no place.
pub(crate) fn view(logical: &Namespace, places: &[Place], dialect: Dialect) -> Option<ViewNeed> {
    let (first, others) = places.split_first()?;
    let mut stages: Vec<Value<'static>> = first.shape.view(dialect).iter().collect();
    for other in others {
        let (stored, pipeline) = (Value::from(&*other.stored.collection), other.shape.view(dialect));
        stages.push(mql::call("$unionWith", mql::object([("coll", stored), ("pipeline", Value::Array(pipeline))])));
    }
    Some(ViewNeed { ns: logical.clone(), on: first.stored.clone(), pipeline: stages.into_iter().collect() })
}

/// Makes the place that new documents go to. A plain collection gets what it had before.
pub(crate) async fn ensure_place(
    at: &mut Access<'_>,
    rule: &Rule,
    place: &Place,
    had: Option<&Doc<'static>>,
) -> Result<()> {
    match place.shape.is_plain() {
        true => {
            let options = CollectionOptions { other: had.map(way_back::lasting), ..CollectionOptions::default() };
            install::ensure_collection(at, &place.stored, &options).await
        }
        false => install::install(at, rule, &place.shape.needs(&place.stored)).await,
    }
}

/// Makes the logical collection a view over these places.
pub(crate) async fn ensure_view(at: &mut Access<'_>, logical: &Namespace, places: &[Place]) -> Result<()> {
    match view(logical, places, dialect(at)) {
        Some(view) => install::ensure_view(at, &view).await,
        None => Ok(()),
    }
}

/// Drops a collection or view, if it is there.
pub(crate) async fn drop_if_there(at: &mut Access<'_>, ns: &Namespace) -> Result<()> {
    let dropped = at.backend.admin(at.session, at.context, AdminOp::Drop { ns: ns.clone() }).await;
    tolerate(dropped, Code::NamespaceNotFound)
}

/// Renames; what was renamed before a stop is left as it is.
pub(crate) async fn rename(at: &mut Access<'_>, from: &Namespace, to: &Namespace) -> Result<()> {
    match (look_up(at, from).await?, look_up(at, to).await?) {
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
