//! Work in a transaction of its own, begun again after conflicts.

pub(crate) use crate::retry::is_transient;

use super::Life;
use crate::gate::Point;
use document::Result;
use document::backend::Session;
use document::op::Context;

/// An open transaction; dropping it aborts it.
pub(crate) struct Began<'a> {
    life: &'a Life,
    pub(crate) session: Session,
    pub(crate) context: &'a Context,
}

impl<'a> Began<'a> {
    pub(crate) async fn begin(life: &'a Life, context: &'a Context) -> Result<Began<'a>> {
        life.pass(Point::Begin { attempt: 0 }).await?;
        let mut session = Session::default();
        life.backend.begin(&mut session, context).await?;
        Ok(Began { life, session, context })
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        self.life.pass(Point::Commit).await?;
        if let Some(transaction) = self.session.transaction.take() {
            transaction.commit(self.context).await?;
        }
        self.life.pass(Point::Committed).await
    }
}
