//! A client's statements on a collection with outlier arrays (SEMANTICS R18): each is found by a filter that looks into both parts,
//! taken apart, and written as statements on the stored document and on the overflow, in the attempt's transaction. Whoever changes
//! the items writes the owner's count: that orders writers.

mod change;
mod deletes;
mod each_item;
pub(crate) mod explained;
mod many_owners;
pub(crate) mod older;
pub(crate) mod owners;
pub(crate) mod reads;
mod rows;

pub(crate) use deletes::follow_deletes;
pub(crate) use rows::depends_on_places;

use crate::active::CollectionRules;
use crate::execute::attempt::{Attempt, statement_finds_its_record};
use crate::execute::changes::Changes;
use crate::execute::client_statement::{as_stored, insert, modified, read_back};
use crate::execute::executor::Executor;
use crate::execute::outlier::rows::RowChanges;
use crate::execute::react::react;
use crate::execute::statements;
use crate::rule::Outlier;
use crate::shapes::outlier::array_update::check;
use crate::shapes::outlier::filter::is_about;
use crate::shapes::outlier::guarded::guarded;
use crate::shapes::with_id;
use document::backend::Session;
use document::filter::{Filter, Node};
use document::op::{
    Capture, Context, Delete, DeleteStatement, Find, FindAndModify, Insert, Modify, Namespace, ReadOp, UpdateOp,
    UpdateStatement, WriteOp, Written,
};
use document::pipeline::expr::Names;
use document::update::Update;
use document::{Doc, Error, Result, Value};
use std::sync::Arc;

/// Runs the statements and what follows from them. If the reply has a statement's error, the transaction is lost.
pub(crate) async fn execute(attempt: &mut Attempt<'_>, local: &Arc<CollectionRules>, op: &WriteOp) -> Result<Written> {
    let mut total = Written::default();
    let count = if matches!(op, WriteOp::Insert(_)) { 1 } else { statements::count(op) };
    for index in 0..count {
        let outcome = match op {
            WriteOp::Insert(op) => new_documents(attempt, local, op).await,
            WriteOp::Update(_) | WriteOp::Delete(_) => {
                let part = statements::part(op, index..index + 1);
                one(attempt, local, &part).await
            }
            WriteOp::FindAndModify(op) => find_and_modify(attempt, local, op).await,
        };
        let written = match outcome {
            Err(error) if error.is_of_statement() => statements::failed(0, error),
            other => other?,
        };
        let is_failed = !written.errors.is_empty();
        statements::add(&mut total, written, index);
        if is_failed {
            break;
        }
    }
    Ok(total)
}

async fn one(attempt: &mut Attempt<'_>, local: &Arc<CollectionRules>, op: &WriteOp) -> Result<Written> {
    match op {
        WriteOp::Update(update) => match update.statements.first() {
            Some(statement) if is_concerned(local, statement) => updated(attempt, local, update, statement).await,
            _ => as_stored(attempt, local, op).await,
        },
        WriteOp::Delete(delete) => match delete.statements.first() {
            Some(statement) if is_about(&local.outliers, &statement.filter) => {
                let only = (!statement.multi).then_some(None);
                let filter = owners::stored_filter(attempt, local, &delete.ns, &statement.filter, only).await?;
                let statements = vec![DeleteStatement { filter, ..statement.clone() }];
                as_stored(attempt, local, &WriteOp::Delete(Delete { statements, ..delete.clone() })).await
            }
            _ => as_stored(attempt, local, op).await,
        },
        WriteOp::Insert(_) | WriteOp::FindAndModify(_) => Ok(Written::default()),
    }
}

/// Whether a statement says something about an array, or makes a document.
fn is_concerned(local: &CollectionRules, statement: &UpdateStatement) -> bool {
    let touched = local.outliers.iter().flat_map(|outlier| outlier.watched()).collect::<Vec<_>>();
    statement.upsert
        || is_about(&local.outliers, &statement.filter)
        || crate::rule::owned::touched_by_update(&statement.update, &touched)
}

