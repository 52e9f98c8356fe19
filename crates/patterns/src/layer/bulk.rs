//! The statements of one command outside a client's transaction (SEMANTICS R10): as many as possible in one transaction. A
//! statement that fails kills it: those before are run again as one, its error is recorded, and the rest goes on (or not).

use crate::active::CollectionRules;
use crate::execute::client_work::ClientWork;
use crate::execute::executor::Executor;
use crate::execute::gate::Point;
use crate::execute::host_fields::expressed;
use crate::execute::outlier;
use crate::execute::plan::Action;
use crate::execute::replaced::originals::is_pending;
use crate::execute::run::{Outcome, rehearse, run_statements};
use crate::execute::{direct, resend_after_move, statements, versioned_write};
use crate::layer::{array_collations, logical_names, multi, owned};
use crate::rule::Stack;
use crate::shapes::outlier::array_update;
use crate::shapes::outlier::guarded::guarded;
use document::backend::Session;
use document::op::{Capture, Context, Insert, UpdateOp, WriteError, WriteOp, Written};
use document::{Doc, Error, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// One transaction takes at most so many statements …
pub(super) const STATEMENTS: usize = 500;
/// … of so many bytes.
pub(super) const BYTES: usize = 4 << 20;

/// What a command writes to.
#[derive(Clone, Copy)]
pub(super) enum Target<'t> {
    /// A collection whose documents are stored as they are.
    Plain(&'t Arc<CollectionRules>),
    /// One that is stored in another form.
    Stacked(&'t Arc<Stack>),
}

impl<'t> Target<'t> {
    pub(super) fn stack(self) -> Option<&'t Arc<Stack>> {
        match self {
            Target::Plain(_) => None,
            Target::Stacked(stack) => Some(stack),
        }
    }

    /// The next statement that is known to fail.
    pub(super) fn refused(self, op: &WriteOp, from: usize) -> Option<(usize, Error)> {
        match self {
            Target::Plain(local) => {
                let refused = [owned::refused(local, op, from), array_collations::refused(local, op, from)];
                refused.into_iter().flatten().min_by_key(|(index, _)| *index)
            }
            Target::Stacked(_) => logical_names::statement(op, from),
        }
    }

    /// The statements from `from` on that are one statement on one stored document each.
    fn direct(self, op: &WriteOp, from: usize) -> std::ops::Range<usize> {
        self.stack().map_or(from..from, |stack| direct::statements(stack, op, from, false))
    }
}

pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    target: Target<'_>,
) -> Result<Written> {
    let op = match target {
        Target::Plain(local) => {
            if let Some(op) = self_contained(local, op, context) {
                let rules = executor.rules();
                let (backend, lenses) = (&*executor.inner, rules.lenses());
                return versioned_write::write(backend, lenses, session, context, &op, &Capture::Nothing).await;
            }
            let op = owned::rewritten(local, op)?;
            if target.refused(&op, 0).is_none()
                && let Some(written) = pushed(executor, session, context, local, &op).await?
            {
                return Ok(written);
            }
            op
        }
        Target::Stacked(_) => Cow::Borrowed(op),
    };
    let mut known = target.refused(&op, 0);
    let (count, ordered) = (statements::count(&op), statements::is_ordered(&op));
    let mut total = Written::default();
    let mut at = 0;
    while at < count && (!ordered || total.errors.is_empty()) {
        if let Some((_, error)) = known.take_if(|(index, _)| *index == at) {
            total.errors.push(WriteError { index: at, error });
            at += 1;
            known = target.refused(&op, at);
            continue;
        }
        let direct = target.direct(&op, at);
        if let Some(stack) = target.stack().filter(|_| !direct.is_empty()) {
            at = direct.end;
            statements::add(&mut total, direct::run(executor, session, context, stack, &op, direct).await?, 0);
            continue;
        }
        if statements::is_multi(&op, at) {
            match multi::run(executor, session, context, &op, at, target.stack()).await {
                Ok(written) => statements::add(&mut total, written, at),
                Err(multi::Failed::Command(error)) => return finish(total, error),
                Err(multi::Failed::Statement(error)) => total.errors.push(WriteError { index: at, error }),
            }
            at += 1;
            continue;
        }
        let end = end(&op, at, known.as_ref().map_or(count, |(index, _)| *index), target);
        let part =
            if at == 0 && end == count { Cow::Borrowed(&*op) } else { Cow::Owned(statements::part(&op, at..end)) };
        let mut work = ClientWork::through(&part, target.stack());
        if let Some(stack) = target.stack() {
            work.noted = resend_after_move::noted(executor, session, context, stack, &part).await?;
        }
        match run_statements(executor, session, context, &work).await {
            Ok(Outcome::Done(written)) => {
                statements::add(&mut total, written, at);
                at = end;
            }
            Ok(Outcome::Failed { index, error }) => {
                let (index, error) = match index {
                    Some(index) => (index, error),
                    None if end - at == 1 => (0, error),
                    None => match find(executor, session, context, &op, at, end, target.stack()).await {
                        Ok(Some(found)) => found,
                        // It did not fail again: once more as a whole.
                        Ok(None) => continue,
                        Err(error) => return finish(total, error),
                    },
                };
                known = Some((at + index, error));
            }
            Err(error) => return finish(total, error),
        }
    }
    total.errors.sort_by_key(|failed| failed.index);
    Ok(total)
}

