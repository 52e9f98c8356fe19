//! Work in a transaction of its own, begun again after conflicts.

use super::Life;
use document::backend::Session;
use document::op::Context;
use document::{Error, Result};

/// Whether beginning the transaction again may help.
pub(crate) fn is_transient(error: &Error) -> bool {
    error.labels().contains(&"TransientTransactionError")
}

/// An open transaction; dropping it aborts it.
pub(crate) struct Began<'a> {
    pub(crate) session: Session,
    pub(crate) context: &'a Context,
}

impl<'a> Began<'a> {
    pub(crate) async fn begin(life: &Life, context: &'a Context) -> Result<Began<'a>> {
        let mut session = Session::default();
        life.backend.begin(&mut session, context).await?;
        Ok(Began { session, context })
    }

    pub(crate) async fn commit(mut self) -> Result<()> {
        match self.session.transaction.take() {
            Some(transaction) => transaction.commit(self.context).await,
            None => Ok(()),
        }
    }
}
