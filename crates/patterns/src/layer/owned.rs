//! A client's updates and what they say about fields that rules keep, before anything runs (SEMANTICS R11).

use crate::active::CollectionRules;
use crate::rule::ClientWrites;
use crate::rule::owned::{owned_by_update, without_owned};
use document::op::{Modify, WriteOp};
use document::pipeline::expr::Names;
use document::update::Update;
use document::value::Path;
use document::{Error, Result, Value};
use std::borrow::Cow;

/// The first statement from `from` on that names a field which a client may not write, and its error.
pub(super) fn refused(local: &CollectionRules, op: &WriteOp, from: usize) -> Option<(usize, Error)> {
    let updates = updates(op);
    if updates.is_empty() || local.owned.is_empty() {
        return None;
    }
    let owned: Vec<Path> = paths(local, |writes| writes != ClientWrites::Ignore);
    updates.into_iter().enumerate().skip(from).find_map(|(index, update)| {
        let path = owned_by_update(update, &owned)?;
        let (_, kept) = local.owned.iter().find(|(other, _)| other == path)?;
        Some((index, kept.rule.refusal(path)))
    })
}

/// The operation without what it says about fields whose rules say `client_writes: ignore`, and without what a whole document
/// that is merged merely contains.
pub(super) fn rewritten<'o>(local: &CollectionRules, op: &'o WriteOp) -> Result<Cow<'o, WriteOp>> {
    if local.owned.is_empty() {
        return Ok(Cow::Borrowed(op));
    }
    let ignored: Vec<Path> = paths(local, |writes| writes == ClientWrites::Ignore);
    let contained: Vec<Path> = paths(local, |writes| writes != ClientWrites::Refuse);
    let dropped = |update: &Update| if update.whole { &contained } else { &ignored };
    if !updates(op).into_iter().any(|update| owned_by_update(update, dropped(update)).is_some()) {
        return Ok(Cow::Borrowed(op));
    }
    let mut other = op.clone();
    match &mut other {
        WriteOp::Update(op) => {
            for statement in &mut op.statements {
                statement.update = without(&statement.update, dropped(&statement.update))?;
            }
        }
        WriteOp::FindAndModify(op) => {
            if let Modify::Update { update, .. } = &mut op.action {
                *update = without(update, dropped(update))?;
            }
        }
        WriteOp::Insert(_) | WriteOp::Delete(_) => {}
    }
    Ok(Cow::Owned(other))
}

fn without(update: &Update, owned: &[Path]) -> Result<Update> {
    match without_owned(update, owned)? {
        Some(update) => Ok(update),
        // What is left changes nothing.
        None => {
            let nothing = crate::mql::call("$set", Value::Document(document::Doc::empty()));
            Update::parse(&nothing, &[], &mut Names::new())
        }
    }
}

fn paths(local: &CollectionRules, wanted: impl Fn(ClientWrites) -> bool) -> Vec<Path> {
    local.owned.iter().filter(|(_, kept)| wanted(kept.rule.client_writes)).map(|(path, _)| path.clone()).collect()
}

fn updates(op: &WriteOp) -> Vec<&Update> {
    match op {
        WriteOp::Update(op) => op.statements.iter().map(|statement| &statement.update).collect(),
        WriteOp::FindAndModify(op) => match &op.action {
            Modify::Update { update, .. } => vec![update],
            Modify::Remove => Vec::new(),
        },
        WriteOp::Insert(_) | WriteOp::Delete(_) => Vec::new(),
    }
}
