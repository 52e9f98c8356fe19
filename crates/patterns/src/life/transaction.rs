//! A transaction of Pleach's own, for seeding, audit, repair and the outbox. It is not begun again here: whoever uses it does so after
//! a conflict ([`is_transient`]).

use crate::active::Rules;
use crate::execute::gate::Point;
pub(crate) use crate::execute::retry::is_transient;
use crate::life::Life;
use crate::rule::Rule;
use document::Result;
use document::backend::Session;
use document::op::Context;
use std::sync::Arc;

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
