//! A client's read: passed on as it is, or answered by the shape that its collection has.

use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::execute::outlier::reads;
use crate::execute::read::others::{self, OtherCollections};
use crate::execute::{digits, read};
use crate::layer::{named_collection, switchover_wait};
use document::backend::{Answer, Cursor, Session};
use document::filter::Filter;
use document::op::{Context, Find, Namespace, ReadOp};
use document::pipeline::not_first;
use document::text::node::index_required;
use document::{Doc, Error, Result};
use std::sync::Arc;

pub(super) fn read<'a>(
    executor: &'a Arc<Executor>,
    session: &'a mut Session,
    context: &'a Context,
    op: ReadOp,
) -> Answer<'a, Box<dyn Cursor>> {
    let rules = executor.current();
    if read::takes_no_union(&*executor.inner, session) {
        match others::joined(&rules, &op, context) {
            Ok(None) => {}
            Ok(Some(joined)) => {
                let others = Arc::new(ByTheLayer { executor: executor.clone(), db: op.ns().db.clone() });
                return Box::pin(async move {
                    let rows = read(executor, session, context, joined.before.clone()).await?;
                    joined.open(rows, session, context, others).await
                });
            }
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        }
    }
    if reads::concerned(&rules, &op).is_some() {
        drop(rules);
        return Box::pin(async move {
            let rules = switchover_wait::until_read(executor, session, context, &op).await?;
            match reads::concerned(&rules, &op) {
                Some(local) => {
                    refuse_collation(&op)?;
                    reads::open(executor, session, context, op, &rules, local).await
                }
                None => {
                    let lenses = rules.lenses();
                    read::versioned_views::open(&*executor.inner, lenses, session, context, op).await
                }
            }
        });
    }
    if !rules.any_switching() && read::stack_of(&rules, &op).is_none() && rules.lenses().is_empty() {
        let op = match digits::read_owned(&rules, op, context) {
            Ok(op) => op,
            Err(error) => return Box::pin(std::future::ready(Err(error))),
        };
        let cursor = executor.inner.read(session, context, op);
        // The rules are kept until the cursor is open: a collection that is renamed meanwhile would seem to be empty.
        return Box::pin(async move {
            let cursor = cursor.await;
            drop(rules);
            cursor
        });
    }
    drop(rules);
    Box::pin(async move {
        let rules = switchover_wait::until_read(executor, session, context, &op).await?;
        match read::stack_of(&rules, &op) {
            Some(shaped) => {
                refuse_text(&op)?;
                refuse_collation(&op)?;
                let line = session.relay.clone();
                let sees_stored = named_collection::sees_stored(executor, line.as_ref(), &op, shaped).await?;
                let outcome = match !sees_stored && (shaped.places.len() == 1 || shaped.is_virtual()) {
                    true => {
                        let op = digits::read_owned(&rules, op.clone(), context)?;
                        executor.inner.read(session, context, op).await
                    }
                    false => read::open(&*executor.inner, &rules, session, context, &op, shaped).await,
                };
                named_collection::of_read(executor, line, &op, outcome).await
            }
            None => {
                let op = digits::read_owned(&rules, op, context)?;
                read::versioned_views::open(&*executor.inner, rules.lenses(), session, context, op).await
            }
        }
    })
}

/// Items of a shape or an overflow are compared here, byte by byte. A command with a collation is passed on to MongoDB where it can be.
pub(crate) fn refuse_collation(op: &ReadOp) -> Result<()> {
    match op.collation() {
        Some(_) => Err(Error::not_implemented("a collation other than { locale: \"simple\" }")),
        None => Ok(()),
    }
}

/// Other collections as a client of the layer reads them.
struct ByTheLayer {
    executor: Arc<Executor>,
    db: Arc<str>,
}

impl OtherCollections for ByTheLayer {
    fn read<'a>(
        &'a self,
        session: &'a mut Session,
        context: &'a Context,
        collection: &str,
        filter: Filter,
    ) -> Answer<'a, Vec<Doc<'static>>> {
        let op = ReadOp::Find(Find::matching(Namespace::new(&self.db, collection), filter));
        Box::pin(async move {
            let cursor = read(&self.executor, session, context, op).await?;
            Access { backend: &*self.executor.inner, session, context }.drained(cursor).await
        })
    }
}

/// A collection with a shape has no text index of its own: a search is refused as MongoDB refuses it on a view.
fn refuse_text(op: &ReadOp) -> Result<()> {
    let (ns, filter) = match op {
        ReadOp::Aggregate(op) if op.pipeline.searches_text() => return Err(not_first()),
        ReadOp::Aggregate(_) => return Ok(()),
        ReadOp::Find(op) => (&op.ns, &op.filter),
        ReadOp::Count(op) => (&op.ns, &op.filter),
        ReadOp::Distinct(op) => (&op.ns, &op.filter),
    };
    match filter.has_text() {
        true => Err(index_required(&format!(" (no such collection '{ns}')"))),
        false => Ok(()),
    }
}
