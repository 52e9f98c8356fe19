//! Time-series collections on the embedded store: `create`, `drop` and `listCollections` show them as MongoDB does. In front of
//! a real MongoDB they are its own.

use super::Shared;
use crate::life::shape::timeseries::listed;
use crate::mql;
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Context};
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// Answers what is about them; nothing for everything else.
pub(super) async fn run(
    shared: &Arc<Shared>,
    session: &mut Session,
    context: &Context,
    op: &AdminOp,
) -> Result<Option<Vec<Doc<'static>>>> {
    if shared.inner.abilities().forwards {
        return Ok(None);
    }
    let Some(life) = shared.life() else { return Ok(None) };
    match op {
        AdminOp::Create { ns, .. } | AdminOp::CreateView { ns, .. } if life.is_timeseries(ns) => {
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
                life.create_timeseries(context, ns, other).await?;
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
        AdminOp::ListCollections { db, filter, name_only } => {
            let made = life.all_timeseries(db);
            if made.is_empty() {
                return Ok(None);
            }
            let all = AdminOp::ListCollections { db: db.clone(), filter: Filter::all(), name_only: false };
            let mut rows = Vec::new();
            for row in shared.inner.admin(session, context, all).await? {
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

fn names(row: &Doc<'static>) -> Doc<'static> {
    mql::document(["name", "type"].map(|name| (name, row.get(name).unwrap_or(Value::Missing))))
}
