//! Commands that would make a rule's collection one whose rule cannot be kept, or write to it unseen: capped collections, views and
//! time series under its name, documents that MongoDB lets expire by itself, writes that no plan follows, a unique index that goes.
//! They are refused; what only looks, or only costs time, passes.

use crate::active::{ActiveRule, Rules, side_writes};
use crate::execute::access::Access;
use crate::execute::executor::Executor;
use crate::front::rights;
use crate::layer::refused::{bookkeeping, exists, other_of, refused};
use crate::life::{expiry, install};
use crate::rule::{IndexNeed, names};
use document::backend::{Head, Relay, Session};
use document::op::{AdminOp, Context, Namespace};
use document::{Code, Doc, Error, Result, Value};
use std::sync::Arc;

/// Fails if a command would change a collection behind the back of its rules.
pub(super) async fn refuse(executor: &Executor, command: &Head<'_>, line: Option<&Arc<dyn Relay>>) -> Result<()> {
    if !side_writes::is_unplanned(command) || line.is_none() {
        return Ok(());
    }
    // Without a lease the rules may be others.
    executor.lease.check()?;
    let rules = executor.rules();
    let Some(target) = side_writes::unplanned(&rules, command) else { return Ok(()) };
    let error = match rules.of(&target.ns).and_then(|local| local.named_by.first()) {
        _ if names::is_bookkeeping(&target.ns) => bookkeeping(&target.ns),
        Some(kept) => refused(command.name, &target.ns, kept, &other_of(kept, &target.ns)).with_hint(hint(kept)),
        None => Error::new(
            Code::OperationFailed,
            format!("{} is not allowed to change '{}': the database has rules", command.name, target.ns.db),
        )
        .with_hint("send the operations as insert, update and delete, so that what follows from them is written too"),
    };
    rights::refuse_behind(executor, command, line, &target, error).await
}

fn hint(kept: &ActiveRule) -> String {
    format!(
        "the rule could not be kept behind it; send insert, update and delete, or remove the rule first with `pleach drop {}`",
        kept.rule.name
    )
}

/// Fails if a definition would make a rule's collection one whose rule cannot be kept.
pub(super) async fn check(executor: &Arc<Executor>, context: &Context, op: &AdminOp) -> Result<()> {
    let rules = executor.rules();
    let rule = |ns: &Namespace| rules.of(ns).and_then(|local| local.named_by.first());
    let (ns, what) = match op {
        AdminOp::Create { ns, options } => match &options.other {
            _ if options.capped.is_some() => (ns, "a capped collection"),
            Some(other) if other.contains("timeseries") => (ns, "a time-series collection"),
            _ => return Ok(()),
        },
        AdminOp::CreateView { ns, .. } => (ns, "a view"),
        AdminOp::CollMod { ns, change } => return expires_unseen(&rules, ns, change),
        AdminOp::DropIndexes { ns, which } => {
            let unique: Vec<_> = unique_of(&rules, ns);
            if unique.is_empty() {
                return Ok(());
            }
            let mut own = Session::default();
            let mut at = Access { backend: &*executor.inner, session: &mut own, context };
            let there = expiry::indexes(&mut at, ns).await?;
            return keeps_unique(ns, which, &unique, &there);
        }
        _ => return Ok(()),
    };
    // MongoDB says that a name is taken.
    let Some(kept) = rule(ns) else { return Ok(()) };
    if exists(executor, context, ns).await? {
        return Ok(());
    }
    let message = format!("'{ns}' cannot be {what}: rule {} ({}) uses it", kept.rule.name, kept.rule.described());
    Err(Error::new(Code::OperationFailed, message).with_hint(format!(
        "make it an ordinary collection, or remove the rule first with `pleach drop {}`",
        kept.rule.name
    )))
}

/// Refuses that documents of a clustered collection go without a planned delete. Those of an index are taken over.
fn expires_unseen(rules: &Rules, ns: &Namespace, change: &Doc<'_>) -> Result<()> {
    let expires = change.get("expireAfterSeconds").is_some_and(|after| after.is_number());
    match rules.of(ns).and_then(|local| local.sourced.first()) {
        Some(kept) if expires => {
            let message = format!(
                "collMod is not allowed to let documents of '{ns}' expire: rule {} ({}) would not see them go",
                kept.rule.name,
                kept.rule.described()
            );
            let hint = "make an index with expireAfterSeconds instead: by that one Pleach deletes them itself";
            Err(Error::new(Code::OperationFailed, message).with_hint(hint))
        }
        _ => Ok(()),
    }
}

/// The unique indexes that rules need on a collection, so that a reference means one document.
fn unique_of(rules: &Rules, ns: &Namespace) -> Vec<(Arc<ActiveRule>, IndexNeed)> {
    let Some(local) = rules.of(ns) else { return Vec::new() };
    let of = |kept: &Arc<ActiveRule>| {
        let kept = kept.clone();
        kept.rule.needs().indexes.into_iter().map(move |needed| (kept.clone(), needed))
    };
    local.named_by.iter().flat_map(of).filter(|(_, needed)| needed.unique && needed.ns == *ns).collect()
}

/// Fails if a unique index that a rule needs is there, and would not be afterwards.
fn keeps_unique(
    ns: &Namespace,
    which: &Value<'_>,
    unique: &[(Arc<ActiveRule>, IndexNeed)],
    there: &[Doc<'static>],
) -> Result<()> {
    let (gone, kept): (Vec<_>, Vec<_>) = there.iter().partition(|index| is_meant(which, index));
    for (rule, needed) in unique {
        let serves = |index: &&Doc<'static>| install::serves(needed, index);
        if kept.iter().copied().any(|index| serves(&index)) {
            continue;
        }
        if let Some(index) = gone.iter().copied().find(|index| serves(index)) {
            let (index, rule) = (index.get("name").unwrap_or(Value::Missing), &rule.rule);
            let message = format!(
                "index '{}' of '{ns}' cannot be dropped: it keeps '{}' unique for rule {} ({})",
                index.as_str().unwrap_or_default(),
                needed.paths(),
                rule.name,
                rule.described()
            );
            return Err(Error::new(Code::OperationFailed, message).with_hint(format!(
                "make another unique index on it first, or remove the rule with `pleach drop {}`",
                rule.name
            )));
        }
    }
    Ok(())
}

/// Whether `dropIndexes` means an index: by its name, one of several names, its keys, or all but that of `_id`.
fn is_meant(which: &Value<'_>, index: &Doc<'_>) -> bool {
    let (name, key) = (index.get("name"), index.get("key"));
    let is_named = |wanted: &str| name.as_ref().and_then(Value::as_str) == Some(wanted);
    match which {
        Value::String(wanted) if wanted.as_str() == "*" => !is_named("_id_"),
        Value::String(wanted) => is_named(wanted.as_str()),
        Value::Array(wanted) => wanted.iter().any(|wanted| wanted.as_str().is_some_and(is_named)),
        Value::Document(wanted) => key == Some(Value::Document(wanted.borrow())),
        _ => false,
    }
}
