//! The client's insert together with the first statement that follows from it, where the backend is across a network: both are
//! sent back to back, and one answer is waited for instead of two. What follows is worked out as if the insert had succeeded; if it
//! did not, or was done before, the backend has not run the rest. And the last statement that follows from a write of another
//! kind together with the commit: nobody needs its answer, unless something comes behind it.

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::plan::Action;
use crate::execute::roll_up;
use crate::rule::numbers::translated;
use document::op::{Capture, WriteOp, Written};
use document::{Code, Error, Result};
use std::sync::Arc;

#[derive(Default)]
pub(crate) struct Together {
    /// Whether an insert may wait.
    pub(crate) allowed: bool,
    waiting: Option<WriteOp>,
    outcome: Option<Written>,
    /// Whether the last derived statement may wait for the commit …
    pub(crate) trails: bool,
    /// … and the one that is the last so far.
    pub(crate) trailing: Option<WriteOp>,
}

/// What came of an insert and its effects.
pub(crate) enum Sent {
    /// All is done.
    Done(Written),
    /// The insert failed, or some of its documents were inserted before: nothing that follows was done.
    Apart(Written),
}

impl Attempt<'_> {
    /// The client's own insert: it waits for what follows from it.
    pub(crate) async fn insert_later(&mut self, op: &WriteOp) -> Result<()> {
        self.pass(&[], || Action::Write(op.clone())).await?;
        self.together.waiting = Some(op.clone());
        Ok(())
    }

    /// Sends what waits by itself.
    pub(crate) async fn send(&mut self) -> Result<()> {
        if let Some(op) = self.together.trailing.take() {
            self.write_derived(&op, &Capture::Nothing).await?;
        }
        let Some(op) = self.together.waiting.take() else { return Ok(()) };
        let written = self.executor.inner.write(self.session, self.context, &op, &Capture::Nothing).await?;
        self.note(written)
    }

    /// A derived statement whose answer nobody needs: it waits for what comes behind it, at last for the commit.
    pub(crate) async fn derive_last(&mut self, rules: &[Arc<ActiveRule>], op: WriteOp) -> Result<()> {
        if !self.together.trails {
            return self.derive(rules, &op, &Capture::Nothing).await.map(drop);
        }
        self.pass(rules, || Action::Derive(op.clone())).await?;
        self.send().await?;
        self.note_derived(&op);
        self.together.trailing = Some(op);
        Ok(())
    }

    /// Sends what waits, and a derived statement behind it; nothing if nothing waits.
    pub(crate) async fn send_with(&mut self, op: &WriteOp) -> Result<Option<Written>> {
        let Some(first) = self.together.waiting.take() else { return Ok(None) };
        let both = [(first, Capture::Nothing), (op.clone(), Capture::Nothing)];
        // Nothing waits where answers cost nothing.
        let Some(pipelining) = self.executor.inner.pipelining() else { return Err(lost()) };
        let mut outcomes = pipelining.write_all(self.session, self.context, &both).await?.into_iter();
        self.note(outcomes.next().unwrap_or_else(|| Err(lost()))?)?;
        let mut written = outcomes.next().unwrap_or_else(|| Err(lost()))?;
        match written.errors.is_empty() {
            true => Ok(Some(written)),
            false => Err(roll_up::failure(op, translated(written.errors.remove(0).error))),
        }
    }

    fn note(&mut self, written: Written) -> Result<()> {
        let apart = !written.errors.is_empty() || !written.retried.is_empty();
        self.together.outcome = Some(written);
        self.check_rules()?;
        if apart { Err(lost()) } else { Ok(()) }
    }

    /// The end of an insert whose effects came to this.
    pub(crate) async fn sent(&mut self, mut effects: Result<()>) -> Result<Sent> {
        // What is wrong with the insert itself is told before what is wrong with its effects.
        if self.together.waiting.is_some() {
            effects = self.send().await.and(effects);
        }
        match (effects, self.together.outcome.take()) {
            (Ok(()), Some(written)) => Ok(Sent::Done(written)),
            (Err(error), Some(written)) if written.errors.is_empty() && written.retried.is_empty() => Err(error),
            (Err(error), Some(_)) if crate::execute::retry::is_transient(&error) => Err(error),
            (Err(_), Some(written)) => {
                self.later.clear();
                self.enqueued.clear();
                Ok(Sent::Apart(written))
            }
            (Err(error), None) => Err(error),
            (Ok(()), None) => Err(lost()),
        }
    }
}

fn lost() -> Error {
    Error::new(Code::InternalError, "a statement behind one that ended its plan was not run")
}
