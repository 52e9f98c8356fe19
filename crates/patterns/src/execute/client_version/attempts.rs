//! Statements that are run on what a client sees: in its own transaction, or in one of ours, tried again after conflicts (R4, R9).

use crate::execute::client_version::ClientVersion;
use crate::execute::client_version::found::Search;
use crate::execute::client_version::statement::{Place, Work, run};
use crate::execute::retry::{RetryWindow, is_transient};
use crate::execute::statements;
use document::backend::Session;
use document::op::{WriteOp, Written};
use document::{Code, Error, Result, Value};

/// How many documents share a transaction.
const TOGETHER: usize = 500;

/// How often an upsert is tried again that another client was faster than.
const DUPLICATES: u32 = 5;

impl ClientVersion<'_> {
    /// One statement about one document. `number` is its retry number.
    pub(super) async fn settled(
        &self,
        session: &mut Session,
        op: &WriteOp,
        work: &Work<'_>,
        number: Option<i32>,
    ) -> Result<Written> {
        if session.transaction.is_some() {
            let mut place = Place { client: self, ns: op.ns(), session };
            return of_statement(run(&mut place, work, None).await);
        }
        let (mut attempts, mut duplicates) = (RetryWindow::new(self.context), 0);
        loop {
            match self.renewed(op)?.attempt(session, op, work, number, None).await {
                Ok(written) => match written.errors.first() {
                    Some(failed) if is_transient(&failed.error) => {
                        attempts.again(failed.error.clone(), self.context).await?;
                    }
                    Some(failed)
                        if work.upserts() && failed.error.code() == Code::DuplicateKey && duplicates < DUPLICATES =>
                    {
                        duplicates += 1;
                    }
                    _ => return Ok(written),
                },
                Err(error) => attempts.again(error, self.context).await?,
            }
        }
    }

    /// One statement about many documents: which they are is found first, then they are changed some hundred at a time. After an error
    /// the documents before it stay changed.
    pub(super) async fn many(&self, session: &mut Session, op: &WriteOp, work: &Work<'_>) -> Result<Written> {
        if session.transaction.is_some() {
            let mut place = Place { client: self, ns: op.ns(), session };
            let ids = Search::of(work).ids(&mut place).await?;
            return match ids.is_empty() && work.upserts() {
                true => self.settled(session, op, work, None).await,
                false => of_statement(run(&mut place, work, Some(&ids)).await),
            };
        }
        let mut beside = session.sibling();
        let mut place = Place { client: self, ns: op.ns(), session: &mut beside };
        let ids = Search::of(work).ids(&mut place).await?;
        if ids.is_empty() && work.upserts() {
            return self.settled(session, op, work, None).await;
        }
        let mut left: Vec<&[Value<'static>]> = ids.chunks(TOGETHER).collect();
        left.reverse();
        let mut total = Written::default();
        while let Some(some) = left.pop() {
            let mut attempts = RetryWindow::new(self.context);
            let written = loop {
                match self.renewed(op)?.attempt(&mut beside, op, work, None, Some(some)).await {
                    Ok(written) => match written.errors.first() {
                        Some(failed) if is_transient(&failed.error) => {
                            attempts.again(failed.error.clone(), self.context).await?;
                        }
                        _ => break written,
                    },
                    Err(error) => attempts.again(error, self.context).await?,
                }
            };
            match written.errors.into_iter().next() {
                // The documents before the one that fails are changed all the same.
                Some(_) if some.len() > 1 => {
                    let (first, second) = some.split_at(some.len() / 2);
                    left.extend([second, first]);
                }
                Some(failed) => return Ok(statements::failed(0, failed.error)),
                None => {
                    total.n += written.n;
                    total.modified += written.modified;
                }
            }
        }
        session.concern_error = beside.concern_error.take();
        Ok(total)
    }

    async fn attempt(
        &self,
        session: &mut Session,
        op: &WriteOp,
        work: &Work<'_>,
        number: Option<i32>,
        only: Option<&[Value<'static>]>,
    ) -> Result<Written> {
        let mut own = session.attempt();
        let (retry, db) = (own.retry.zip(number), op.ns().db.clone());
        self.backend.begin(&mut own, self.context).await?;
        if let Some((_, number)) = retry {
            let before = self.backend.recall(&mut own, self.context, &db, &[number]).await?;
            if !before.retried.is_empty() {
                return Ok(before);
            }
        }
        own.retry = None;
        let mut place = Place { client: self, ns: op.ns(), session: &mut own };
        let written = of_statement(run(&mut place, work, only).await)?;
        if !written.errors.is_empty() {
            return Ok(written);
        }
        self.check_rules(op)?;
        if let Some((transaction, number)) = retry.filter(|_| written.n > 0) {
            own.retry = Some(transaction);
            self.backend.remember(&mut own, self.context, &db, &[number], &written).await?;
        }
        if let Some(transaction) = own.transaction.take() {
            transaction.commit(self.context).await?;
        }
        session.concern_error = own.concern_error.take();
        Ok(written)
    }

    /// The same with the versions that the collection has now.
    fn renewed(&self, op: &WriteOp) -> Result<ClientVersion<'_>> {
        let lens = self.executor.rules().lenses().of(op.ns()).cloned().unwrap_or_else(|| self.lens.clone());
        ClientVersion::of(self.backend, self.executor, (lens, self.version), self.context, op.ns())
    }

    /// What was read and written must be of the version that is the newest still.
    fn check_rules(&self, op: &WriteOp) -> Result<()> {
        let newest = self.executor.rules().lenses().of(op.ns()).map(|lens| lens.newest());
        match newest.is_none_or(|newest| newest == self.lens.newest()) {
            true => Ok(()),
            false => Err(Error::new(Code::WriteConflict, "the collection got another version meanwhile")),
        }
    }
}

fn of_statement(outcome: Result<Written>) -> Result<Written> {
    match outcome {
        Err(error) if error.is_of_statement() && !is_transient(&error) => Ok(statements::failed(0, error)),
        other => other,
    }
}
