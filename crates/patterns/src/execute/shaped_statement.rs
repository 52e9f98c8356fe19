//! The client's own statements on a collection that is stored in another form: evaluated by its shape, in the attempt's transaction.
//! Fields that are kept from the logical documents react to what these become (SEMANTICS R34). The retry record answers for the
//! client's statements, not for those on what is stored (R4).

use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::client_work::ClientWork;
use crate::execute::logical_changes::LogicalChanges;
use crate::execute::plan::Action;
use crate::execute::react::react;
use crate::execute::retry::is_transient;
use crate::execute::statements;
use crate::rule::Stack;
use crate::rule::shape::{CommandOptions, Learn, Stop, StoredAccess, StoredReads, Visit};
use crate::shapes::evaluate::multi::Many;
use crate::shapes::evaluate::{insert, statement};
use crate::shapes::find;
use document::Result;
use document::backend::{Answer, BatchLimit};
use document::filter::Filter;
use document::op::{Capture, Context, Delete, DeleteStatement, Find, Insert, ReadOp, WriteError, WriteOp, Written};
use document::{Doc, Value};
use std::sync::Arc;

/// Stored documents are taken a few at a time: whoever looks for one may be done with the first.
const STORED: BatchLimit = BatchLimit { documents: 32, bytes: 4 << 20 };

/// So many stored documents expire in one transaction.
const EXPIRED: u64 = 100;

/// What an attempt knows of stored documents.
pub(crate) struct StoredWork {
    stack: Arc<Stack>,
    changes: LogicalChanges,
    /// Run once the attempt is committed.
    pub(crate) learned: Vec<Learn>,
}

/// Runs the statements. An error of the reply is a statement's, and then the transaction is lost; statements that are refused with
/// nothing written for them are in [`Attempt::refused`].
pub(crate) async fn execute(attempt: &mut Attempt<'_>, stack: &Arc<Stack>, work: &ClientWork<'_>) -> Result<Written> {
    attempt.stored = Some(StoredWork { stack: stack.clone(), changes: LogicalChanges::default(), learned: Vec::new() });
    let outcome = match work.op {
        WriteOp::Delete(op) if op.ns != stack.logical => expire(attempt, op).await.map_err(Stop::Command),
        _ => all(attempt, stack, work).await,
    };
    match outcome {
        Ok(written) => Ok(written),
        Err(Stop::Statement { at, error }) => {
            Ok(Written { errors: vec![WriteError { index: at, error }], ..Written::default() })
        }
        Err(Stop::Command(error)) => Err(error),
    }
}

async fn all(attempt: &mut Attempt<'_>, stack: &Arc<Stack>, work: &ClientWork<'_>) -> Result<Written, Stop> {
    let how = CommandOptions::of(work.op);
    let count = statements::count(work.op);
    let is_recorded = attempt.session.retry.is_some() && work.picked.is_none();
    let mut total = work.noted.clone();
    if is_recorded {
        let ids: Vec<i32> = (0..count).map(|index| how.statement_id(index)).collect();
        let (session, context) = (&mut *attempt.session, attempt.context);
        statements::add(&mut total, attempt.executor.inner.recall(session, context, &stack.logical.db, &ids).await?, 0);
    }
    let is_left = |index: &usize| !total.retried.contains(&how.statement_id(*index));
    let left: Vec<usize> = (0..count).filter(is_left).collect();
    let (written, effective) = match (work.op, work.picked) {
        (WriteOp::Insert(op), _) => inserted(attempt, stack, op, &left).await?,
        (op, Some(picked)) => {
            let Some(many) = Many::of(op, 0) else { return Ok(total) };
            let written = match picked.is_empty() {
                true => many.upsert_if_requested(attempt, stack).await?,
                false => {
                    let (written, failed) = many.change(attempt, stack, picked).await?;
                    attempt.refused.extend(failed.map(|error| WriteError { index: 0, error }));
                    written
                }
            };
            attempt.follow_stored().await.map_err(Stop::of(0))?;
            (written, Vec::new())
        }
        (op, None) => each_statement(attempt, stack, op, &left).await?,
    };
    if is_recorded && !effective.is_empty() {
        let ids: Vec<i32> = effective.iter().map(|index| how.statement_id(*index)).collect();
        let mut record = written.clone();
        let position = |index: usize| effective.iter().position(|other| *other == index).unwrap_or_default();
        record.upserted.iter_mut().for_each(|(index, _)| *index = position(*index));
        let (session, context) = (&mut *attempt.session, attempt.context);
        attempt.executor.inner.remember(session, context, &stack.logical.db, &ids, &record).await?;
    }
    statements::add(&mut total, written, 0);
    total.upserted.sort_by_key(|(index, _)| *index);
    Ok(total)
}

