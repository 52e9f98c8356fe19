//! The derived fields of a host that is written: what an insert puts into the document before it is stored, and what an
//! update, replacement or upsert must have restored or filled behind it (SEMANTICS R11, R31).

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::evaluation::{Basis, Evaluation, Host, evaluate};
use crate::execute::lifted_array;
use crate::execute::recent_copies;
use crate::execute::replaced::originals::{Written, keep_written};
use crate::fields::state_last;
use crate::rule::{ClientWrites, Field, Rows, State};
use document::backend::Mode;
use document::filter::Filter;
use document::op::{Capture, Change, Namespace, UpdateOp, UpdateStatement, WriteOp};
use document::update::Update;
use document::value::{Path, order};
use document::{Doc, Env, Result, Value};
use std::sync::Arc;

/// Whether the hosts are stored already: then what is read of the children includes what the client just wrote.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    BeforeTheWrite,
    AfterTheWrite,
}

/// Makes the fields of `rules` right in hosts that are not stored yet, or as they are stored.
pub(crate) async fn complete(
    attempt: &mut Attempt<'_>,
    rules: &[Arc<ActiveRule>],
    hosts: &mut [Host],
    when: When,
) -> Result<()> {
    for kept in rules {
        let Some(field) = &kept.field else { continue };
        for host in &mut *hosts {
            lifted_array::check(&kept.rule, host)?;
        }
        if kept.lifting && kept.rule.lifts_own_field() {
            continue;
        }
        let given: Vec<Value<'static>> = hosts.iter().map(|host| at(&host.after, &kept.rule.field)).collect();
        one_field(attempt, kept, field, hosts, when).await?;
        for (host, given) in hosts.iter().zip(given) {
            check_client_value(kept, host, &given)?;
        }
    }
    for host in hosts {
        host.after = state_last::with_state_last(std::mem::replace(&mut host.after, Doc::empty()));
    }
    Ok(())
}

/// One field of all hosts: what they need is read together.
async fn one_field(
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    field: &Arc<dyn Field>,
    hosts: &mut [Host],
    when: When,
) -> Result<()> {
    // Of a roll-up that is being seeded: children that are counted would have made the host.
    let is_uncounted = kept.makes_hosts() && kept.state != State::On;
    let basis = if is_uncounted { Basis::Uncounted } else { Basis::Written };
    let env = &attempt.context.env;
    evaluate(&**field, basis, hosts, env, |keys| read(attempt, kept, field, keys, when)).await
}

/// The rows of some keys, fenced (SEMANTICS R1): exclusive fences are passed first, shared ones at the end.
async fn read(
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    field: &Arc<dyn Field>,
    keys: Vec<Value<'static>>,
    when: When,
) -> Result<Rows> {
    let is_shared = field.fences().evaluate == Mode::Shared;
    if is_shared {
        if let Some(recalled) = recent_copies::recall(attempt, kept, &keys) {
            return Ok(recalled);
        }
    } else {
        for value in &keys {
            attempt.exclusive(kept, value).await?;
        }
    }
    let fetch = attempt.fetch_of(&**field);
    let mut rows = Rows::default();
    for some in keys.chunks(field.lookup().keys_per_read(keys.len(), fetch)) {
        let documents = attempt.read(std::slice::from_ref(kept), field.query(some, fetch)?).await?;
        rows.add(&**field, fetch, &documents);
    }
    if is_shared {
        recent_copies::remember(attempt, kept, &keys, &rows).await?;
        keys.into_iter().for_each(|value| attempt.shared_later(kept, value));
    } else if when == When::AfterTheWrite {
        keys.iter().for_each(|own| attempt.note_evaluated(kept, own));
    }
    Ok(rows)
}

