//! A plan in a transaction of our own, run again after conflicts. Its retry record answers for the client's statements, not for
//! those on what is stored (R4); statements that fail on their own are left out of the next attempt (R10).

use crate::execute::gate::Point;
use crate::execute::host_queue::{HostHash, Turns};
use crate::execute::retry::RetryWindow;
use crate::execute::run::commit;
use crate::layer::shaped::write::insert::NewReading;
use crate::layer::shaped::write::multi::{Many, Picked};
use crate::layer::shaped::write::single_statement::CommandOptions;
use crate::layer::shaped::write::steps::{Steps, Stop};
use crate::layer::shaped::write::{insert, open_buckets, resend_after_move, statement};
use crate::layer::{Executor, statements};
use crate::shapes::{Form, Stack};
use document::backend::Session;
use document::op::{Context, WriteError, WriteOp, Written};
use document::{Error, Result};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// So many buckets are waited for before the first attempt; who writes to more finds out which of them are hot.
const WAITED_FOR: usize = 16;

/// What shares a transaction.
pub(super) enum Part<'p> {
    Insert {
        documents: &'p [NewReading],
        how: &'p CommandOptions,
    },
    /// Statements about one document each.
    Statements {
        op: &'p WriteOp,
        range: Range<usize>,
        how: &'p CommandOptions,
    },
    /// Some of the readings that a statement about many is about; none means that there are none.
    Some {
        many: &'p Many<'p>,
        picked: &'p [Picked],
    },
}

impl Part<'_> {
    /// The client's statements: their places and retry numbers.
    pub(super) fn statements(&self) -> Vec<(usize, i32)> {
        match self {
            Part::Insert { documents, how } => documents.iter().map(|(at, ..)| (*at, how.statement_id(*at))).collect(),
            Part::Statements { range, how, .. } => range.clone().map(|at| (at, how.statement_id(at))).collect(),
            Part::Some { .. } => Vec::new(),
        }
    }

    fn is_ordered(&self) -> bool {
        match self {
            Part::Insert { how, .. } | Part::Statements { how, .. } => how.ordered,
            Part::Some { .. } => true,
        }
    }

    /// The buckets that are known to be written to.
    fn hosts(&self, shaped: &Stack) -> Vec<HostHash> {
        let (Part::Insert { documents, .. }, Some(side)) = (self, shaped.sides.first()) else { return Vec::new() };
        if !matches!(side.form, Form::Bucket(_)) {
            return Vec::new();
        }
        let hosts =
            documents.iter().map(|(_, _, encoded)| open_buckets::host(open_buckets::place(&side.stored, &encoded.key)));
        let mut hosts: Vec<HostHash> = hosts.collect();
        hosts.sort_unstable();
        hosts.dedup();
        if hosts.len() > WAITED_FOR { Vec::new() } else { hosts }
    }
}

/// What the attempts have learned so far.
#[derive(Default)]
struct Known {
    /// What MongoDB has noted of the same statements, when they were no plan.
    noted: Written,
    /// Statements that fail, by place.
    errors: BTreeMap<usize, Error>,
    /// What is remembered of open buckets is not true.
    doubting: bool,
    touched: Vec<HostHash>,
}

/// Statements that fail are told beside what the others did; a part of one statement that fails is not done at all.
pub(super) async fn run(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    shaped: &Arc<Stack>,
    part: &Part<'_>,
) -> Result<Written, Stop> {
    let mut attempts = RetryWindow::new(context);
    let mut turns = attempts.in_time(executor.lines.take(part.hosts(shaped))).await?;
    let mut known =
        Known { noted: resend_after_move::noted(executor, client, context, shaped, part).await?, ..Known::default() };
    loop {
        match attempt(executor, client, context, shaped, part, attempts.made(), &mut known, &mut turns).await {
            Ok(written) => return Ok(written),
            Err(stop @ Stop::Statement { .. }) if matches!(part, Part::Some { .. }) => return Err(stop),
            Err(Stop::Statement { at, error }) => {
                // The transaction is gone; the others are run again without it.
                known.errors.insert(at, error);
            }
            Err(Stop::Command(error)) => {
                attempts.again(error, context).await?;
                known.doubting = true;
                if turns.is_empty() && !known.touched.is_empty() {
                    let touched = std::mem::take(&mut known.touched);
                    turns = attempts.in_time(executor.lines.take(touched)).await?;
                }
            }
        }
    }
}