/// New documents: what is past the limit goes to the overflow.
async fn new_documents(attempt: &mut Attempt<'_>, local: &Arc<CollectionRules>, op: &Insert) -> Result<Written> {
    let env = attempt.context.env.clone();
    let (mut documents, mut overflows) = (Vec::new(), Vec::new());
    for (place, document) in op.documents.iter().enumerate() {
        match divided(local, &with_id(document, &env)) {
            Ok((stored, overflow)) => {
                documents.push(stored);
                overflows.push(overflow);
            }
            Err(error) => return Ok(statements::failed(place, error)),
        }
    }
    let stored = Insert { documents, ..op.clone() };
    let mut changes = Changes::default();
    let written = insert(attempt, &stored, &mut changes).await?;
    if !written.errors.is_empty() {
        return Ok(written);
    }
    let mut rows = RowChanges::of(attempt, local);
    let is_done = |place: usize| {
        let number = op.statement_ids.get(place).copied().unwrap_or_else(|| i32::try_from(place).unwrap_or(i32::MAX));
        written.retried.contains(&number)
    };
    let new = stored.documents.iter().zip(overflows).enumerate().filter(|(at, _)| !is_done(*at));
    for (document, overflow) in new.map(|(_, new)| new) {
        spilt(attempt, local, document, overflow, &mut rows).await?;
    }
    rows.put(&mut changes)?;
    Box::pin(react(attempt, changes)).await?;
    Ok(written)
}

