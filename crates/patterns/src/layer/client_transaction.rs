//! A client's transaction, with the oldest rules that its statements worked by.

use crate::active::Rules;
use crate::execute::executor::Executor;
use crate::layer::open_transactions::{OpenTransactions, SessionOf};
use document::backend::{Answer, Durable, Transaction};
use document::op::Context;
use std::any::Any;
use std::sync::Arc;

pub(super) struct ClientTransaction {
    pub(super) inner: Box<dyn Transaction>,
    /// A change of rules waits until the old ones are dropped.
    pub(super) rules: Arc<Rules>,
    /// How many jobs there were when it began.
    pub(super) jobs: u64,
    /// The transaction in the server behind that this is a statement of.
    pub(super) joins: Option<(SessionOf, i64)>,
    pub(super) executor: Arc<Executor>,
    pub(super) transactions: Arc<OpenTransactions>,
}

impl Transaction for ClientTransaction {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            let ClientTransaction { inner, rules, jobs, executor, .. } = *self;
            inner.commit(context).await?;
            executor.wake_jobs(jobs);
            drop(rules);
            Ok(())
        })
    }

    fn publish<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, Durable> {
        Box::pin(async move {
            let ClientTransaction { inner, rules, jobs, executor, .. } = *self;
            let durable = inner.publish(context).await?;
            executor.wake_jobs(jobs);
            drop(rules);
            Ok(durable)
        })
    }

    fn abort(self: Box<Self>) {
        self.inner.abort();
        if let Some((session, number)) = &self.joins {
            self.transactions.ended(session, *number);
        }
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self.inner.as_any_mut()
    }
}