#[expect(
    clippy::too_many_arguments,
    reason = "what one attempt needs; a struct of it would be made here and used here"
)]
async fn attempt(
    executor: &Arc<Executor>,
    client: &mut Session,
    context: &Context,
    shaped: &Arc<Stack>,
    part: &Part<'_>,
    number: u32,
    known: &mut Known,
    turns: &mut Turns<'_>,
) -> Result<Written, Stop> {
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Begin { attempt: number }).await?;
    }
    let mut session = client.attempt();
    let jobs = executor.jobs_so_far();
    executor.inner.begin(&mut session, context).await?;
    let statements = part.statements();
    let mut before = Written::default();
    if session.retry.is_some() && !statements.is_empty() {
        let ids: Vec<i32> = statements.iter().map(|(_, id)| *id).collect();
        before = executor.inner.recall(&mut session, context, &shaped.logical.db, &ids).await?;
        let place = |index: usize| statements.get(index).map_or(index, |(at, _)| *at);
        before.upserted.iter_mut().for_each(|(index, _)| *index = place(*index));
    }
    statements::add(&mut before, known.noted.clone(), 0);
    let mut steps = Steps::new(executor, &mut session, context, shaped);
    steps.trusting = !known.doubting;
    let result = perform(&mut steps, part, &before.retried, &known.errors).await;
    known.touched = std::mem::take(&mut steps.touched);
    let learned = std::mem::take(&mut steps.learned);
    let Done { written, effective } = result?;
    if session.retry.is_some() && !effective.is_empty() {
        let ids: Vec<i32> = statements.iter().filter(|(at, _)| effective.contains(at)).map(|(_, id)| *id).collect();
        let mut record = written.clone();
        let index = |at: usize| effective.iter().position(|other| *other == at).unwrap_or_default();
        record.upserted.iter_mut().for_each(|(at, _)| *at = index(*at));
        executor.inner.remember(&mut session, context, &shaped.logical.db, &ids, &record).await?;
    }
    commit(executor, &mut session, context, turns, jobs).await?;
    for (place, open) in learned {
        executor.opens.learn(place, open);
    }
    if let Some(error) = session.concern_error.take() {
        client.concern_error = Some(error);
    }
    let mut total = before;
    statements::add(&mut total, written, 0);
    total.upserted.sort_by_key(|(at, _)| *at);
    Ok(total)
}

/// What was done in one transaction.
struct Done {
    written: Written,
    /// The places of statements that had an effect, in order.
    effective: Vec<usize>,
}

async fn perform(
    steps: &mut Steps<'_>,
    part: &Part<'_>,
    retried: &[i32],
    known: &BTreeMap<usize, Error>,
) -> Result<Done, Stop> {
    let ordered = part.is_ordered();
    // Ordered, nothing behind the first failure is done.
    let end = known.keys().next().copied().filter(|_| ordered);
    let fails = |at: usize| known.contains_key(&at) || end.is_some_and(|end| at >= end);
    let mut done = Done { written: Written::default(), effective: Vec::new() };
    match part {
        Part::Insert { documents, how } => {
            let left = |(_, (at, ..)): &(usize, &NewReading)| !retried.contains(&how.statement_id(*at)) && !fails(*at);
            let left: Vec<usize> = documents.iter().enumerate().filter(left).map(|(index, _)| index).collect();
            let errors = insert::added(steps, documents, &left, ordered, how.bypass_validation).await?;
            let first_left = left.first().and_then(|index| documents.get(*index)).map_or(0, |(at, ..)| *at);
            steps.follow().await.map_err(Stop::of(first_left))?;
            let first = errors.first().map(|failed| failed.index).filter(|_| ordered);
            let places = left.iter().filter_map(|index| documents.get(*index)).map(|(at, ..)| *at);
            let failed = |at: usize| first.is_some_and(|first| at >= first) || errors.iter().any(|one| one.index == at);
            done.effective = places.filter(|at| !failed(*at)).collect();
            done.written.n = done.effective.len() as u64;
            done.written.errors = errors;
        }
        Part::Statements { op, range, how } => {
            for at in range.clone() {
                if retried.contains(&how.statement_id(at)) {
                    continue;
                }
                if fails(at) {
                    continue;
                }
                match statement::run(steps, op, at).await {
                    Ok(written) => {
                        steps.follow().await.map_err(Stop::of(at))?;
                        let deleted = matches!(op, WriteOp::Delete(_)) && written.n > 0;
                        let removed = matches!(op, WriteOp::FindAndModify(_)) && written.n > 0;
                        if deleted || removed || written.modified > 0 || !written.upserted.is_empty() {
                            done.effective.push(at);
                        }
                        statements::add(&mut done.written, written, 0);
                    }
                    Err(stop) => return Err(stop),
                }
            }
        }
        Part::Some { many, picked } => {
            if picked.is_empty() {
                done.written = many.otherwise(steps).await?;
                steps.follow().await.map_err(Stop::of(many.at()))?;
            } else {
                let (written, failed) = many.change(steps, picked).await?;
                steps.follow().await.map_err(Stop::of(many.at()))?;
                done.written = written;
                done.written.errors.extend(failed.map(|error| WriteError { index: many.at(), error }));
            }
        }
    }
    let told = known.iter().filter(|(at, _)| end.is_none_or(|end| **at == end));
    done.written.errors.extend(told.map(|(at, error)| WriteError { index: *at, error: error.clone() }));
    done.written.errors.sort_by_key(|failed| failed.index);
    if ordered {
        done.written.errors.truncate(1);
    }
    Ok(done)
}
