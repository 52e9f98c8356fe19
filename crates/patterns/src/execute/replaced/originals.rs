//! Hosts that are changed while a rule of theirs is being seeded: what they had before the rule is kept in the same transaction,
//! before the walk comes to them (SEMANTICS R2). Once the rules are on this costs nothing.

use crate::active::ActiveRule;
use crate::execute::access::{Access, find};
use crate::execute::attempt::Attempt;
use crate::execute::replaced::{Keeping, Replaced, keep_some};
use crate::rule::{Rule, State, names};
use document::filter::Filter;
use document::op::Namespace;
use document::{Doc, Result, Value};
use std::sync::Arc;

/// The rules of a namespace's hosts that are not on, as far as is known here.
fn pending(attempt: &Attempt<'_>, ns: &Namespace) -> Vec<(Arc<Rule>, i64)> {
    let Some(local) = attempt.rules.of(ns) else { return Vec::new() };
    local.hosted.iter().filter(|kept| is_pending(kept)).map(|kept| (kept.rule.clone(), kept.epoch)).collect()
}

/// Whether what the rule's hosts had is still being kept: every write of theirs is then a plan.
pub(crate) fn is_pending(kept: &ActiveRule) -> bool {
    kept.state != State::On && kept.epoch > 0
}

/// What the catalog says of a rule, as the transaction sees it.
pub(crate) async fn catalog_row(attempt: &mut Attempt<'_>, kept: &ActiveRule) -> Result<Option<Doc<'static>>> {
    attempt.send().await?;
    let retry = attempt.session.retry.take();
    let row = {
        let mut at =
            Access { backend: &*attempt.executor.inner, session: &mut *attempt.session, context: attempt.context };
        at.one(&names::catalog(&kept.rule.host.db), &Value::from(&*kept.rule.name)).await
    };
    attempt.session.retry = retry;
    row
}

/// Keeps what hosts had that a derived statement is about to change.
pub(crate) async fn keep_matching(attempt: &mut Attempt<'_>, ns: &Namespace, filters: &[Filter]) -> Result<()> {
    let rules = pending(attempt, ns);
    if rules.is_empty() || filters.is_empty() {
        return Ok(());
    }
    attempt.send().await?;
    let retry = attempt.session.retry.take();
    let kept = async {
        let mut at =
            Access { backend: &*attempt.executor.inner, session: &mut *attempt.session, context: attempt.context };
        let keeping = Keeping::unfinished(&mut at, &rules).await?;
        if keeping.is_empty() {
            return Ok(());
        }
        let mut hosts = Vec::new();
        for filter in filters {
            hosts.extend(at.find(find(ns, filter.clone())).await?);
        }
        let hosts: Vec<Replaced<'_>> = hosts
            .iter()
            .map(|host| Replaced { id: host.get("_id").unwrap_or(Value::Null), before: Some(host) })
            .collect();
        keep_some(&mut at, &keeping, &hosts).await
    }
    .await;
    attempt.session.retry = retry;
    kept
}

/// A host that a client's write makes or changes: its `_id`, as it was, and as it becomes.
pub(crate) struct Written<'h> {
    pub(crate) id: Value<'static>,
    pub(crate) before: Option<&'h Doc<'static>>,
    pub(crate) after: &'h Doc<'static>,
}

/// The same for hosts that a client's write changes at the paths of such rules, or makes.
pub(crate) async fn keep_written(attempt: &mut Attempt<'_>, ns: &Namespace, hosts: &[Written<'_>]) -> Result<()> {
    let rules = pending(attempt, ns);
    if rules.is_empty() || hosts.is_empty() {
        return Ok(());
    }
    attempt.send().await?;
    let retry = attempt.session.retry.take();
    let kept = async {
        let mut at =
            Access { backend: &*attempt.executor.inner, session: &mut *attempt.session, context: attempt.context };
        for keeping in Keeping::unfinished(&mut at, &rules).await? {
            let is_changed = |host: &&Written<'_>| {
                host.before
                    .is_none_or(|before| keeping.record(before).as_bytes() != keeping.record(host.after).as_bytes())
            };
            let changed: Vec<Replaced<'_>> = hosts
                .iter()
                .filter(is_changed)
                .map(|host| Replaced { id: host.id.clone(), before: host.before })
                .collect();
            keep_some(&mut at, std::slice::from_ref(&keeping), &changed).await?;
        }
        Ok(())
    }
    .await;
    attempt.session.retry = retry;
    kept
}
