//! Clients' own views over documents of several versions. A backend would run such a view over documents as they are stored, so it is
//! taken apart here: its stages stand in front of what is asked, and the collection beneath is read through the lens.

use crate::active::Lenses;
use crate::active::known_views::{ClientView, ClientViews};
use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::{self, ResultForm};
use crate::execute::read::versioned::{self, variables};
use crate::mql::object;
use crate::rule::read::names_others;
use document::backend::{Backend, Cursor, Session};
use document::filter::Filter;
use document::op::{AdminOp, Aggregate, Context, Namespace, ReadConcern, ReadOp, Sent};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, Result, Value};
use std::sync::Arc;

/// How many views may stand on each other.
const MOST_LEVELS: usize = 20;

/// Opens a cursor for a client, who may name a view.
pub(crate) async fn open(
    backend: &dyn Backend,
    lenses: &Lenses,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
) -> Result<Box<dyn Cursor>> {
    if lenses.is_empty() {
        return backend.read(session, context, op).await;
    }
    let (op, form, views) = expanded(backend, lenses, context, op).await?;
    let cursor = versioned::open_among(backend, lenses, &views, session, context, op).await?;
    Ok(result::cursor(cursor, form))
}

/// The read of what lies beneath the view that is asked for, what is made of its rows, and the views that it may join.
pub(super) async fn expanded(
    backend: &dyn Backend,
    lenses: &Lenses,
    context: &Context,
    op: ReadOp,
) -> Result<(ReadOp, ResultForm, Arc<ClientViews>)> {
    let db = op.ns().db.clone();
    let joins = matches!(&op, ReadOp::Aggregate(op) if op.pipeline.source.as_ref().is_some_and(names_others));
    if lenses.in_database(&db).next().is_none() || lenses.of(op.ns()).is_some() && !joins {
        return Ok((op, ResultForm::Rows, Arc::default()));
    }
    let views = list(backend, lenses, context, &db).await;
    let Some((on, stages)) = beneath(lenses, &views, op.ns()) else { return Ok((op, ResultForm::Rows, views)) };
    let mut parsed = ParsedRead::of(&op, context)?;
    if let (Some(_), ReadOp::Distinct(distinct)) = (op.collation(), &op) {
        parsed.make_collated_distinct(distinct)?;
    }
    let (asked, shown) =
        (parsed.request.source(), parsed.request.projection.as_ref().and_then(|shown| shown.source.clone()));
    let all: Array<'static> =
        stages.iter().chain(asked.iter()).chain(shown.iter().flat_map(|stages| stages.iter())).collect();
    let form = match parsed.only_in_find {
        Some(projection) => ResultForm::Project(projection),
        None => parsed.form,
    };
    let aggregate = Aggregate {
        ns: on,
        collectionless: false,
        pipeline: Pipeline::parse(&all, &mut variables(context)?)?,
        hint: parsed.request.hint.clone(),
        allow_disk_use: parsed.request.allow_disk_use,
        collation: op.collation().cloned(),
    };
    Ok((ReadOp::Aggregate(aggregate), form, views))
}

/// The collection beneath a view, and the stages that make the view of it, the lowest first. `None` if the name is no view, or one that
/// has nothing to do with versions.
pub(super) fn beneath(lenses: &Lenses, views: &ClientViews, ns: &Namespace) -> Option<(Namespace, Array<'static>)> {
    let (mut on, mut stages) = (ns.clone(), Array::empty());
    let mut is_concerned = false;
    for _ in 0..=MOST_LEVELS {
        let Some(view) = views.get(&*on.collection) else { break };
        is_concerned |= names_others(&view.stages);
        stages = view.stages.iter().chain(stages.iter()).collect();
        on = Namespace::new(&ns.db, &view.on);
    }
    let is_view = on != *ns && !views.contains_key(&*on.collection);
    (is_view && (is_concerned || lenses.of(&on).is_some())).then_some((on, stages))
}

/// The views of a database, as they were a moment ago at the latest. A user without the right to list them has none.
pub(crate) async fn list(backend: &dyn Backend, lenses: &Lenses, context: &Context, db: &str) -> Arc<ClientViews> {
    if let Some(known) = lenses.views.of(db) {
        return known;
    }
    let only = object([("type", Value::from("view"))]);
    let filter = match &only {
        Value::Document(only) => Filter::parse(only, &mut Names::new()),
        _ => Ok(Filter::all()),
    };
    let Ok(filter) = filter else { return Arc::default() };
    let op = AdminOp::ListCollections { db: db.to_owned(), filter, name_only: false };
    // Not what the client said about its own read.
    let context = Context { sent: Sent::default(), read_concern: ReadConcern::Local, ..context.clone() };
    let rows = backend.admin(&mut Session::default(), &context, op).await.unwrap_or_default();
    lenses.views.listed(db, rows.iter().filter_map(view).collect())
}

fn view(row: &Doc<'static>) -> Option<(String, ClientView)> {
    let name = row.get("name")?.as_str()?.to_owned();
    let Some(Value::Document(options)) = row.get("options") else { return None };
    let on = options.get("viewOn")?.as_str()?.to_owned();
    let Some(Value::Array(stages)) = options.get("pipeline") else { return None };
    Some((name, ClientView { on, stages: stages.into_owned() }))
}
