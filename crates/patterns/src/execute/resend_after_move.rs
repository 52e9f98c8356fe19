//! A retryable write that a client sends again after its collection has got other places, in front of a real MongoDB. Then it goes
//! another way than before: as a statement of its own it was noted by MongoDB under the client's number, as a plan by our record.
//! So for a while after a change both are asked. The embedded store has one record for both ways.

use crate::execute::executor::Executor;
use crate::execute::statements;
use crate::rule::Stack;
use crate::rule::shape::CommandOptions;
use document::backend::Session;
use document::filter::{Filter, Node};
use document::op::{
    Capture, Context, Delete, DeleteStatement, FindAndModify, Modify, Namespace, UpdateOp, UpdateStatement, WriteOp,
    Written,
};
use document::{Error, Result};
use std::time::Duration;

/// Longer than any driver goes on trying.
const RESEND_WINDOW: Duration = Duration::from_secs(120);

/// Whether a command may have gone another way when it was sent first.
fn may_be(executor: &Executor, session: &Session, stack: &Stack) -> bool {
    session.retry.is_some() && executor.inner.facts().answers_clients && stack.since.elapsed() < RESEND_WINDOW
}

/// What MongoDB has noted of statements that are a plan now. It is asked by statements of the same numbers that do nothing: what
/// was done before is answered as such, and what does nothing is not noted.
pub(crate) async fn noted(
    executor: &Executor,
    client: &mut Session,
    context: &Context,
    stack: &Stack,
    op: &WriteOp,
) -> Result<Written> {
    let Some(place) = stack.places.first().filter(|_| may_be(executor, client, stack)) else {
        return Ok(Written::default());
    };
    let mut session = client.attempt();
    let question = question(&place.stored, op);
    let mut written = executor.inner.write(&mut session, context, &question, &Capture::Nothing).await?;
    if written.retried.is_empty() {
        return Ok(Written::default());
    }
    written.errors.clear();
    Ok(written)
}

fn question(ns: &Namespace, op: &WriteOp) -> WriteOp {
    let none = || Filter::from_node(Node::Or(Vec::new()));
    let how = CommandOptions::of(op);
    let ids: Vec<i32> = (0..statements::count(op)).map(|index| how.statement_id(index)).collect();
    match op {
        WriteOp::Update(op) => {
            let statements = op.statements.iter().map(|asked| UpdateStatement {
                filter: none(),
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
        WriteOp::FindAndModify(op) => {
            let action = match &op.action {
                Modify::Remove => Modify::Remove,
                Modify::Update { update, return_new, .. } => {
                    Modify::Update { update: update.clone(), upsert: false, return_new: *return_new }
                }
            };
            let (ns, filter) = (ns.clone(), none());
            WriteOp::FindAndModify(Box::new(FindAndModify { ns, filter, action, hint: None, ..(**op).clone() }))
        }
        // Whatever it was that had these numbers.
        WriteOp::Insert(_) | WriteOp::Delete(_) => WriteOp::Delete(Delete {
            ns: ns.clone(),
            statements: ids.iter().map(|_| DeleteStatement { filter: none(), multi: false, hint: None }).collect(),
            ordered: false,
            statement_ids: ids,
        }),
    }
}

/// What our record has of statements that are one statement of their own now.
pub(crate) async fn recorded(
    executor: &Executor,
    client: &mut Session,
    context: &Context,
    stack: &Stack,
    ids: &[i32],
) -> Result<Written> {
    if ids.is_empty() || !may_be(executor, client, stack) {
        return Ok(Written::default());
    }
    let mut session = client.attempt();
    executor.inner.begin(&mut session, context).await?;
    let before = executor.inner.recall(&mut session, context, &stack.logical.db, ids).await;
    if let Some(transaction) = session.transaction.take() {
        transaction.abort();
    }
    before.map_err(|error: Error| error.context("looking whether it was done before: "))
}