/// What was written, and the places of statements that had an effect, in order.
type Done = (Written, Vec<usize>);

async fn inserted(attempt: &mut Attempt<'_>, stack: &Stack, op: &Insert, left: &[usize]) -> Result<Done, Stop> {
    let mut documents = insert::numbered(stack, op, &attempt.context.env);
    documents.retain(|(index, _)| left.contains(index));
    let refused = insert::insert(attempt, stack, &documents, op.ordered, op.bypass_validation).await?;
    attempt.follow_stored().await.map_err(Stop::of(left.first().copied().unwrap_or_default()))?;
    let first = refused.first().map(|failed| failed.index).filter(|_| op.ordered);
    let is_out =
        |index: usize| first.is_some_and(|first| index >= first) || refused.iter().any(|failed| failed.index == index);
    let effective: Vec<usize> = left.iter().copied().filter(|index| !is_out(*index)).collect();
    attempt.refused.extend(refused);
    Ok((Written { n: effective.len() as u64, ..Written::default() }, effective))
}

async fn each_statement(attempt: &mut Attempt<'_>, stack: &Stack, op: &WriteOp, left: &[usize]) -> Result<Done, Stop> {
    let (mut total, mut effective) = (Written::default(), Vec::new());
    for index in left.iter().copied() {
        let written = one(attempt, stack, op, index).await?;
        attempt.follow_stored().await.map_err(Stop::of(index))?;
        let is_removed = matches!(op, WriteOp::Delete(_) | WriteOp::FindAndModify(_)) && written.n > 0;
        if is_removed || written.modified > 0 || !written.upserted.is_empty() {
            effective.push(index);
        }
        statements::add(&mut total, written, 0);
    }
    Ok((total, effective))
}

async fn one(attempt: &mut Attempt<'_>, stack: &Stack, op: &WriteOp, index: usize) -> Result<Written, Stop> {
    if let Some(stored) = stack.places.first().and_then(|place| place.shape.single_statement(stack, place, op, index)) {
        let mut written = StoredAccess::write(attempt, &stored, None).await?;
        return match written.errors.pop() {
            Some(failed) => Err(Stop::Statement { at: index, error: failed.error }),
            None => Ok(Written { upserted: Vec::new(), ..written }),
        };
    }
    let Some(many) = Many::of(op, index) else { return statement::run(attempt, stack, op, index).await };
    let picked = many.pick(attempt, stack).await?;
    if picked.is_empty() {
        return many.upsert_if_requested(attempt, stack).await;
    }
    match many.change(attempt, stack, &picked).await? {
        (written, None) => Ok(written),
        (_, Some(error)) => Err(Stop::Statement { at: index, error }),
    }
}

/// Whole stored documents that expire by an index of theirs: a logical delete of what each holds. Some of those that match.
async fn expire(attempt: &mut Attempt<'_>, op: &Delete) -> Result<Written> {
    let Some(statement) = op.statements.first() else { return Ok(Written::default()) };
    let some = Find { limit: Some(EXPIRED), ..Find::matching(op.ns.clone(), statement.filter.clone()) };
    let expired = find(attempt, some).await?;
    let ids: Vec<Value<'static>> = expired.iter().filter_map(|stored| stored.get("_id")).collect();
    if ids.is_empty() {
        return Ok(Written::default());
    }
    let statements = vec![DeleteStatement::all(statement.filter.clone().and(Filter::among("_id", ids)))];
    let delete = WriteOp::Delete(Delete::of(op.ns.clone(), statements));
    let written = StoredAccess::write(attempt, &delete, None).await?;
    attempt.follow_stored().await?;
    Ok(Written { n: written.n, ..Written::default() })
}

