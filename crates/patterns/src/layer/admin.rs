//! Work on whole collections (SEMANTICS R21), and which commands no rule concerns.

use crate::active::{ActiveRule, Rules};
use crate::layer::write::bookkeeping;
use crate::layer::{Shared, behind, expiry, listing, restore, shaped, switchover_wait, timeseries, validators};
use crate::life::access::Access;
use crate::life::{drop_database, indexes, names};
use document::backend::{Head, Session};
use document::filter::Filter;
use document::op::{AdminOp, Aggregate, Context, Namespace};
use document::pipeline::Sink;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

pub(super) async fn run(
    shared: &Arc<Shared>,
    session: &mut Session,
    context: &Context,
    op: AdminOp,
) -> Result<Vec<Doc<'static>>> {
    if matches!(op, AdminOp::Drop { .. } | AdminOp::DropDatabase { .. } | AdminOp::Rename { .. }) {
        shared.lease.check()?;
    }
    switchover_wait::until_defined(shared, session, context, &op).await?;
    if let Some(answer) = restore::run(shared, session, context, &op).await? {
        return Ok(answer);
    }
    if !session.restores() {
        behind::check(shared, context, &op).await?;
        validators::check(shared, context, &op).await?;
    }
    if let Some(answer) = timeseries::run(shared, session, context, &op).await? {
        return Ok(match &op {
            AdminOp::ListCollections { filter, .. } => listing::shown(answer, &filter.source),
            _ => answer,
        });
    }
    let rules = shared.rules();
    match &op {
        AdminOp::Drop { ns } => may_drop(shared, context, &rules, ns).await?,
        AdminOp::Rename { from, to, .. } => {
            for ns in [from, to] {
                refuse_bookkeeping(ns)?;
                if let Some(kept) = rules.of(ns).and_then(|local| local.named_by.first()) {
                    // `$out` ends with a rename of what it wrote beside the target.
                    let what = if from.collection.starts_with("tmp.agg_out.") { "$out" } else { "renameCollection" };
                    return Err(refused(what, ns, kept, &other_of(kept, ns)));
                }
            }
        }
        AdminOp::CollMod { ns, change } => {
            refuse_bookkeeping(ns)?;
            shaped::refused::redefinition(&rules, ns, change)?;
        }
        AdminOp::Create { ns, .. } | AdminOp::CreateView { ns, .. } => refuse_bookkeeping(ns)?,
        AdminOp::CreateIndexes { ns, .. } | AdminOp::DropIndexes { ns, .. } => {
            if !session.restores() {
                refuse_bookkeeping(ns)?;
            }
            shaped::refused::indexes(&rules, &op)?;
        }
        AdminOp::ListIndexes { .. } => shaped::refused::indexes(&rules, &op)?,
        AdminOp::DropDatabase { db } if rules_in(&rules, db) => {
            drop(rules);
            match shared.life() {
                Some(life) => life.empty_database(session, context, db).await?,
                None => {
                    drop_database::drop_collections(&mut Access { backend: &*shared.inner, session, context }, db, &[])
                        .await?
                }
            }
            return Ok(vec![Doc::empty()]);
        }
        AdminOp::ListCollections { filter, .. } => {
            let asked = filter.source.clone();
            let rows = shared.inner.admin(session, context, op).await?;
            return Ok(listing::shown(rows, &asked));
        }
        AdminOp::Extension { command: "pleach", db, body } => {
            if let Some(life) = shared.life() {
                drop(rules);
                return Ok(vec![life.command(session, context, db, body).await?]);
            }
        }
        AdminOp::Status => {
            drop(rules);
            let mut answers = shared.inner.admin(session, context, op).await?;
            if let Some(life) = shared.life() {
                answers.push(life.server_status(session.relay.as_ref(), context).await?);
            }
            return Ok(answers);
        }
        _ => {}
    }
    drop(rules);
    let indexed = match &op {
        AdminOp::DropIndexes { ns, .. } | AdminOp::Drop { ns } => Some(ns.clone()),
        _ => None,
    };
    let answer = match expiry::run(shared, session, context, &op).await? {
        Some(answer) => answer,
        None => shared.inner.admin(session, context, op).await?,
    };
    if let Some(ns) = indexed.filter(|ns| !session.restores() && shared.rules().of(ns).is_some())
        && let Some(life) = shared.life()
    {
        let (mut own, own_context) = (Session::default(), life.context());
        let mut at = Access { backend: &*shared.inner, session: &mut own, context: &own_context };
        indexes::made::forget_gone(&mut at, &ns).await?;
    }
    Ok(answer)
}

