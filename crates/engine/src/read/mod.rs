//! Reading: find, aggregate, count and distinct as cursors; and the documents that an update or a delete works on.
//!
//! A cursor keeps no snapshot between two batches: its streams let go of theirs and go on behind the last key they saw, in
//! the moment of the next batch ([`present`]).

mod ahead;
mod count;
mod distinct;
mod distinct_scan;
mod find;
mod matching;
mod pipeline;
mod present;
mod rows;
mod summary;

pub(crate) use distinct::{distinct_index, distinct_keys};
pub(crate) use find::needed;
pub use matching::{MatchedDocument, Matching, matching};
pub(crate) use pipeline::resolve;
pub(crate) use rows::Window;
pub(crate) use summary::Summary;

use crate::backend::long;
use crate::catalog::Collection;
use crate::engine::Engine;
use crate::index::access::plan::Plan;
use crate::store::temporary::{STAGE_MEMORY, TemporaryFiles};
use crate::transaction::write_set::Moment;
use document::backend::{Answer, Batch, BatchLimit, Cursor, Session};
use document::op::{Context, ReadConcern, ReadOp};
use document::pipeline::{Rows, from_documents};
use document::{Doc, Result};
use find::Opened;
use pipeline::ReadSource;
use present::Present;
use std::sync::Arc;

/// Opens a cursor.
pub(crate) fn open(engine: &Engine, session: &mut Session, context: &Context, op: ReadOp) -> Result<Box<dyn Cursor>> {
    let present = Present::default();
    let moment = engine.moment(session)?;
    let held = (context.read_concern == ReadConcern::Snapshot && session.transaction.is_none()).then(|| moment.clone());
    present.begin(moment, &context.env);
    let disk = match &op {
        ReadOp::Find(op) => op.allow_disk_use,
        ReadOp::Aggregate(op) => op.allow_disk_use,
        ReadOp::Count(_) | ReadOp::Distinct(_) => false,
    };
    let mut env = present.env(&context.env);
    if disk {
        env.spill = Some(Arc::new(TemporaryFiles::beside(&engine.inner)));
    } else {
        env.memory_limit = env.memory_limit.min(STAGE_MEMORY);
    }
    let source = ReadSource { present: present.clone(), env };
    let only = |doc| Opened { rows: from_documents(vec![doc]), left: Some(1), blocking: false };
    let Opened { mut rows, left, blocking } = match &op {
        ReadOp::Find(op) => find::open(&source, op)?,
        ReadOp::Aggregate(op) => {
            let (rows, quick) = source.open(&op.ns, op.pipeline.clone(), op.hint.as_ref())?;
            Opened { rows, left: None, blocking: !quick }
        }
        ReadOp::Count(op) => {
            let counting = count::begin(&source, op)?;
            only(if counting.is_quick() { counting.end()? } else { long(|| counting.end())? })
        }
        ReadOp::Distinct(op) if source.is_quick(&op.ns)? => only(distinct::distinct(&source, op)?),
        ReadOp::Distinct(op) => only(long(|| distinct::distinct(&source, op))?),
    };
    rows.pause();
    present.end();
    Ok(Box::new(Open { engine: engine.clone(), present, rows, held, blocking, ahead: None, left, ended: false }))
}

/// Whether all of the collection can be read in the connection's own task.
fn is_small(collection: &Collection) -> bool {
    usize::try_from(collection.count()).is_ok_and(|documents| documents <= QUICK)
}

/// Whether a plan reads few documents, however many there are.
fn reads_few(plan: &Plan, window: Window) -> bool {
    let few = |number: usize| number <= QUICK;
    let reach = window.reach().and_then(|reach| usize::try_from(reach).ok());
    plan.at_most().is_some_and(few) || (plan.is_direct() && reach.is_some_and(|reach| reach <= 2 * QUICK))
}

struct Open {
    engine: Engine,
    present: Present,
    rows: Rows,
    /// The one moment of a snapshot read outside a transaction.
    held: Option<Moment>,
    /// The first document may take long.
    blocking: bool,
    /// Read, but did not fit into the last batch.
    ahead: Option<Doc<'static>>,
    /// How many documents are to come at most, if that is known.
    left: Option<u64>,
    ended: bool,
}

/// Batches up to this size are made in the connection's own task, unless the first document may take long.
const QUICK: usize = 1000;

impl Cursor for Open {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            let moment = match &self.held {
                Some(moment) => moment.clone(),
                None => self.engine.moment(session)?,
            };
            self.present.begin(moment, &context.env);
            let batch =
                if self.blocking || limit.documents > QUICK { long(|| self.fill(limit)) } else { self.fill(limit) };
            self.rows.pause();
            self.present.end();
            batch
        })
    }
}

impl Open {
    /// At least one document is given, however large.
    fn fill(&mut self, limit: BatchLimit) -> Result<Batch> {
        let mut batch = Batch::default();
        let mut bytes = 0;
        while batch.documents.len() < limit.documents {
            let next = match self.ahead.take() {
                Some(doc) => Some(doc),
                None if self.ended => None,
                None => self.rows.next()?,
            };
            let Some(doc) = next else {
                self.ended = true;
                break;
            };
            bytes += doc.as_bytes().len();
            if bytes > limit.bytes && !batch.documents.is_empty() {
                self.ahead = Some(doc);
                break;
            }
            batch.documents.push(doc);
            if let Some(left) = &mut self.left {
                *left = left.saturating_sub(1);
                self.ended |= *left == 0;
            }
        }
        batch.exhausted = self.ended && self.ahead.is_none();
        Ok(batch)
    }
}
