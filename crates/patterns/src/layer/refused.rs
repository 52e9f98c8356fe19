//! What is refused about whole collections of rules, and of Pleach itself (SEMANTICS R21).

use crate::active::{ActiveRule, Rules};
use crate::execute::executor::Executor;
use crate::rule::names;
use document::backend::Session;
use document::filter::Filter;
use document::op::{AdminOp, Context, Namespace};
use document::{Code, Error, Result, Value};
use std::sync::Arc;

/// Fails if a rule, or Pleach itself, needs the collection.
pub(crate) async fn may_drop(executor: &Arc<Executor>, context: &Context, rules: &Rules, ns: &Namespace) -> Result<()> {
    refuse_bookkeeping(ns)?;
    match present(executor, context, &others_of(rules, ns)).await? {
        Some((kept, other)) => Err(refused("drop", ns, &kept, &other)),
        None => Ok(()),
    }
}

pub(crate) fn refuse_bookkeeping(ns: &Namespace) -> Result<()> {
    if names::is_bookkeeping(ns) { Err(bookkeeping(ns)) } else { Ok(()) }
}

pub(crate) fn refused(what: &str, ns: &Namespace, kept: &ActiveRule, other: &Namespace) -> Error {
    let rule = &kept.rule.name;
    let is_shape = kept.rule.shape().is_some() || kept.rule.outlier().is_some();
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

pub(crate) fn other_of(kept: &ActiveRule, ns: &Namespace) -> Namespace {
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

pub(crate) async fn exists(executor: &Executor, context: &Context, ns: &Namespace) -> Result<bool> {
    let list = AdminOp::ListCollections {
        db: ns.db.to_string(),
        filter: Filter::equality("name", &Value::from(&*ns.collection)),
        name_only: true,
    };
    Ok(!executor.inner.admin(&mut Session::default(), context, list).await?.is_empty())
}

/// A write of a client to a collection of ours.
pub(crate) fn bookkeeping(ns: &Namespace) -> Error {
    Error::new(Code::InvalidNamespace, format!("'{ns}' belongs to Pleach: clients may read it, but not write to it"))
        .with_hint("use the `pleach` commands (apply, drop, repair) instead")
}
