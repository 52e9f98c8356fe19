//! Work on whole collections (SEMANTICS R21).

use crate::active::{ActiveRule, Rules};
use crate::layer::write::bookkeeping;
use crate::layer::{Executor, behind, expiry, listing, restore, shaped, switchover_wait, timeseries, validators};
use crate::life::access::Access;
use crate::life::{drop_database, install, names};
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Aggregate, Context, Namespace};
use document::pipeline::Sink;
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

pub(super) async fn run(
    executor: &Arc<Executor>,
    session: &mut Session,
    context: &Context,
    op: AdminOp,
) -> Result<Vec<Doc<'static>>> {
    if matches!(op, AdminOp::Drop { .. } | AdminOp::DropDatabase { .. } | AdminOp::Rename { .. }) {
        executor.lease.check()?;
    }
    switchover_wait::until_defined(executor, session, context, &op).await?;
    if let Some(answer) = restore::run(executor, session, context, &op).await? {
        return Ok(answer);
    }
    if !session.restores() {
        behind::check(executor, context, &op).await?;
        validators::check(executor, context, &op).await?;
    }
    if let Some(answer) = timeseries::run(executor, session, context, &op).await? {
        return Ok(match &op {
            AdminOp::ListCollections { filter, .. } => listing::shown(answer, &filter.source),
            _ => answer,
        });
    }
    let rules = executor.rules();
    match &op {
        AdminOp::Drop { ns } => may_drop(executor, context, &rules, ns).await?,
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
        AdminOp::DropDatabase { db } if rules.has_database(db) => {
            drop(rules);
            match executor.life() {
                Some(life) => life.empty_database(session, context, db).await?,
                None => {
                    drop_database::drop_collections(
                        &mut Access { backend: &*executor.inner, session, context },
                        db,
                        &[],
                    )
                    .await?
                }
            }
            return Ok(vec![Doc::empty()]);
        }
        AdminOp::ListCollections { filter, .. } => {
            let asked = filter.source.clone();
            let rows = executor.inner.admin(session, context, op).await?;
            return Ok(listing::shown(rows, &asked));
        }
        AdminOp::Extension { command: "pleach", db, body } => {
            if let Some(life) = executor.life() {
                drop(rules);
                return Ok(vec![life.command(session, context, db, body).await?]);
            }
        }
        AdminOp::Status => {
            drop(rules);
            let mut answers = executor.inner.admin(session, context, op).await?;
            if let Some(life) = executor.life() {
                answers.push(life.server_status(session.relay.as_ref(), context).await?);
            }
            return Ok(answers);
        }
        _ => {}
    }
    drop(rules);
    if let Some(life) = executor.life()
        && let Some(answer) = life.change_own_validator(session, context, &op).await?
    {
        return Ok(answer);
    }
    let indexed = match &op {
        AdminOp::DropIndexes { ns, .. } | AdminOp::Drop { ns } => Some(ns.clone()),
        _ => None,
    };
    let answer = match expiry::run(executor, session, context, &op).await? {
        Some(answer) => answer,
        None => executor.inner.admin(session, context, op).await?,
    };
    if let Some(ns) = indexed.filter(|ns| !session.restores() && executor.rules().of(ns).is_some())
        && let Some(life) = executor.life()
    {
        let (mut own, own_context) = (Session::default(), life.context());
        let mut at = Access { backend: &*executor.inner, session: &mut own, context: &own_context };
        install::made::forget_gone(&mut at, &ns).await?;
        life.constrain_again(&mut at, &ns).await?;
    }
    Ok(answer)
}

/// Fails if a rule, or Pleach itself, needs the collection.
pub(crate) async fn may_drop(executor: &Arc<Executor>, context: &Context, rules: &Rules, ns: &Namespace) -> Result<()> {
    refuse_bookkeeping(ns)?;
    match present(executor, context, &others_of(rules, ns)).await? {
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
    executor: &Arc<Executor>,
    context: &Context,
    others: &[(Arc<ActiveRule>, Namespace)],
) -> Result<Option<(Arc<ActiveRule>, Namespace)>> {
    for (kept, other) in others {
        if exists(executor, context, other).await? {
            return Ok(Some((kept.clone(), other.clone())));
        }
    }
    Ok(None)
}

pub(super) async fn exists(executor: &Executor, context: &Context, ns: &Namespace) -> Result<bool> {
    let list = AdminOp::ListCollections {
        db: ns.db.to_string(),
        filter: Filter::equality("name", &Value::from(&*ns.collection)),
        name_only: true,
    };
    Ok(!executor.inner.admin(&mut Session::default(), context, list).await?.is_empty())
}

/// `$out` into a collection of a rule is refused before anything is written beside it.
pub(crate) fn check_sink(executor: &Executor, rules: &Rules, op: &Aggregate) -> Result<(), (Namespace, Error)> {
    let Some(Sink::Out { db, collection }) = &op.pipeline.sink else { return Ok(()) };
    let target = Namespace::new(db.as_deref().unwrap_or(&op.ns.db), collection);
    let refusal = match rules.of(&target).and_then(|local| local.named_by.first()) {
        _ if names::is_bookkeeping(&target) => Some(bookkeeping(&target)),
        kept => timeseries::refused_on(executor, &target)
            .map(|refused| refused.context("PlanExecutor error during aggregation :: caused by :: "))
            .or_else(|| kept.map(|kept| refused("$out", &target, kept, &other_of(kept, &target)))),
    };
    refusal.map_or(Ok(()), |refusal| Err((target, refusal)))
}