impl Attempt<'_> {
    /// What follows from the statements so far for the fields that are kept from the logical documents.
    async fn follow_stored(&mut self) -> Result<()> {
        let Some(stored) = &mut self.stored else { return Ok(()) };
        let changed = std::mem::take(&mut stored.changes).into_changes();
        if changed.is_empty() {
            return Ok(());
        }
        let mut changes = Changes::default();
        changes.derived(&stored.stack.logical, changed);
        react(self, changes).await
    }

    /// Shows a step on stored documents as the shape's.
    async fn pass_stored(&mut self, action: impl FnOnce() -> Action) -> Result<()> {
        self.pass(&[], action).await?;
        if let (Some(trace), Some(stored)) = (&mut self.trace, &self.stored)
            && let Some(step) = trace.steps.last_mut()
        {
            step.rules.push(stored.stack.rule.clone());
        }
        Ok(())
    }

    async fn visited(&mut self, find: Find, visit: &mut Visit<'_>) -> Result<()> {
        let mut cursor = self.executor.inner.read(self.session, self.context, ReadOp::Find(find)).await?;
        loop {
            let batch = cursor.next(self.session, self.context, STORED).await?;
            self.check_rules()?;
            for doc in batch.documents {
                if !visit(doc)? {
                    return Ok(());
                }
            }
            if batch.exhausted {
                return Ok(());
            }
        }
    }
}

impl StoredReads for Attempt<'_> {
    fn context(&self) -> &Context {
        self.context
    }

    fn each<'a>(&'a mut self, find: Find, visit: &'a mut Visit<'_>) -> Answer<'a, ()> {
        Box::pin(async move {
            self.pass_stored(|| Action::Read(ReadOp::Find(find.clone()))).await?;
            let retry = self.session.retry.take();
            let result = self.visited(find, visit).await;
            self.session.retry = retry;
            result
        })
    }
}

impl StoredAccess for Attempt<'_> {
    fn write<'a>(&'a mut self, op: &'a WriteOp, adds: Option<Vec<Doc<'static>>>) -> Answer<'a, Written> {
        Box::pin(async move {
            self.pass_stored(|| Action::Write(op.clone())).await?;
            let is_read_off = self.is_watched() && adds.is_none();
            let capture = match self.trace.is_some() || is_read_off {
                true => Capture::Everything,
                false => Capture::Nothing,
            };
            let retry = self.session.retry.take();
            let written = self.executor.inner.write(self.session, self.context, op, &capture).await;
            self.session.retry = retry;
            let written = written?;
            self.check_rules()?;
            if let Some(trace) = &mut self.trace {
                trace.note(op, &written);
            }
            if let Some(failed) = written.errors.iter().find(|failed| is_transient(&failed.error)) {
                return Err(failed.error.clone());
            }
            if let Some(stored) = self.stored.as_mut().filter(|stored| stored.stack.is_source) {
                match adds {
                    Some(documents) => stored.changes.add_new(documents),
                    None => stored.changes.add(&stored.stack, op.ns(), &written.changes)?,
                }
            }
            Ok(Written { changes: Vec::new(), ..written })
        })
    }

    fn is_watched(&self) -> bool {
        self.stored.as_ref().is_some_and(|stored| stored.stack.is_source)
    }

    fn may_guess(&self) -> bool {
        self.guesses
    }

    fn touch(&mut self, host: u64) {
        self.touched.push(host);
    }

    fn once_committed(&mut self, learn: Learn) {
        if let Some(stored) = &mut self.stored {
            stored.learned.push(learn);
        }
    }
}
