//! A transaction of Pleach's own, for seeding, audit, repair and the outbox, and what is done after a conflict: [`retried`] begins work
//! again that is one transaction, the walk does so part by part.

use crate::active::Rules;
use crate::execute::gate::Point;
pub(crate) use crate::execute::retry::is_transient;
use crate::life::Life;
use crate::rule::Rule;
use document::Result;
use document::backend::Session;
use document::op::Context;
use std::sync::Arc;
use std::time::Duration;

/// After so many conflicts in a row it waits a little between two attempts.
const CONFLICTS_BEFORE_PAUSE: u32 = 50;

/// An open transaction; dropping it aborts it.
pub(crate) struct OwnTransaction<'a> {
    life: &'a Life,
    pub(crate) session: Session,
    pub(crate) context: &'a Context,
    /// The rules that its collections were free by.
    _rules: Option<Arc<Rules>>,
}

impl<'a> OwnTransaction<'a> {
    pub(crate) async fn begin(life: &'a Life, context: &'a Context) -> Result<OwnTransaction<'a>> {
        life.pass(Point::Begin { attempt: 0 }).await?;
        let mut session = Session::default();
        life.backend.begin(&mut session, context).await?;
        Ok(OwnTransaction { life, session, context, _rules: None })
    }

    /// The same to evaluate a rule: its source may be about to be renamed, and would seem to be empty between two steps of that.
    pub(crate) async fn begin_for(life: &'a Life, context: &'a Context, rule: &Rule) -> Result<OwnTransaction<'a>> {
        let rules = life.patterned.until_free(context, &rule.namespaces()).await?;
        Ok(OwnTransaction { _rules: Some(rules), ..OwnTransaction::begin(life, context).await? })
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        self.life.pass(Point::Commit).await?;
        if let Some(transaction) = self.session.transaction.take() {
            transaction.commit(self.context).await?;
        }
        self.life.pass(Point::Committed).await
    }
}

/// Runs work that is one transaction, again after each conflict. What clients write all the time leaves a gap at last.
pub(crate) async fn retried<T, F: Future<Output = Result<T>>>(life: &Life, attempt: impl FnMut() -> F) -> Result<T> {
    retried_at_most(life, u32::MAX, attempt).await
}

/// The same, at most so often.
pub(crate) async fn retried_at_most<T, F: Future<Output = Result<T>>>(
    life: &Life,
    times: u32,
    mut attempt: impl FnMut() -> F,
) -> Result<T> {
    let mut conflicts = 0;
    loop {
        life.check_stopped()?;
        match attempt().await {
            Err(error) if is_transient(&error) && conflicts + 1 < times => {
                conflicts += 1;
                back_off(conflicts).await;
            }
            other => return other,
        }
    }
}

/// Lets others go on before the next attempt.
pub(crate) async fn back_off(conflicts: u32) {
    match conflicts > CONFLICTS_BEFORE_PAUSE {
        true => tokio::time::sleep(Duration::from_micros(rand::random_range(50..2_000))).await,
        false => tokio::task::yield_now().await,
    }
}
