//! Work on whole collections (SEMANTICS R21).

use crate::execute::access::Access;
use crate::front::{
    ClientFront, behind, listing, restore, rights, timeseries, ttl_indexes, unique_indexes, validators, views,
};
use crate::layer::refused::{may_drop, other_of, refuse_bookkeeping, refused};
use crate::layer::switchover_wait;
use crate::life::install;
use document::backend::Session;
use document::op::{AdminOp, Context};
use document::{Doc, Result};

pub(super) async fn run(
    front: &ClientFront,
    session: &mut Session,
    context: &Context,
    op: AdminOp,
) -> Result<Vec<Doc<'static>>> {
    let (executor, life) = (front.executor(), &front.life);
    if matches!(op, AdminOp::Drop { .. } | AdminOp::DropDatabase { .. } | AdminOp::Rename { .. }) {
        executor.lease.check()?;
    }
    switchover_wait::until_defined(executor, session, context, &op).await?;
    if let Some(answer) = restore::run(front, session, context, &op).await? {
        return Ok(answer);
    }
    if !session.restores() {
        behind::check(executor, context, &op).await?;
        validators::check(executor, context, &op).await?;
        unique_indexes::check(executor, context, &op).await?;
    }
    if let Some(answer) = timeseries::run(front, session, context, &op).await? {
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
            views::redefinition(&rules, ns, change)?;
        }
        AdminOp::Create { ns, .. } => refuse_bookkeeping(ns)?,
        AdminOp::CreateView { ns, .. } => {
            refuse_bookkeeping(ns)?;
            rules.lenses().views.is_coming(ns.by_ref());
        }
        AdminOp::CreateIndexes { ns, .. } | AdminOp::DropIndexes { ns, .. } => {
            if !session.restores() {
                refuse_bookkeeping(ns)?;
            }
            views::indexes(&rules, &op)?;
        }
        AdminOp::ListIndexes { .. } => views::indexes(&rules, &op)?,
        AdminOp::DropDatabase { db } if rules.has_database(db) => {
            drop(rules);
            rights::before_drop_database(executor, session.relay.as_ref(), db).await?;
            life.empty_database(context, db).await?;
            return Ok(vec![Doc::empty()]);
        }
        AdminOp::ListCollections { filter, .. } => {
            let asked = filter.source.clone();
            let rows = executor.inner.admin(session, context, op).await?;
            return Ok(listing::shown(rows, &asked));
        }
        AdminOp::Extension { command: "pleach", db, body } => {
            drop(rules);
            return Ok(vec![life.command(session, context, db, body).await?]);
        }
        AdminOp::Status => {
            drop(rules);
            let mut answers = executor.inner.admin(session, context, op).await?;
            let rights = rights::for_server_status(executor, session.relay.as_ref()).await?;
            answers.push(life.server_status(&rights, context).await?);
            return Ok(answers);
        }
        _ => {}
    }
    drop(rules);
    if let Some(answer) = life.change_own_validator(session, context, &op).await? {
        return Ok(answer);
    }
    let indexed = match &op {
        AdminOp::DropIndexes { ns, .. } | AdminOp::Drop { ns } => Some(ns.clone()),
        _ => None,
    };
    let answer = match ttl_indexes::run(front, session, context, &op).await? {
        Some(answer) => answer,
        None => executor.inner.admin(session, context, op).await?,
    };
    if let Some(ns) = indexed.filter(|ns| !session.restores() && executor.rules().of(ns).is_some()) {
        let (mut own, own_context) = (Session::default(), life.context());
        let mut at = Access { backend: &*executor.inner, session: &mut own, context: &own_context };
        install::made::forget_gone(&mut at, &ns).await?;
        life.constrain_again(&mut at, &ns).await?;
    }
    Ok(answer)
}
