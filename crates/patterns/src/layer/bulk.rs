//! The statements of one command outside a client's transaction (SEMANTICS R10): as many as possible in one transaction. A
//! statement that fails kills it: those before are run again as one, its error is recorded, and the rest goes on (or not).

use crate::active::CollectionRules;
use crate::execute::host_fields::expressed;
use crate::execute::originals::is_pending;
use crate::execute::run::{Outcome, rehearse, transact};
use crate::layer::{Executor, multi, owned, statements};
use document::backend::Session;
use document::op::{Capture, Context, Insert, WriteError, WriteOp, Written};
use document::{Error, Result};
use std::borrow::Cow;
use std::sync::Arc;

/// One transaction takes at most so many statements …
pub(super) const STATEMENTS: usize = 500;
/// … of so many bytes.
pub(super) const BYTES: usize = 4 << 20;

pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: &WriteOp,
    local: &Arc<CollectionRules>,
) -> Result<Written> {
    if let Some(op) = self_contained(local, op, context) {
        return executor.inner.write(session, context, &op, &Capture::Nothing).await;
    }
    let op = owned::rewritten(local, op)?;
    // The next statement that is known to fail.
    let mut known = owned::refused(local, &op, 0);
    let (count, ordered) = (statements::count(&op), statements::is_ordered(&op));
    let mut total = Written::default();
    let mut at = 0;
    while at < count {
        if let Some((_, error)) = known.take_if(|(index, _)| *index == at) {
            total.errors.push(WriteError { index: at, error });
            if ordered {
                break;
            }
            at += 1;
            known = owned::refused(local, &op, at);
            continue;
        }
        if statements::is_multi(&op, at) {
            match multi::run(executor, session, context, &op, at).await {
                Ok(written) => statements::add(&mut total, written, at),
                Err(multi::Failed::Command(error)) => return finish(total, error),
                Err(multi::Failed::Statement(error)) => {
                    total.errors.push(WriteError { index: at, error });
                    if ordered {
                        break;
                    }
                }
            }
            at += 1;
            continue;
        }
        let end = end(&op, at, known.as_ref().map_or(count, |(index, _)| *index));
        let part =
            if at == 0 && end == count { Cow::Borrowed(&*op) } else { Cow::Owned(statements::part(&op, at..end)) };
        match transact(executor, session, context, &part).await {
            Ok(Outcome::Done(written)) => {
                statements::add(&mut total, written, at);
                at = end;
            }
            Ok(Outcome::Failed { index, error }) => {
                let (index, error) = match index {
                    Some(index) => (index, error),
                    None if end - at == 1 => (0, error),
                    None => match find(executor, session, context, &op, at, end).await {
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
    Ok(total)
}

/// An insert whose plan is that one statement: its documents with what is computed from themselves. It needs no transaction.
fn self_contained(local: &CollectionRules, op: &WriteOp, context: &Context) -> Option<WriteOp> {
    let WriteOp::Insert(insert) = op else { return None };
    if !local.sourced.is_empty() || local.hosted.iter().any(|kept| is_pending(kept)) {
        return None;
    }
    let documents = expressed(&local.hosted, &insert.documents, &context.env)?;
    Some(WriteOp::Insert(Insert { documents, ..insert.clone() }))
}

/// The end of the statements from `at` on that share a transaction.
fn end(op: &WriteOp, at: usize, limit: usize) -> usize {
    let mut bytes = 0;
    let mut end = at;
    while end < limit && end - at < STATEMENTS && !statements::is_multi(op, end) {
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
) -> Result<Option<(usize, Error)>> {
    let (mut good, mut bad, mut found) = (from, to, None);
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match rehearse(executor, session, context, &statements::part(op, from..middle)).await? {
            None => good = middle,
            Some((index, error)) => {
                bad = index.map_or(middle, |index| from + index + 1);
                found = Some(error);
            }
        }
    }
    let error = match found {
        Some(error) => Some(error),
        None => rehearse(executor, session, context, &statements::part(op, from..bad)).await?.map(|(_, error)| error),
    };
    Ok(error.map(|error| (bad - 1 - from, error)))
}

/// What a command answers that fails as a whole after some of its statements are done: MongoDB says what was done only if
/// nothing failed, so the error stands alone.
fn finish(_done: Written, error: Error) -> Result<Written> {
    Err(error)
}