/// Fails if a rule, or Pleach itself, needs the collection.
pub(crate) async fn may_drop(shared: &Arc<Shared>, context: &Context, rules: &Rules, ns: &Namespace) -> Result<()> {
    refuse_bookkeeping(ns)?;
    match present(shared, context, &others_of(rules, ns)).await? {
        Some((kept, other)) => Err(refused("drop", ns, &kept, &other)),
        None => Ok(()),
    }
}

fn refuse_bookkeeping(ns: &Namespace) -> Result<()> {
    if names::is_bookkeeping(ns) { Err(bookkeeping(ns)) } else { Ok(()) }
}

pub(super) fn refused(what: &str, ns: &Namespace, kept: &ActiveRule, other: &Namespace) -> Error {
    let rule = &kept.rule.name;
    let is_shape = kept.rule.bucket().is_some();
    let role = match (kept.rule.host == *ns, is_shape) {
        (true, _) => "is kept up by",
        (false, true) => "holds the documents of",
        (false, false) => "is read by",
    };
    let message = format!("{what} is not allowed on '{ns}': it {role} rule {rule} ({})", kept.rule.described());
    if is_shape {
        let hint = format!(
            "`pleach drop {rule}` makes it an ordinary collection again, with --with-data nothing is left of it"
        );
        return Error::new(Code::OperationFailed, message).with_hint(hint);
    }
    Error::new(Code::OperationFailed, message).with_hint(format!(
        "remove the rule first with `pleach drop {rule}`, or delete the documents; a rule's collections may go when '{other}' is gone too, or with dropDatabase"
    ))
}

pub(super) fn other_of(kept: &ActiveRule, ns: &Namespace) -> Namespace {
    let others = kept.rule.namespaces();
    let other = others.into_iter().skip(1).find(|other| *other != ns).unwrap_or(&kept.rule.host);
    other.clone()
}

/// The other namespaces of the rules that name this one.
fn others_of(rules: &Rules, ns: &Namespace) -> Vec<(Arc<ActiveRule>, Namespace)> {
    let Some(local) = rules.of(ns) else { return Vec::new() };
    let pairs = local.named_by.iter().map(|kept| (kept.clone(), other_of(kept, ns)));
    pairs.filter(|(_, other)| other != ns).collect()
}

/// The first of them that exists; the client may not be allowed to know.
async fn present(
    shared: &Arc<Shared>,
    context: &Context,
    others: &[(Arc<ActiveRule>, Namespace)],
) -> Result<Option<(Arc<ActiveRule>, Namespace)>> {
    for (kept, other) in others {
        if exists(shared, context, other).await? {
            return Ok(Some((kept.clone(), other.clone())));
        }
    }
    Ok(None)
}

pub(super) async fn exists(shared: &Shared, context: &Context, ns: &Namespace) -> Result<bool> {
    let list = AdminOp::ListCollections {
        db: ns.db.to_string(),
        filter: Filter::equality("name", &Value::from(&*ns.collection)),
        name_only: true,
    };
    Ok(!shared.inner.admin(&mut Session::default(), context, list).await?.is_empty())
}

/// `$out` into a collection of a rule is refused before anything is written beside it.
pub(crate) fn check_sink(shared: &Shared, rules: &Rules, op: &Aggregate) -> Result<(), (Namespace, Error)> {
    let Some(Sink::Out { db, collection }) = &op.pipeline.sink else { return Ok(()) };
    let target = Namespace::new(db.as_deref().unwrap_or(&op.ns.db), collection);
    let refusal = match rules.of(&target).and_then(|local| local.named_by.first()) {
        _ if names::is_bookkeeping(&target) => Some(bookkeeping(&target)),
        kept => timeseries::refused_on(shared, &target)
            .map(|refused| refused.context("PlanExecutor error during aggregation :: caused by :: "))
            .or_else(|| kept.map(|kept| refused("$out", &target, kept, &other_of(kept, &target)))),
    };
    refusal.map_or(Ok(()), |refusal| Err((target, refusal)))
}

