//! Time-series collections on the embedded store: commands about whole collections treat and show them as MongoDB does. In front
//! of a real MongoDB they are its own.

use crate::execute::executor::Executor;
use crate::front::ClientFront;
use crate::life::Life;
use crate::life::timeseries::{listed, refused_on_timeseries};
use crate::mql;
use document::backend::{Head, Session};
use document::filter::Filter;
use document::op::{AdminOp, Context, Namespace, ReadOp};
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

/// Answers what is about them; nothing for everything else.
pub(super) async fn run(
    front: &ClientFront,
    session: &mut Session,
    context: &Context,
    op: &AdminOp,
) -> Result<Option<Vec<Doc<'static>>>> {
    let (executor, life) = (front.executor(), &front.life);
    if !life.keeps_timeseries() {
        return Ok(None);
    }
    match op {
        AdminOp::CreateView { ns, .. } if life.is_timeseries(ns) => {
            Err(Error::new(Code::NamespaceExists, "Namespace already exists"))
        }
        AdminOp::Create { ns, .. } if life.is_timeseries(ns) => {
            let message = format!("A timeseries collection already exists. NS: {ns}");
            Err(Error::new(Code::NamespaceExists, message))
        }
        AdminOp::Create { ns, options } => match &options.other {
            Some(other) if other.contains("timeseries") => {
                if session.transaction.is_some() {
                    let message =
                        format!("Cannot create a time-series collection in a multi-document transaction. NS: {ns}");
                    return Err(Error::new(Code::OperationNotSupportedInTransaction, message));
                }
                life.create_timeseries(context, ns, other, false).await?;
                Ok(Some(vec![Doc::empty()]))
            }
            _ => Ok(None),
        },
        AdminOp::Drop { ns } => {
            if !life.drop_timeseries(context, ns).await? {
                return Ok(None);
            }
            let reply = [("nIndexesWas", Value::Int32(0)), ("ns", Value::string(ns.to_string()))];
            Ok(Some(vec![mql::document(reply)]))
        }
        AdminOp::Rename { from, to, .. } => match (life.is_timeseries(from), life.is_timeseries(to)) {
            (true, _) => Err(Error::new(Code::CommandNotSupportedOnView, format!("cannot rename view: {from}"))),
            (_, true) if from.collection.starts_with("tmp.agg_out.") => Err(refused_on_timeseries(to)),
            (_, true) => {
                let message = format!("a view already exists with that name: {to}");
                Err(Error::new(Code::NamespaceExists, message))
            }
            _ => Ok(None),
        },
        AdminOp::Validate { ns, .. } if life.is_timeseries(ns) => {
            Err(Error::new(Code::CommandNotSupportedOnView, "Cannot validate a view"))
        }
        AdminOp::Compact { ns } if life.is_timeseries(ns) => Err(refused_on_timeseries(ns)),
        AdminOp::CollStats { ns, scale } => match life.timeseries_indexes(ns) {
            Some(indexes) => {
                stats(executor, session, context, ns, *scale, &indexes).await.map(|stats| Some(vec![stats]))
            }
            None => Ok(None),
        },
        AdminOp::ListIndexes { ns } => Ok(life.timeseries_indexes(ns)),
        AdminOp::CreateIndexes { ns, indexes } if life.is_timeseries(ns) => {
            refuse_in_transaction(session, ns)?;
            life.create_timeseries_indexes(context, ns, indexes).await.map(|reply| Some(vec![reply]))
        }
        AdminOp::DropIndexes { ns, which } if life.is_timeseries(ns) => {
            life.drop_timeseries_indexes(context, ns, which).await.map(|reply| Some(vec![reply]))
        }
        AdminOp::CollMod { ns, change } if life.is_timeseries(ns) => {
            life.modify_timeseries(context, ns, change).await.map(|reply| Some(vec![reply]))
        }
        AdminOp::ListCollections { db, filter, name_only } => {
            let made = life.all_timeseries(db);
            if made.is_empty() {
                return Ok(None);
            }
            let all = AdminOp::ListCollections { db: db.clone(), filter: Filter::all(), name_only: false };
            let mut rows = Vec::new();
            for row in executor.inner.admin(session, context, all).await? {
                let name = row.get("name").and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default();
                let row = match made.iter().find(|(made, _)| **made == *name) {
                    Some((_, options)) => listed(&name, options),
                    None => row,
                };
                if filter.matches(&row, &context.env)? {
                    rows.push(if *name_only { names(&row) } else { row });
                }
            }
            Ok(Some(rows))
        }
        _ => Ok(None),
    }
}

