//! Work in a transaction of its own, begun again after conflicts.

use crate::execute::gate::Point;
pub(crate) use crate::execute::retry::is_transient;
use crate::life::Life;
use document::Result;
use document::backend::Session;
use document::op::Context;

/// An open transaction; dropping it aborts it.
pub(crate) struct OwnTransaction<'a> {
    life: &'a Life,
    pub(crate) session: Session,
    pub(crate) context: &'a Context,
}

impl<'a> OwnTransaction<'a> {
    pub(crate) async fn begin(life: &'a Life, context: &'a Context) -> Result<OwnTransaction<'a>> {
        life.pass(Point::Begin { attempt: 0 }).await?;
        let mut session = Session::default();
        life.backend.begin(&mut session, context).await?;
        Ok(OwnTransaction { life, session, context })
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        self.life.pass(Point::Commit).await?;
        if let Some(transaction) = self.session.transaction.take() {
            transaction.commit(self.context).await?;
        }
        self.life.pass(Point::Committed).await
    }
}
