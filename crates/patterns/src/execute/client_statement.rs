//! The client's own statements in one transaction, and what follows from them.

use crate::active::CollectionRules;
use crate::execute::attempt::Attempt;
use crate::execute::changes::{Changed, Changes};
use crate::execute::client_work::ClientWork;
use crate::execute::evaluation::Host;
use crate::execute::host_fields;
use crate::execute::host_fields::When;
use crate::execute::outlier;
use crate::execute::pipelined_statements::Sent;
use crate::execute::react::react;
use crate::execute::replaced::originals;
use crate::execute::shaped_statement;
use crate::rule::{Effects, key};
use crate::shapes::with_id;
use document::filter::{Details, Filter};
use document::op::{Capture, Change, Find, FindAndModify, Insert, Modify, Namespace, ReadOp, WriteOp, Written};
use document::pipeline::expr::Names;
use document::update::{Applied, Update};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashSet;
use std::sync::Arc;

pub(crate) fn namespace(op: &WriteOp) -> &Namespace {
    match op {
        WriteOp::Insert(op) => &op.ns,
        WriteOp::Update(op) => &op.ns,
        WriteOp::Delete(op) => &op.ns,
        WriteOp::FindAndModify(op) => &op.ns,
    }
}

/// Runs the statements and their effects. If the reply has a statement's error, the transaction is lost.
pub(crate) async fn execute(attempt: &mut Attempt<'_>, work: &ClientWork<'_>) -> Result<Written> {
    if let Some(stack) = work.stack {
        return shaped_statement::execute(attempt, stack, work).await;
    }
    let op = work.op;
    let rules = attempt.rules.clone();
    let Some(local) = rules.of(namespace(op)) else { return attempt.write(op, &Capture::Nothing).await };
    if !local.outliers.is_empty() {
        // Apart on the heap: what a statement on an array may lead to is much, and most collections have none.
        return Box::pin(outlier::execute(attempt, local, op)).await;
    }
    as_stored(attempt, local, op).await
}

/// Statements on documents as they are stored.
pub(super) async fn as_stored(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    op: &WriteOp,
) -> Result<Written> {
    let written = match op {
        WriteOp::Insert(insert) => return inserted(attempt, insert).await,
        WriteOp::FindAndModify(modify) => return modified(attempt, local, op, modify).await,
        WriteOp::Update(_) | WriteOp::Delete(_) => attempt.write(op, &local.capture).await?,
    };
    if written.errors.is_empty() { follow(attempt, namespace(op), written).await } else { Ok(written) }
}

/// A `findAndModify`: what it shows is the document after all steps on it (SEMANTICS R26).
pub(super) async fn modified(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    op: &WriteOp,
    modify: &FindAndModify,
) -> Result<Written> {
    let (written, id) = match final_document(attempt, local, modify).await? {
        Some(shown) => shown,
        None => {
            let written = attempt.write(op, &local.capture).await?;
            if !written.errors.is_empty() {
                return Ok(written);
            }
            let id = written.changes.first().map(|change| change.id.clone());
            (follow(attempt, &modify.ns, written).await?, id)
        }
    };
    match id {
        Some(id) => read_back(attempt, modify, id, written).await,
        None => Ok(written),
    }
}

/// What follows from a change may come back to the document by way of others: it is then shown, and remembered for a client that sends
/// the same once more, as it is after that.
pub(super) async fn read_back(
    attempt: &mut Attempt<'_>,
    op: &FindAndModify,
    id: Value<'static>,
    mut written: Written,
) -> Result<Written> {
    let is_written_again = attempt.derived.contains(&op.ns) && written.retried.is_empty();
    let shows_new = matches!(op.action, Modify::Update { return_new: true, .. }) && written.document.is_some();
    if !is_written_again || !shows_new {
        return Ok(written);
    }
    let find = one(op.ns.clone(), Filter::equality("_id", &id));
    let Some(after) = attempt.read(&[], ReadOp::Find(find)).await?.into_iter().next() else { return Ok(written) };
    let env = &attempt.context.env;
    let shown = match &op.projection {
        // The positional one does not go with `new: true`.
        Some(projection) => projection.apply(&after, &Details::default(), env)?,
        None => after,
    };
    if written.document.as_ref() != Some(&shown) {
        written.document = Some(shown);
        attempt
            .executor
            .inner
            .remember(attempt.session, attempt.context, &op.ns.db, &[op.statement_id], &written)
            .await?;
    }
    Ok(written)
}

