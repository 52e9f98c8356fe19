//! Derived values that are written outside a client's write: by seeding, repair and the outbox. They are changes for the next
//! rules as any other (SEMANTICS R29).

use super::Life;
use super::evaluate::Difference;
use super::records::{update_one, update_op};
use super::transient::Began;
use crate::rule::Rule;
use document::Result;
use document::backend::Backend;
use document::filter::Filter;
use document::op::{Capture, Delete, DeleteStatement, WriteOp};

/// Makes the differences right, and what follows from them.
pub(crate) async fn write(life: &Life, began: &mut Began<'_>, rule: &Rule, differences: &[Difference]) -> Result<()> {
    if differences.is_empty() {
        return Ok(());
    }
    let statements = differences
        .iter()
        .map(|difference| update_one(Filter::equality("_id", &difference.id), difference.update.clone()))
        .collect();
    run(life, began, rule, &update_op(&rule.host, statements)).await
}

/// Deletes hosts whose source is gone (`when_deleted: cascade`), through the layer: they may be what others come from.
pub(crate) async fn delete(life: &Life, began: &mut Began<'_>, rule: &Rule, filter: Filter) -> Result<()> {
    let statements = vec![DeleteStatement { filter, multi: true, hint: None }];
    let op = Delete { ns: rule.host.clone(), statements, ordered: true, statement_ids: Vec::new() };
    let (session, context) = (&mut began.session, began.context);
    let mut written = life.patterned.write(session, context, &WriteOp::Delete(op), &Capture::Nothing).await?;
    written.errors.pop().map_or(Ok(()), |failed| Err(failed.error))
}

async fn run(life: &Life, began: &mut Began<'_>, rule: &Rule, op: &WriteOp) -> Result<()> {
    let capture = life.patterned.watched(rule);
    let (session, context) = (&mut began.session, began.context);
    let mut written = life.backend.write(session, context, op, &capture).await?;
    if let Some(failed) = written.errors.pop() {
        return Err(failed.error);
    }
    match written.changes.is_empty() {
        true => Ok(()),
        false => life.patterned.follow(session, context, rule, written.changes).await,
    }
}
