//! A retryable write that a client sends again after its collection has got other sides, in front of a real MongoDB. Then it goes
//! another way than before: as a statement of its own it was noted by MongoDB under the client's number, as a plan by our record.
//! So for a while after a change both are asked. The embedded store has one record for both ways.

use crate::layer::Executor;
use crate::layer::shaped::write::attempt::Part;
use crate::shapes::Stack;
use document::backend::Session;
use document::filter::{Filter, Node};
use document::op::{
    Capture, Context, Delete, DeleteStatement, FindAndModify, Modify, Namespace, UpdateOp, UpdateStatement, WriteOp,
    Written,
};
use document::{Error, Result};
use std::time::Duration;

/// Longer than any driver goes on trying.
const WHILE: Duration = Duration::from_secs(120);

/// Whether a command may have gone another way when it was sent first.
fn may_be(executor: &Executor, session: &Session, shaped: &Stack) -> bool {
    session.retry.is_some() && executor.inner.facts().answers_clients && shaped.since.elapsed() < WHILE
}

/// What MongoDB has noted of statements that are a plan now. It is asked by statements of the same numbers that do nothing: what
/// was done before is answered as such, and what does nothing is not noted.
pub(super) async fn noted(
    executor: &Executor,
    client: &mut Session,
    context: &Context,
    shaped: &Stack,
    part: &Part<'_>,
) -> Result<Written> {
    let statements = part.statements();
    if statements.is_empty() || !may_be(executor, client, shaped) {
        return Ok(Written::default());
    }
    let Some(side) = shaped.sides.first() else { return Ok(Written::default()) };
    let ids: Vec<i32> = statements.iter().map(|(_, id)| *id).collect();
    let op = question(&side.stored, part, ids);
    let mut session = client.attempt();
    let mut written = executor.inner.write(&mut session, context, &op, &Capture::Nothing).await?;
    if written.retried.is_empty() {
        return Ok(Written::default());
    }
    let place = |index: usize| statements.get(index).map_or(index, |(at, _)| *at);
    written.upserted.iter_mut().for_each(|(index, _)| *index = place(*index));
    written.errors.clear();
    Ok(written)
}

fn question(ns: &Namespace, part: &Part<'_>, ids: Vec<i32>) -> WriteOp {
    let nothing = || Filter::from_node(Node::Or(Vec::new()));
    match part {
        Part::Statements { op: WriteOp::Update(op), range, .. } => {
            let statements = op.statements.get(range.clone()).unwrap_or_default().iter();
            let statements = statements.map(|asked| UpdateStatement {
                filter: nothing(),
                upsert: false,
                multi: false,
                hint: None,
                ..asked.clone()
            });
            WriteOp::Update(UpdateOp {
                ns: ns.clone(),
                statements: statements.collect(),
                ordered: false,
                bypass_validation: true,
                statement_ids: ids,
            })
        }
        Part::Statements { op: WriteOp::FindAndModify(op), .. } => {
            let action = match &op.action {
                Modify::Remove => Modify::Remove,
                Modify::Update { update, return_new, .. } => {
                    Modify::Update { update: update.clone(), upsert: false, return_new: *return_new }
                }
            };
            let (ns, filter) = (ns.clone(), nothing());
            WriteOp::FindAndModify(Box::new(FindAndModify { ns, filter, action, hint: None, ..(**op).clone() }))
        }
        // Whatever it was that had these numbers.
        _ => WriteOp::Delete(Delete {
            ns: ns.clone(),
            statements: ids.iter().map(|_| DeleteStatement { filter: nothing(), multi: false, hint: None }).collect(),
            ordered: false,
            statement_ids: ids,
        }),
    }
}

/// What our record has of statements that are one statement of their own now.
pub(super) async fn recorded(
    executor: &Executor,
    client: &mut Session,
    context: &Context,
    shaped: &Stack,
    ids: &[i32],
) -> Result<Written> {
    if ids.is_empty() || !may_be(executor, client, shaped) {
        return Ok(Written::default());
    }
    let mut session = client.attempt();
    executor.inner.begin(&mut session, context).await?;
    let before = executor.inner.recall(&mut session, context, &shaped.logical.db, ids).await;
    if let Some(transaction) = session.transaction.take() {
        transaction.abort();
    }
    before.map_err(|error: Error| error.context("looking whether it was done before: "))
}
