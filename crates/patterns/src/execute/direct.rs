//! Statements that are one statement on one stored document each: they need no transaction, and carry the client's own session and
//! statement numbers (SEMANTICS R4, R16). Which they are is the shape's to say.

use crate::execute::executor::Executor;
use crate::execute::gate::Point;
use crate::execute::plan::Action;
use crate::execute::resend_after_move;
use crate::execute::retry::RetryWindow;
use crate::execute::statements::add;
use crate::rule::Stack;
use crate::rule::shape::{CommandOptions, DirectAccess, StoredReads, Visit};
use document::backend::{Answer, BatchLimit, Session};
use document::op::{Capture, Context, Find, ReadOp, WriteOp, Written};
use document::{Error, Result};
use std::ops::Range;
use std::sync::Arc;

/// One look at a stored document is one batch.
const LOOK: BatchLimit = BatchLimit { documents: 32, bytes: 4 << 20 };

/// The statements from `from` on that go this way.
pub(crate) fn statements(stack: &Stack, op: &WriteOp, from: usize, in_transaction: bool) -> Range<usize> {
    stack.places.first().map_or(from..from, |place| place.shape.direct(stack, op, from, in_transaction))
}

/// Runs these statements of a command.
pub(crate) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    stack: &Arc<Stack>,
    op: &WriteOp,
    statements: Range<usize>,
) -> Result<Written> {
    let Some(place) = stack.places.first() else { return Ok(Written::default()) };
    let how = CommandOptions::of(op);
    let ids: Vec<i32> = statements.clone().map(|index| how.statement_id(index)).collect();
    let mut total = match session.transaction {
        Some(_) => Written::default(),
        None => resend_after_move::recorded(executor, session, context, stack, &ids).await?,
    };
    let left: Vec<usize> = statements.filter(|index| !total.retried.contains(&how.statement_id(*index))).collect();
    let mut direct = Direct { executor, session, context, attempts: RetryWindow::new(context) };
    add(&mut total, place.shape.run_direct(&mut direct, stack, place, op, left).await?, 0);
    Ok(total)
}

struct Direct<'a> {
    executor: &'a Arc<Executor>,
    session: &'a mut Session,
    context: &'a Context,
    attempts: RetryWindow,
}

impl StoredReads for Direct<'_> {
    fn context(&self) -> &Context {
        self.context
    }

    fn each<'a>(&'a mut self, find: Find, visit: &'a mut Visit<'_>) -> Answer<'a, ()> {
        Box::pin(async move {
            if let Some(gate) = self.executor.gate() {
                let action = Action::Read(ReadOp::Find(find.clone()));
                gate.pass(Point::Step { rules: &[], action: &action }).await?;
            }
            let mut own = self.session.sibling();
            let mut cursor = self.executor.inner.read(&mut own, self.context, ReadOp::Find(find)).await?;
            loop {
                let batch = cursor.next(&mut own, self.context, LOOK).await?;
                for document in batch.documents {
                    if !visit(document)? {
                        return Ok(());
                    }
                }
                if batch.exhausted {
                    return Ok(());
                }
            }
        })
    }
}

impl DirectAccess for Direct<'_> {
    fn send<'a>(&'a mut self, op: &'a WriteOp) -> Answer<'a, Written> {
        Box::pin(async move {
            if let Some(gate) = self.executor.gate() {
                gate.pass(Point::Step { rules: &[], action: &Action::Write(op.clone()) }).await?;
            }
            let written = self.executor.inner.write(self.session, self.context, op, &Capture::Nothing).await?;
            if let Some(gate) = self.executor.gate()
                && self.session.transaction.is_none()
            {
                gate.pass(Point::Committed).await?;
            }
            Ok(written)
        })
    }

    fn is_in_transaction(&self) -> bool {
        self.session.transaction.is_some()
    }

    /// A real MongoDB takes that only from a user with the right.
    fn may_bypass_validation(&self) -> bool {
        !self.executor.inner.facts().has_users
    }

    fn make_way(&mut self, host: u64) -> Answer<'_, ()> {
        Box::pin(async move {
            match self.executor.lines.is_empty() {
                true => Ok(()),
                false => self.attempts.in_time(self.executor.lines.make_way(vec![host])).await,
            }
        })
    }

    fn again(&mut self, error: Error) -> Answer<'_, ()> {
        Box::pin(self.attempts.again(error, self.context))
    }
}