/// What follows from the changes of a statement.
async fn follow(attempt: &mut Attempt<'_>, ns: &Namespace, mut written: Written) -> Result<Written> {
    check_links_between(attempt, ns, &written.changes)?;
    let mut changes = Changes::default();
    changes.derived(ns, std::mem::take(&mut written.changes));
    react(attempt, changes).await?;
    Ok(written)
}

/// A document that several statements change is one change, first to last. What each of them leaves must link nevertheless: one that
/// writes an array where a rule links single values is refused, whatever comes behind it.
fn check_links_between(attempt: &Attempt<'_>, ns: &Namespace, changes: &[Change]) -> Result<()> {
    let Some(local) = attempt.rules.of(ns).filter(|_| changes.len() > 1) else { return Ok(()) };
    let mut later: HashSet<Vec<u8>> = HashSet::with_capacity(changes.len());
    for change in changes.iter().rev().filter(|change| !later.insert(key::bytes(&change.id))) {
        let Some(after) = &change.after else { continue };
        for field in local.sourced.iter().filter_map(|kept| kept.field.as_ref()) {
            field.react(change, &attempt.context.env, &mut Effects::new())?;
        }
        for field in local.hosted.iter().filter_map(|kept| kept.field.as_ref()) {
            field.wanted(after, change.before.as_ref())?;
        }
    }
    Ok(())
}

pub(super) async fn inserted(attempt: &mut Attempt<'_>, op: &Insert) -> Result<Written> {
    let mut changes = Changes::default();
    let local = attempt.rules.of(&op.ns).cloned();
    if let Some(local) = local.as_ref().filter(|_| attempt.may_collect(op)) {
        return collected(attempt, local, op).await;
    }
    let Some(local) = local.filter(|local| attempt.together.allowed && !local.sourced.is_empty()) else {
        let written = insert(attempt, op, &mut changes).await?;
        if written.errors.is_empty() {
            react(attempt, changes).await?;
        }
        return Ok(written);
    };
    let op = completed(attempt, &local, op).await?;
    attempt.insert_later(&WriteOp::Insert(op.clone())).await?;
    fresh(&op, &[], &mut changes);
    let effects = react(attempt, changes).await;
    match attempt.sent(effects).await? {
        Sent::Done(written) => Ok(written),
        Sent::Apart(written) if !written.errors.is_empty() => Ok(written),
        Sent::Apart(written) => {
            let mut changes = Changes::default();
            fresh(&op, &written.retried, &mut changes);
            react(attempt, changes).await?;
            Ok(written)
        }
    }
}

/// An insert and what follows from it, collected: what its documents hold of others was read before.
async fn collected(attempt: &mut Attempt<'_>, local: &CollectionRules, op: &Insert) -> Result<Written> {
    attempt.relies = true;
    let op = completed(attempt, local, op).await?;
    attempt.collect();
    attempt.collect_own(&op).await?;
    let mut changes = Changes::default();
    fresh(&op, &[], &mut changes);
    react(attempt, changes).await?;
    Ok(Written { n: op.documents.len() as u64, ..Written::default() })
}

/// Inserts documents, completed before they are written: it stays one statement. What follows from them is the caller's.
pub(crate) async fn insert(attempt: &mut Attempt<'_>, op: &Insert, changes: &mut Changes) -> Result<Written> {
    let rules = attempt.rules.clone();
    let Some(local) = rules.of(&op.ns) else {
        return attempt.write(&WriteOp::Insert(op.clone()), &Capture::Nothing).await;
    };
    let op = completed(attempt, local, op).await?;
    let written = attempt.write(&WriteOp::Insert(op.clone()), &Capture::Nothing).await?;
    if written.errors.is_empty() && !local.sourced.is_empty() {
        fresh(&op, &written.retried, changes);
    }
    Ok(written)
}

/// The documents with everything that rules keep in them.
async fn completed(attempt: &mut Attempt<'_>, local: &CollectionRules, op: &Insert) -> Result<Insert> {
    let mut documents: Vec<Doc<'static>> = op.documents.iter().map(|doc| with_id(doc, &attempt.context.env)).collect();
    if !local.hosted.is_empty() {
        let mut hosts: Vec<Host> = documents.into_iter().map(|after| Host { before: None, after }).collect();
        host_fields::complete(attempt, &local.hosted, &mut hosts, When::BeforeTheWrite).await?;
        keep(attempt, &op.ns, &hosts).await?;
        documents = hosts.into_iter().map(|host| host.after).collect();
    }
    Ok(Insert {
        ns: op.ns.clone(),
        documents,
        ordered: op.ordered,
        bypass_validation: op.bypass_validation,
        statement_ids: op.statement_ids.clone(),
    })
}