/// Of each array the items that overflow, with their places.
type Spilt = Vec<Vec<(u64, Value<'static>)>>;

/// A document whose arrays are whole: what is stored of it, and what overflows.
pub(crate) fn divided(local: &CollectionRules, document: &Doc<'static>) -> Result<(Doc<'static>, Spilt)> {
    let (mut stored, mut spilt) = (document.clone(), Vec::new());
    for outlier in &local.outliers {
        let overflow;
        (stored, overflow) = outlier.divided(&stored)?;
        spilt.push(overflow);
    }
    Ok((stored, spilt))
}

async fn updated(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    op: &UpdateOp,
    statement: &UpdateStatement,
) -> Result<Written> {
    local.outliers.iter().try_for_each(|outlier| check(outlier, &statement.update))?;
    // A statement that matches nothing would be recorded as done.
    let may_guard = attempt.session.retry.is_none();
    if let Some(statement) = guarded(&local.outliers, statement)?.filter(|_| may_guard) {
        let op = WriteOp::Update(UpdateOp { statements: vec![statement], ..op.clone() });
        let mut written = attempt.write(&op, &local.capture).await?;
        if !written.errors.is_empty() || !written.retried.is_empty() {
            return Ok(written);
        }
        if written.n > 0 {
            let mut rows = RowChanges::of(attempt, local);
            written.changes.iter().for_each(|change| rows.captured(change));
            follow(attempt, op.ns(), &mut written, rows).await?;
            return Ok(written);
        }
    }
    let number = op.statement_ids.first().copied();
    if let Some(before) = recalled(attempt, &op.ns, number).await? {
        return Ok(before);
    }
    let only = (!statement.multi).then_some(None);
    let filter = owners::stored_filter(attempt, local, &op.ns, &statement.filter, only).await?;
    let limit = (!statement.multi).then_some(1);
    let find = Find { hint: statement.hint.clone(), limit, ..Find::matching(op.ns.clone(), filter) };
    let found = attempt.read(&[], ReadOp::Find(find)).await?;
    let mut rows = RowChanges::of(attempt, local);
    let (mut statements, mut hidden, mut changes, mut made) = (Vec::new(), 0, 0, None);
    for stored in &found {
        let changed = change::of(attempt, local, stored, &statement.filter, &statement.update, &mut rows).await?;
        hidden += u64::from(changed.is_hidden(stored));
        changes += u64::from(changed.is_hidden(stored) || changed.after.as_bytes() != stored.as_bytes());
        statements.push(whole(&changed.after, false)?);
    }
    if found.is_empty() {
        if !statement.upsert {
            return Ok(Written::default());
        }
        let (stored, overflow) = upserted(attempt, local, &statement.filter, &statement.update)?;
        statements.push(whole(&stored, true)?);
        made = Some((stored, overflow));
    }
    let op = WriteOp::Update(UpdateOp { statements, ..op.clone() });
    let mut written = attempt.write(&op, &local.capture).await?;
    if !written.errors.is_empty() {
        return Ok(written);
    }
    if let Some((stored, overflow)) = made {
        spilt(attempt, local, &stored, overflow, &mut rows).await?;
    }
    follow(attempt, op.ns(), &mut written, rows).await?;
    if attempt.rules.lenses().of(op.ns()).is_some() && written.modified != changes {
        // What is written in place of an older version is another document, and the same to clients.
        written.modified = changes;
        remember(attempt, op.ns(), number.unwrap_or_default(), &written).await?;
    } else if hidden > 0 {
        // Only items of the overflow are others now: the stored document does not show it.
        written.modified = (written.modified + hidden).min(written.n);
        remember(attempt, op.ns(), number.unwrap_or_default(), &written).await?;
    }
    for (index, _) in &mut written.upserted {
        *index = 0;
    }
    Ok(written)
}

async fn find_and_modify(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    op: &FindAndModify,
) -> Result<Written> {
    let concerned = match &op.action {
        Modify::Remove => is_about(&local.outliers, &op.filter),
        Modify::Update { update, upsert, .. } => {
            local.outliers.iter().try_for_each(|outlier| check(outlier, update))?;
            let (filter, update) = (op.filter.clone(), update.clone());
            is_concerned(local, &UpdateStatement { filter, update, multi: false, upsert: *upsert, hint: None })
        }
    };
    if !concerned {
        return modified(attempt, local, &WriteOp::FindAndModify(Box::new(op.clone())), op).await;
    }
    if let Some(before) = recalled(attempt, &op.ns, Some(op.statement_id)).await? {
        return Ok(before);
    }
    let filter = owners::stored_filter(attempt, local, &op.ns, &op.filter, Some(op.sort.as_ref())).await?;
    let find =
        Find { sort: op.sort.clone(), hint: op.hint.clone(), limit: Some(1), ..Find::matching(op.ns.clone(), filter) };
    let found = attempt.read(&[], ReadOp::Find(find)).await?.into_iter().next();
    let (mut rows, mut is_hidden, mut made) = (RowChanges::of(attempt, local), false, None);
    let (id, action) = match (&op.action, found) {
        (Modify::Remove, Some(stored)) => (id_of(&stored), Modify::Remove),
        (Modify::Update { update, return_new, .. }, Some(stored)) => {
            let changed = change::of(attempt, local, &stored, &op.filter, update, &mut rows).await?;
            is_hidden = changed.is_hidden(&stored);
            let (update, return_new) = (replacement(&changed.after)?, *return_new);
            (id_of(&stored), Modify::Update { update, upsert: false, return_new })
        }
        (Modify::Update { update, upsert: true, return_new }, None) => {
            let (stored, overflow) = upserted(attempt, local, &op.filter, update)?;
            let action = Modify::Update { update: replacement(&stored)?, upsert: true, return_new: *return_new };
            let id = id_of(&stored);
            made = Some((stored, overflow));
            (id, action)
        }
        (Modify::Remove | Modify::Update { .. }, None) => return Ok(Written::default()),
    };
    let is_new = matches!(action, Modify::Update { upsert: true, .. });
    let filter = if is_new { never(&id) } else { Filter::equality("_id", &id) };
    let stored = FindAndModify { filter, sort: None, hint: None, action, ..op.clone() };
    let statement = WriteOp::FindAndModify(Box::new(stored.clone()));
    let mut written = match rows.is_empty() {
        true => {
            let written = modified(attempt, local, &statement, &stored).await?;
            if let (Some((stored, overflow)), true) = (made, written.errors.is_empty()) {
                spilt(attempt, local, &stored, overflow, &mut rows).await?;
            }
            written
        }
        false => {
            // Part of the items is written already: fields of the host are right only behind the whole write.
            let mut written = attempt.write(&statement, &local.capture).await?;
            if written.errors.is_empty() {
                if let Some((stored, overflow)) = made {
                    spilt(attempt, local, &stored, overflow, &mut rows).await?;
                }
                follow(attempt, &op.ns, &mut written, rows).await?;
                written = read_back(attempt, &stored, id, written).await?;
            }
            written
        }
    };
    if written.errors.is_empty() && is_hidden {
        written.modified = 1;
        remember(attempt, &op.ns, op.statement_id, &written).await?;
    }
    Ok(written)
}

/// What follows from a statement on stored documents and from what it meant for the items.
async fn follow(attempt: &mut Attempt<'_>, ns: &Namespace, written: &mut Written, rows: RowChanges) -> Result<()> {
    let mut changes = Changes::default();
    changes.derived(ns, std::mem::take(&mut written.changes));
    rows.put(&mut changes)?;
    Box::pin(react(attempt, changes)).await
}

/// The document that an upsert makes, and what of it overflows.
fn upserted(
    attempt: &Attempt<'_>,
    local: &CollectionRules,
    filter: &Filter,
    update: &Update,
) -> Result<(Doc<'static>, Spilt)> {
    divided(local, &update.upsert(filter, &attempt.context.env)?)
}

/// Writes the overflow of a new host, which is written already: if another has its `_id`, the error says so.
async fn spilt(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    stored: &Doc<'static>,
    overflow: Spilt,
    rows: &mut RowChanges,
) -> Result<()> {
    rows.host(None, Some(stored));
    for (outlier, items) in local.outliers.iter().zip(overflow) {
        change::spill(attempt, local, outlier, &id_of(stored), &items, rows).await?;
    }
    Ok(())
}

fn id_of(document: &Doc<'static>) -> Value<'static> {
    document.get("_id").unwrap_or(Value::Missing)
}

fn replacement(after: &Doc<'static>) -> Result<Update> {
    Update::parse(&Value::Document(after.borrow()), &[], &mut Names::new())
}

/// The statement that makes a stored document this one.
fn whole(after: &Doc<'static>, upsert: bool) -> Result<UpdateStatement> {
    let id = id_of(after);
    let filter = if upsert { never(&id) } else { Filter::equality("_id", &id) };
    Ok(UpdateStatement { filter, update: replacement(after)?, multi: false, upsert, hint: None })
}

/// Matches no document and names this `_id`: an upsert by it inserts, or fails because of the document that is there, as MongoDB's does
/// where a filter names a document and does not match it.
fn never(id: &Value<'_>) -> Filter {
    Filter::equality("_id", id).and(Filter::from_node(Node::Or(Vec::new())))
}

/// What a statement of a retryable write answered before; `None` if it was not done.
async fn recalled(attempt: &mut Attempt<'_>, ns: &Namespace, statement: Option<i32>) -> Result<Option<Written>> {
    if attempt.session.retry.is_none() {
        return Ok(None);
    }
    let (backend, number) = (&attempt.executor.inner, [statement.unwrap_or_default()]);
    let before = backend.recall(attempt.session, attempt.context, &ns.db, &number).await?;
    attempt.check_rules()?;
    Ok((!before.retried.is_empty()).then_some(before))
}

/// What our record has of a statement that may have gone the long way when it was sent first. The embedded store looks there itself.
pub(crate) async fn recorded(
    executor: &Executor,
    client: &mut Session,
    context: &Context,
    op: &UpdateOp,
) -> Result<Option<Written>> {
    if client.retry.is_none() || statement_finds_its_record(executor) {
        return Ok(None);
    }
    let mut session = client.attempt();
    executor.inner.begin(&mut session, context).await?;
    let number = [op.statement_ids.first().copied().unwrap_or_default()];
    let before = executor.inner.recall(&mut session, context, &op.ns.db, &number).await;
    if let Some(transaction) = session.transaction.take() {
        transaction.abort();
    }
    Ok(Some(before?).filter(|before| !before.retried.is_empty()))
}

/// Saves the answer of a statement that the backend saw no effect of.
async fn remember(attempt: &mut Attempt<'_>, ns: &Namespace, statement: i32, written: &Written) -> Result<()> {
    if attempt.session.retry.is_none() {
        return Ok(());
    }
    let backend = &attempt.executor.inner;
    backend.remember(attempt.session, attempt.context, &ns.db, &[statement], written).await
}

/// A statement on the overflow of an array.
async fn derive(
    attempt: &mut Attempt<'_>,
    local: &CollectionRules,
    outlier: &Outlier,
    op: &WriteOp,
    capture: &Capture,
) -> Result<Written> {
    attempt.derive(&local.rule_of(outlier), op, capture).await
}

/// The error of a write that needs items which are not embedded.
fn needs_all_items(outlier: &Outlier, what: &str) -> Error {
    let message = format!(
        "{what} '{}' of a document with overflow: further items are in '{}'",
        outlier.field, outlier.overflow.collection
    );
    Error::new(document::Code::OperationFailed, message).with_hint(
        "write to the items with $push, $addToSet, $pull, $pullAll, $pop, $[] or $[id], or $set the whole array",
    )
}
