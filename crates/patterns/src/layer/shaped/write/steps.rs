//! The steps of a write on stored documents, in one transaction: of our own, or the client's.

use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::gate::Point;
use crate::execute::host_queue::HostHash;
use crate::execute::plan::{Action, Plan, Step};
use crate::execute::react::react;
use crate::execute::retry::{is_of_command, is_transient};
use crate::layer::Executor;
use crate::layer::shaped::write::images::Images;
use crate::shapes::Stack;
use document::backend::{BatchLimit, Session};
use document::op::{Capture, Context, Find, ReadOp, WriteOp, Written};
use document::{Doc, Error, Result};
use std::sync::Arc;

use crate::layer::shaped::write::open_buckets::Open;

/// Stored documents are taken a few at a time: whoever looks for one may be done with the first.
const STORED: BatchLimit = BatchLimit { documents: 32, bytes: 4 << 20 };

/// Why a plan ended.
pub(crate) enum Stop {
    /// The client's statement at this place fails.
    Statement { at: usize, error: Error },
    /// The whole attempt does: a conflict, or something that concerns the command.
    Command(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Command(error)
    }
}

impl Stop {
    /// An error met while the statement at that place was evaluated.
    pub(super) fn of(at: usize) -> impl Fn(Error) -> Stop {
        move |error| match is_of_command(&error) {
            true => Stop::Command(error),
            false => Stop::Statement { at, error },
        }
    }
}

/// One attempt.
pub(crate) struct Steps<'a> {
    pub(super) executor: &'a Executor,
    pub(super) session: &'a mut Session,
    pub(super) context: &'a Context,
    pub(super) shaped: &'a Arc<Stack>,
    /// Whether what is remembered of open buckets may be tried: where a wrong guess is only another attempt.
    pub(super) trusting: bool,
    /// What is known of buckets once this is committed; nothing where readings were taken out or changed.
    pub(super) learned: Vec<(u128, Option<Open>)>,
    /// The buckets that this attempt writes to, for who tries again after a conflict.
    pub(super) touched: Vec<HostHash>,
    /// What the statements changed, where fields are kept from it.
    images: Images,
    /// Filled when the steps are to be shown.
    pub(super) trace: Option<Plan>,
}

impl<'a> Steps<'a> {
    pub(super) fn new(
        executor: &'a Executor,
        session: &'a mut Session,
        context: &'a Context,
        shaped: &'a Arc<Stack>,
    ) -> Steps<'a> {
        Steps {
            executor,
            session,
            context,
            shaped,
            trusting: false,
            learned: Vec::new(),
            touched: Vec::new(),
            images: Images::default(),
            trace: None,
        }
    }

    /// Shows the documents of a read to `visit` until it has seen enough.
    pub(super) async fn each(
        &mut self,
        find: Find,
        visit: &mut (dyn FnMut(Doc<'static>) -> Result<bool> + Send),
    ) -> Result<()> {
        self.pass(|| Action::Read(ReadOp::Find(find.clone()))).await?;
        let retry = self.session.retry.take();
        let result = self.visited(find, visit).await;
        self.session.retry = retry;
        result
    }

    async fn visited(
        &mut self,
        find: Find,
        visit: &mut (dyn FnMut(Doc<'static>) -> Result<bool> + Send),
    ) -> Result<()> {
        let mut cursor = self.executor.inner.read(self.session, self.context, ReadOp::Find(find)).await?;
        loop {
            let batch = cursor.next(self.session, self.context, STORED).await?;
            for doc in batch.documents {
                if !visit(doc)? {
                    return Ok(());
                }
            }
            if batch.exhausted {
                return Ok(());
            }
        }
    }

    pub(super) async fn find(&mut self, find: Find) -> Result<Vec<Doc<'static>>> {
        let mut found = Vec::new();
        self.each(find, &mut |doc| {
            found.push(doc);
            Ok(true)
        })
        .await?;
        Ok(found)
    }

    /// A statement on what is stored. It has no retry record of its own: the client's statements have.
    pub(super) async fn write(&mut self, op: &WriteOp) -> Result<Written> {
        self.pass(|| Action::Write(op.clone())).await?;
        let retry = self.session.retry.take();
        let is_seen = self.trace.is_some() || self.shaped.is_source;
        let capture = if is_seen { Capture::Everything } else { Capture::Nothing };
        let written = self.executor.inner.write(self.session, self.context, op, &capture).await;
        self.session.retry = retry;
        if let (Some(trace), Ok(written)) = (&mut self.trace, &written) {
            trace.note(op, written);
        }
        if let (true, Ok(written)) = (self.shaped.is_source, &written) {
            self.images.add(self.shaped, op.ns(), &written.changes)?;
        }
        match written {
            Ok(written) => match written.errors.first() {
                Some(failed) if is_transient(&failed.error) => Err(failed.error.clone()),
                _ => Ok(written),
            },
            Err(error) => Err(error),
        }
    }

    /// What follows from the statements so far for the fields that are kept from the logical documents (SEMANTICS R34).
    pub(super) async fn follow(&mut self) -> Result<()> {
        let changed = std::mem::take(&mut self.images).into_changes();
        if changed.is_empty() {
            return Ok(());
        }
        let mut changes = Changes::default();
        changes.derived(&self.shaped.logical, changed);
        let mut attempt = Attempt::new(self.executor, self.session, self.context, self.executor.rules());
        attempt.trace = self.trace.take();
        let mut followed = react(&mut attempt, changes).await;
        if followed.is_ok() {
            followed = attempt.finish().await;
        }
        self.touched.append(&mut attempt.touched);
        self.trace = attempt.trace.take();
        followed
    }

    /// Shows the step to who looks, and asks whether it may run.
    async fn pass(&mut self, action: impl FnOnce() -> Action) -> Result<()> {
        let gate = self.executor.gate();
        if gate.is_none() && self.trace.is_none() {
            return Ok(());
        }
        let action = action();
        if let Some(gate) = gate {
            gate.pass(Point::Step { rules: &[], action: &action }).await?;
        }
        if let Some(trace) = &mut self.trace {
            trace.steps.push(Step { rules: vec![self.shaped.rule.clone()], ..Step::from(action) });
        }
        Ok(())
    }
}