/// Keeps what hosts had before rules that are not on yet.
async fn keep(attempt: &mut Attempt<'_>, ns: &Namespace, hosts: &[Host]) -> Result<()> {
    let written = |host: &Host| host.after.get("_id").unwrap_or(Value::Missing);
    let written: Vec<originals::Written<'_>> = hosts
        .iter()
        .map(|host| originals::Written { id: written(host), before: host.before.as_ref(), after: &host.after })
        .collect();
    originals::keep_written(attempt, ns, &written).await
}

/// What an insert changed, but for the statements that were done before.
fn fresh(op: &Insert, retried: &[i32], changes: &mut Changes) {
    let again = |at: usize| {
        let number = op.statement_ids.get(at).copied().unwrap_or_else(|| i32::try_from(at).unwrap_or(i32::MAX));
        retried.contains(&number)
    };
    let fresh = op.documents.iter().enumerate().filter(|(at, _)| !again(*at)).map(|(_, doc)| Changed {
        change: Change {
            id: doc.get("_id").unwrap_or(Value::Missing).into_owned(),
            before: None,
            after: Some(doc.clone()),
        },
        complete: true,
        made: false,
    });
    changes.add(&op.ns, fresh);
}

/// `new: true` shows the document after all steps on it (SEMANTICS R26): where the update may concern fields that rules keep in
/// the same document, it is found first, and one statement writes what it becomes with them. `None` if it need not be.
async fn final_document(
    attempt: &mut Attempt<'_>,
    local: &Arc<CollectionRules>,
    op: &FindAndModify,
) -> Result<Option<FinalDocument>> {
    let Modify::Update { update, upsert, return_new: true } = &op.action else { return Ok(None) };
    if local.hosted.is_empty() || !(*upsert || local.concerns(update)) {
        return Ok(None);
    }
    let find = Find { sort: op.sort.clone(), hint: op.hint.clone(), ..one(op.ns.clone(), op.filter.clone()) };
    if op.filter.collation.is_some() && update.compares() {
        return Err(Error::new(
            Code::NotImplemented,
            "findAndModify with new: true on fields that rules follow takes no collation with a pipeline or with operators that compare",
        )
        .with_hint("leave new: true or the collation out"));
    }
    let env = attempt.context.env.clone();
    let found = attempt.read(&[], ReadOp::Find(find)).await?.into_iter().next();
    let (mut hosts, filter) = match found {
        Some(before) => {
            let mut details = Details::default();
            op.filter.matches_with(&before, &env, &mut details)?;
            let Applied::Changed(after) = update.apply(&before, &details, &env)? else { return Ok(None) };
            let by_id = Filter::equality("_id", &before.get("_id").unwrap_or(Value::Missing));
            // A collation may take another document's `_id` for the same.
            let filter = if op.filter.collation.is_some() { by_id } else { op.filter.clone().and(by_id) };
            ([Host { before: Some(before), after }], filter)
        }
        None if *upsert => {
            let after = update.upsert(&op.filter, &env)?;
            let id = after.get("_id").unwrap_or(Value::Missing);
            ([Host { before: None, after }], Filter::equality("_id", &id))
        }
        None => return Ok(None),
    };
    host_fields::complete(attempt, &local.hosted, &mut hosts, When::BeforeTheWrite).await?;
    keep(attempt, &op.ns, &hosts).await?;
    let [Host { before, after }] = hosts;
    let whole = Update::parse(&Value::Document(after.clone()), &[], &mut Names::new())?;
    let statement = WriteOp::FindAndModify(Box::new(FindAndModify {
        filter,
        action: Modify::Update { update: whole, upsert: *upsert && before.is_none(), return_new: true },
        ..op.clone()
    }));
    let written = attempt.write(&statement, &Capture::Nothing).await?;
    if written.errors.is_empty() && written.retried.is_empty() && written.n > 0 {
        let id = after.get("_id").unwrap_or(Value::Missing);
        let mut changes = Changes::default();
        let change = Change { id: id.clone(), before, after: Some(after) };
        changes.add(&op.ns, [Changed { change, complete: true, made: false }]);
        react(attempt, changes).await?;
        return Ok(Some((written, Some(id))));
    }
    Ok(Some((written, None)))
}

/// What a `findAndModify` answers, and the `_id` of the document that it changed.
type FinalDocument = (Written, Option<Value<'static>>);

/// One document of a collection.
fn one(ns: Namespace, filter: Filter) -> Find {
    Find { limit: Some(1), ..Find::matching(ns, filter) }
}