/// An insert whose plan is that one statement: its documents with what is computed from themselves. It needs no transaction.
fn self_contained(local: &CollectionRules, op: &WriteOp, context: &Context) -> Option<WriteOp> {
    let WriteOp::Insert(insert) = op else { return None };
    if !local.sourced.is_empty() || local.hosted.iter().any(|kept| is_pending(kept)) || is_source(local) {
        return None;
    }
    let stored = match local.outliers.is_empty() {
        true => Cow::Borrowed(&insert.documents),
        false => Cow::Owned(
            insert.documents.iter().map(|document| without_overflow(local, document)).collect::<Option<_>>()?,
        ),
    };
    let documents = match local.hosted.is_empty() {
        true if !local.outliers.is_empty() => stored.into_owned(),
        _ => expressed(&local.hosted, &stored, &context.env)?,
    };
    Some(WriteOp::Insert(Insert { documents, ..insert.clone() }))
}

/// The document as it is stored, if no item of it overflows.
fn without_overflow(local: &CollectionRules, document: &Doc<'static>) -> Option<Doc<'static>> {
    let (stored, overflow) = outlier::divided(local, document).ok()?;
    overflow.iter().all(Vec::is_empty).then_some(stored)
}

/// A push that needs no transaction: one guarded statement. Returns `None` if it is no such statement, or matched nothing.
async fn pushed(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    local: &CollectionRules,
    op: &WriteOp,
) -> Result<Option<Written>> {
    let WriteOp::Update(update) = op else { return Ok(None) };
    let [statement] = update.statements.as_slice() else { return Ok(None) };
    let is_alone = local.sourced.is_empty() && local.hosted.is_empty() && !is_source(local);
    if local.outliers.is_empty() || !is_alone {
        return Ok(None);
    }
    if local.outliers.iter().any(|outlier| array_update::check(outlier, &statement.update).is_err()) {
        return Ok(None);
    }
    let Some(statement) = guarded(&local.outliers, statement)? else { return Ok(None) };
    if let Some(before) = outlier::recorded(executor, session, context, update).await? {
        return Ok(Some(before));
    }
    let op = WriteOp::Update(UpdateOp { statements: vec![statement], ..update.clone() });
    if let Some(gate) = executor.gate() {
        gate.pass(Point::Step { rules: &[], action: &Action::Write(op.clone()) }).await?;
    }
    let rules = executor.rules();
    let (backend, lenses) = (&*executor.inner, rules.lenses());
    let written = versioned_write::write(backend, lenses, session, context, &op, &Capture::Nothing).await?;
    let is_done = written.n > 0 || !written.errors.is_empty() || !written.retried.is_empty();
    Ok(is_done.then_some(written))
}

/// Whether fields are kept from the items of an array.
fn is_source(local: &CollectionRules) -> bool {
    local.items_are_source
}

/// The end of the statements from `at` on that share a transaction.
fn end(op: &WriteOp, at: usize, limit: usize, target: Target<'_>) -> usize {
    let mut bytes = 0;
    let mut end = at;
    let ends = |end: usize| end > at && (statements::is_multi(op, end) || !target.direct(op, end).is_empty());
    while end < limit && end - at < STATEMENTS && !ends(end) {
        bytes += statements::size(op, end);
        if bytes > BYTES && end > at {
            break;
        }
        end += 1;
    }
    end
}

/// Which statement a derived step fails for: the shortest run of statements that fails ends with it.
pub(super) async fn find(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    from: usize,
    to: usize,
    stack: Option<&Arc<Stack>>,
) -> Result<Option<(usize, Error)>> {
    let part = |end: usize| statements::part(op, from..end);
    let (mut good, mut bad, mut found) = (from, to, None);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match rehearse(executor, session, context, &ClientWork::through(&part(middle), stack), false).await? {
            Ok(_) => good = middle,
            Err((index, error)) => {
                bad = index.map_or(middle, |index| from + index + 1);
                found = Some(error);
            }
        }
    }
    let error = match found {
        Some(error) => Some(error),
        None => {
            let outcome = rehearse(executor, session, context, &ClientWork::through(&part(bad), stack), false).await?;
            outcome.err().map(|(_, error)| error)
        }
    };
    Ok(error.map(|error| (bad - 1 - from, error)))
}

/// What a command answers that fails as a whole after some of its statements are done: MongoDB says what was done only if
/// nothing failed, so the error stands alone.
fn finish(_done: Written, error: Error) -> Result<Written> {
    Err(error)
}