/// New documents with the fields that are computed from themselves alone; `None` if they need more than that.
pub(crate) fn expressed(rules: &[Arc<ActiveRule>], documents: &[Doc<'static>], env: &Env) -> Option<Vec<Doc<'static>>> {
    let mut hosts: Vec<Host> = documents.iter().map(|doc| Host { before: None, after: doc.clone() }).collect();
    for kept in rules {
        let field = kept.field.as_ref()?;
        if field.link().is_some() || kept.rule.client_writes == ClientWrites::Refuse {
            return None;
        }
        let given: Vec<Value<'static>> = hosts.iter().map(|host| at(&host.after, &kept.rule.field)).collect();
        let evaluation = Evaluation::begin(&**field, Basis::Written, &mut hosts).ok()?;
        evaluation.finish(&mut hosts, &Rows::default(), env).ok()?;
        for (host, given) in hosts.iter().zip(given) {
            let _counted = check_client_value(kept, host, &given);
        }
    }
    Some(hosts.into_iter().map(|host| host.after).collect())
}

/// Counts, or refuses, a client's value that differs from ours.
fn check_client_value(kept: &Arc<ActiveRule>, host: &Host, given: &Value<'_>) -> Result<()> {
    let unchanged = host.before.as_ref().is_some_and(|before| at(before, &kept.rule.field) == *given);
    if given.is_missing() || unchanged || order::equal(given, &at(&host.after, &kept.rule.field)) {
        return Ok(());
    }
    if kept.rule.client_writes == ClientWrites::Refuse {
        return Err(kept.rule.refusal(&kept.rule.field));
    }
    kept.count_overridden();
    Ok(())
}

/// Puts right what the client's write left in its hosts, and what derived changes mean for the same document: one update
/// for each document and level.
pub(crate) async fn restore(attempt: &mut Attempt<'_>, level: &[Arc<ActiveRule>], changes: &mut Changes) -> Result<()> {
    let mut done: Vec<&Namespace> = Vec::new();
    for kept in level {
        let ns = &kept.rule.host;
        if done.contains(&ns) || changes.of(ns).is_empty() {
            continue;
        }
        done.push(ns);
        let rules: Vec<Arc<ActiveRule>> = level.iter().filter(|other| other.rule.host == *ns).cloned().collect();
        let mut ids = Vec::new();
        let mut hosts = Vec::new();
        for changed in changes.of(ns).iter().filter(|changed| !changed.complete) {
            if let Some(after) = &changed.change.after {
                let before = if changed.made { Some(after.clone()) } else { changed.change.before.clone() };
                ids.push((changed.change.id.clone(), after.clone()));
                hosts.push(Host { before, after: after.clone() });
            }
        }
        put_right(attempt, ns, &rules, &ids, hosts, changes).await?;
    }
    Ok(())
}

/// Fills the fields of hosts that a roll-up has just made, but for those of roll-ups: they came with it.
pub(super) async fn fill_made(
    attempt: &mut Attempt<'_>,
    ns: &Namespace,
    made: &[Change],
    changes: &mut Changes,
) -> Result<()> {
    let Some(local) = attempt.rules.of(ns).cloned().filter(|_| !made.is_empty()) else { return Ok(()) };
    let rules: Vec<Arc<ActiveRule>> = local.hosted.iter().filter(|kept| !kept.makes_hosts()).cloned().collect();
    let with_after = made.iter().filter_map(|change| Some((change.id.clone(), change.after.clone()?)));
    let ids: Vec<(Value<'static>, Doc<'static>)> = with_after.collect();
    let hosts = ids.iter().map(|(_, after)| Host { before: None, after: after.clone() }).collect();
    put_right(attempt, ns, &rules, &ids, hosts, changes).await
}

/// Makes the fields of `rules` right in hosts that are stored as `ids` has them.
async fn put_right(
    attempt: &mut Attempt<'_>,
    ns: &Namespace,
    rules: &[Arc<ActiveRule>],
    ids: &[(Value<'static>, Doc<'static>)],
    mut hosts: Vec<Host>,
    changes: &mut Changes,
) -> Result<()> {
    complete(attempt, rules, &mut hosts, When::AfterTheWrite).await?;
    let written: Vec<Written<'_>> = ids
        .iter()
        .zip(&hosts)
        .map(|((id, _), host)| Written { id: id.clone(), before: host.before.as_ref(), after: &host.after })
        .collect();
    keep_written(attempt, ns, &written).await?;
    let mut statements = Vec::new();
    for ((id, stored), host) in ids.iter().zip(&hosts) {
        if let Some(update) = difference(stored, &host.after, rules)? {
            let filter = Filter::equality("_id", id);
            statements.push(UpdateStatement { filter, update, multi: false, upsert: false, hint: None });
        }
    }
    if statements.is_empty() {
        return Ok(());
    }
    let capture = attempt.rules.of(ns).map_or(Capture::Nothing, |local| local.capture.clone());
    let op = WriteOp::Update(UpdateOp::of(ns.clone(), statements));
    let written = attempt.derive(rules, &op, &capture).await?;
    changes.derived(ns, written.changes);
    Ok(())
}

/// The update that makes what the rules own in `stored` as it is in `wanted`; `None` if it is so already. Whole fields of the first
/// level: a path may lead through an array, or through what the client made of it.
pub(crate) fn difference(stored: &Doc<'_>, wanted: &Doc<'_>, rules: &[Arc<ActiveRule>]) -> Result<Option<Update>> {
    let owned: Vec<Path> = rules.iter().flat_map(|kept| kept.rule.owned()).collect();
    state_last::difference(stored, wanted, owned.iter().map(Path::first))
}

/// The value at a path, or the array on the way to it.
pub(crate) fn at(doc: &Doc<'_>, path: &Path) -> Value<'static> {
    document::value::expand::walk(doc, &path.parts).0.into_owned()
}
