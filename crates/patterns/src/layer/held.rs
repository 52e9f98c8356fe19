//! A client's transaction, with the oldest rules that its statements worked by.

use super::Shared;
use crate::rules::Rules;
use document::backend::{Answer, Durable, Transaction};
use document::op::Context;
use std::any::Any;
use std::sync::Arc;

pub(super) struct Held {
    inner: Box<dyn Transaction>,
    /// Who changes the rules waits until nobody holds the old ones.
    rules: Arc<Rules>,
    /// How many jobs there were when it began.
    jobs: u64,
    shared: Arc<Shared>,
}

impl Held {
    pub(super) fn new(inner: Box<dyn Transaction>, rules: Arc<Rules>, jobs: u64, shared: Arc<Shared>) -> Held {
        Held { inner, rules, jobs, shared }
    }
}

impl Transaction for Held {
    fn commit<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, ()> {
        Box::pin(async move {
            let Held { inner, rules, jobs, shared } = *self;
            inner.commit(context).await?;
            shared.wake_jobs(jobs);
            drop(rules);
            Ok(())
        })
    }

    fn publish<'a>(self: Box<Self>, context: &'a Context) -> Answer<'a, Durable> {
        Box::pin(async move {
            let Held { inner, rules, jobs, shared } = *self;
            let durable = inner.publish(context).await?;
            shared.wake_jobs(jobs);
            drop(rules);
            Ok(durable)
        })
    }

    fn abort(self: Box<Self>) {
        self.inner.abort();
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self.inner.as_any_mut()
    }
}
