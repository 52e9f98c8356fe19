//! A collection of several places in a transaction of a real MongoDB, which takes no `$unionWith` there: the places are read one after
//! the other, and what was asked is run in this process.

use crate::execute::read::{local_pipeline, union};
use crate::rule::read::{ReadPlan, ReadRequest};
use crate::shapes::Stack;
use document::backend::{Answer, Backend, Batch, BatchLimit, Cursor, Session};
use document::op::{Aggregate, Context, ReadOp};
use document::pipeline::Pipeline;
use document::{Code, Error, Result};

pub(super) async fn open(
    backend: &dyn Backend,
    session: &mut Session,
    context: &Context,
    request: &ReadRequest,
    stack: &Stack,
) -> Result<Box<dyn Cursor>> {
    if request.reads_others() {
        return Err(Error::new(
            Code::OperationNotSupportedInTransaction,
            format!("a pipeline over '{}' joins no other collection in a transaction", stack.logical.collection),
        )
        .with_hint("read the two with a command each, or outside of the transaction"));
    }
    let leading = request.pipeline.split().leading;
    // All are opened at once: a cursor is only asked for more.
    let mut cursors = Vec::new();
    for place in &stack.places {
        let source = Some(union::of_place(place, &leading).into_iter().collect());
        let op = ReadOp::Aggregate(Aggregate {
            ns: place.stored.clone(),
            collectionless: false,
            pipeline: Pipeline { source, ..Pipeline::default() },
            hint: None,
            allow_disk_use: request.allow_disk_use,
            collation: None,
        });
        cursors.push(backend.read(session, context, op).await?);
    }
    cursors.reverse();
    let mut rows: Box<dyn Cursor> = Box::new(OneByOne { left: cursors });
    let first = local_pipeline::first(&mut *rows, session, context, ReadPlan::FIRST_ROWS).await?;
    local_pipeline::start(rows, first, &request.native(), context, None)
}

/// Cursors whose rows follow each other; the next is the last.
struct OneByOne {
    left: Vec<Box<dyn Cursor>>,
}

impl Cursor for OneByOne {
    fn next<'a>(&'a mut self, session: &'a mut Session, context: &'a Context, limit: BatchLimit) -> Answer<'a, Batch> {
        Box::pin(async move {
            while let Some(cursor) = self.left.last_mut() {
                let batch = cursor.next(session, context, limit).await?;
                if !batch.exhausted {
                    return Ok(batch);
                }
                self.left.pop();
                if !batch.documents.is_empty() {
                    return Ok(Batch { exhausted: self.left.is_empty(), ..batch });
                }
            }
            Ok(Batch { documents: Vec::new(), exhausted: true })
        })
    }
}
