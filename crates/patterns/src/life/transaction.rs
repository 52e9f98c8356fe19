//! Work in a transaction of its own, begun again after conflicts.

use crate::execute::gate::Point;
use crate::life::Life;
use document::backend::Session;
use document::op::Context;
use document::{Error, Result};

/// Whether beginning the transaction again may help.
pub(crate) fn is_transient(error: &Error) -> bool {
    error.labels().contains(&"TransientTransactionError")
}

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