/// Why a time-series collection of the embedded store cannot be watched; `None` if it is none.
pub(super) fn refused(life: &Life, command: &Head<'_>) -> Option<Error> {
    life.refused_as_timeseries(&Namespace::new(command.db, command.target?))
}

fn names(row: &Doc<'static>) -> Doc<'static> {
    mql::document(["name", "type"].map(|name| (name, row.get(name).unwrap_or(Value::Missing))))
}

fn refuse_in_transaction(session: &Session, ns: &Namespace) -> Result<()> {
    match session.transaction.is_some() {
        true => Err(Error::new(
            Code::OperationNotSupportedInTransaction,
            format!("Cannot create new indexes on existing collection {ns} in a multi-document transaction."),
        )),
        false => Ok(()),
    }
}

/// Those of the buckets, under the name that clients know; how many documents there are is said of the buckets only.
async fn stats(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    ns: &Namespace,
    scale: i64,
    indexes: &[Doc<'static>],
) -> Result<Doc<'static>> {
    let rules = executor.rules();
    let Some(place) = rules.shaped(ns).and_then(|shaped| shaped.places.first()) else {
        return Err(Error::new(Code::ConflictingOperationInProgress, format!("{ns} is being made")));
    };
    let op = AdminOp::CollStats { ns: place.stored.clone(), scale };
    let stored = executor.inner.admin(session, context, op).await?.into_iter().next().unwrap_or_else(Doc::empty);
    let mut stats = DocWriter::new();
    for (name, value) in stored.iter() {
        match name.as_str() {
            "ns" => stats.append("ns", &Value::string(ns.to_string())),
            "size" => {
                stats.append("size", &value).start_document("timeseries");
                stats.append("bucketsNs", &Value::string(place.stored.to_string()));
                stats.append("bucketCount", &stored.get("count").unwrap_or(Value::Int32(0)));
                stats.append("avgBucketSize", &stored.get("avgObjSize").unwrap_or(Value::Missing)).end()
            }
            "count" | "avgObjSize" => continue,
            "nindexes" => stats.append("nindexes", &Value::Int32(i32::try_from(indexes.len()).unwrap_or(i32::MAX))),
            "indexSizes" => {
                stats.start_document("indexSizes");
                if let Value::Document(sizes) = &value {
                    let listed = |name: &str| {
                        indexes.iter().any(|index| index.get("name").is_some_and(|own| own.as_str() == Some(name)))
                    };
                    for (name, size) in sizes.iter().filter(|(name, _)| listed(name.as_str())) {
                        stats.append(name.as_str(), &size);
                    }
                }
                stats.end()
            }
            other => stats.append(other, &value),
        };
    }
    Ok(stats.finish())
}

/// A read with the index of the buckets that its hint means.
pub(super) async fn hinted(life: &Life, context: &Context, mut op: ReadOp) -> Result<ReadOp> {
    if !life.keeps_timeseries() {
        return Ok(op);
    }
    let ns = op.ns().clone();
    let hint = match &mut op {
        ReadOp::Find(op) => &mut op.hint,
        ReadOp::Count(op) => &mut op.hint,
        ReadOp::Aggregate(op) => &mut op.hint,
        ReadOp::Distinct(_) => return Ok(op),
    };
    if let Some(wanted) = hint
        && let Some(meant) = life.timeseries_hint(context, &ns, wanted).await?
    {
        *hint = Some(meant);
    }
    Ok(op)
}