/// Commands that write to, or rename, the collection they name first.
const WRITES: &[&str] = &["insert", "update", "delete", "findAndModify", "findandmodify", "drop", "create", "collMod"];

/// Whether no rule concerns a command, as far as its first look tells.
pub(super) fn passes(shared: &Shared, rules: &Rules, command: &Head<'_>) -> bool {
    let unsure = writes(command) && !shared.lease.is_valid();
    if unsure
        || restore::concerns(shared, command)
        || switchover_wait::concerns(rules, command)
        || shaped::refused::plans(rules, command)
        || behind::target(rules, command).is_some()
    {
        return false;
    }
    match command.name {
        "pleach" | "renameCollection" | "bulkWrite" | "serverStatus" => false,
        "dropDatabase" | "explain" => !rules_in(rules, command.db),
        "createIndexes" | "dropIndexes" | "deleteIndexes" if is_of_ours(command) => false,
        "dropIndexes" | "deleteIndexes" if of_rules(rules, command) => false,
        "createIndexes" | "dropIndexes" | "deleteIndexes" | "listIndexes" => !expiry::concerns(shared, rules, command),
        "aggregate" if writes_elsewhere(command.body) && rules_anywhere(rules) => {
            sink(command).is_some_and(|target| is_free(rules, &target))
        }
        name if WRITES.contains(&name) => {
            command.target.is_none_or(|target| is_free(rules, &Namespace::new(command.db, target)))
        }
        _ => true,
    }
}

fn of_rules(rules: &Rules, command: &Head<'_>) -> bool {
    command.target.is_some_and(|target| rules.of(&Namespace::new(command.db, target)).is_some())
}

fn is_of_ours(command: &Head<'_>) -> bool {
    command.target.is_some_and(|target| names::is_bookkeeping(&Namespace::new(command.db, target)))
}

/// Whether a collection is neither a rule's nor ours.
pub(super) fn is_free(rules: &Rules, ns: &Namespace) -> bool {
    rules.of(ns).is_none() && rules.stored(ns).is_none() && !names::is_bookkeeping(ns)
}

/// Whether a command may change documents of clients.
fn writes(command: &Head<'_>) -> bool {
    match command.name {
        "aggregate" => writes_elsewhere(command.body),
        "dropDatabase" => true,
        name => WRITES.contains(&name) || behind::writes(command),
    }
}

pub(super) fn rules_in(rules: &Rules, db: &str) -> bool {
    rules.namespaces().any(|ns| &*ns.db == db)
}

fn rules_anywhere(rules: &Rules) -> bool {
    !rules.all().is_empty()
}

/// `$out` or `$merge` at the end of the pipeline.
fn writes_elsewhere(body: &Doc<'_>) -> bool {
    let Some(Value::Array(stages)) = body.get("pipeline") else { return false };
    let is_sink =
        |stage: &Value<'_>| matches!(stage, Value::Document(doc) if doc.contains("$out") || doc.contains("$merge"));
    stages.iter().any(|stage| is_sink(&stage))
}

/// Where the `$merge` that ends a pipeline writes to; `$out` is checked by who refuses it.
pub(super) fn merged_into(command: &Head<'_>) -> Option<Namespace> {
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return None };
    let merges = |stage: &Value<'_>| matches!(stage, Value::Document(stage) if stage.contains("$merge"));
    stages.iter().last().filter(merges).and_then(|_| sink(command))
}

/// Where the `$out` or `$merge` that ends a pipeline writes to; nothing if it is not said as it should be.
fn sink(command: &Head<'_>) -> Option<Namespace> {
    let Some(Value::Array(stages)) = command.body.get("pipeline") else { return None };
    let Some(Value::Document(stage)) = stages.iter().last() else { return None };
    let target = match (stage.get("$out"), stage.get("$merge")) {
        (Some(target), None) => target,
        (None, Some(Value::Document(merge))) => merge.get("into")?,
        (None, Some(target)) => target,
        _ => return None,
    };
    match target {
        Value::String(collection) => Some(Namespace::new(command.db, collection.as_str())),
        Value::Document(target) => {
            let db = target.get("db");
            let db = db.as_ref().map_or(Some(command.db), Value::as_str)?;
            Some(Namespace::new(db, target.get("coll")?.as_str()?))
        }
        _ => None,
    }
}
