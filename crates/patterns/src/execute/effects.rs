//! What changed source documents mean for their hosts: the effects of all fields of a level, as one update per host (SEMANTICS R31),
//! as jobs where hosts are many or may be late (SEMANTICS R13), as deletes and refusals.

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::execute::changes::Changes;
use crate::execute::deltas::Following;
use crate::execute::host_updates::HostUpdates;
use crate::execute::{deferred, jobs, roll_up};
use crate::rule::{Delta, Effect, Effects, Field, Link, WhenDeleted, key};
use document::filter::Filter;
use document::op::{Capture, Change, Count, Delete, DeleteStatement, ReadOp, WriteOp};
use document::{Code, Doc, Error, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// So many hosts of one key are changed in the transaction; more are left to the outbox.
pub(crate) const MAX_HOSTS_IN_TRANSACTION: u64 = 1_000;

pub(super) async fn spread(attempt: &mut Attempt<'_>, level: &[Arc<ActiveRule>], changes: &mut Changes) -> Result<()> {
    let mut following = Following::default();
    for kept in level {
        let (Some(field), Some(link)) = (&kept.field, kept.rule.link()) else { continue };
        let mut effects = Effects::new();
        if changes.of(&link.source).is_empty() {
            continue;
        }
        // A late change has a job, whatever is counted already.
        let adds = link.create && link.lag.is_none();
        let state = match adds {
            true => roll_up::state(attempt, kept).await?,
            false => kept.state.clone(),
        };
        for changed in changes.of(&link.source) {
            // Seeding counts this child later (SEMANTICS R2).
            if adds && !state.has_gathered(&id_of(&changed.change)) {
                continue;
            }
            field.react(&changed.change, &attempt.context.env, &mut effects)?;
        }
        match field.fences().change {
            // Both sides write the host: no fence, unless it stays as it is.
            None => following.add(attempt, (kept, &state), field, link, effects).await?,
            Some(_) => {
                let effects = with_existing_hosts(attempt, kept, link, merged(field, effects)?).await?;
                for (key, effect) in effects {
                    add_change(attempt, kept, field, (key, effect), &mut following.updates).await?;
                }
            }
        }
    }
    following.write(attempt, changes).await
}

/// The `_id` of a changed source. A change of one of several documents in a stored one has an `id` of its own.
fn id_of(change: &Change) -> Value<'static> {
    let of = |document: &Option<Doc<'static>>| document.as_ref()?.get("_id");
    of(&change.before).or_else(|| of(&change.after)).unwrap_or_else(|| change.id.clone())
}

/// Deletes hosts with their sources, behind everything else that follows from the changes so far: what is read of sources then
/// holds exactly these changes. What the deletes mean comes next.
pub(super) async fn cascade(attempt: &mut Attempt<'_>) -> Result<()> {
    for (kept, key) in std::mem::take(&mut attempt.doomed) {
        delete(attempt, &kept, &key).await?;
    }
    Ok(())
}

/// The effects on one key as one. A source that appears stands for one that had the key before.
fn merged(field: &Arc<dyn Field>, effects: Effects) -> Result<Effects> {
    let mut by_key = Effects::new();
    let mut places: HashMap<Vec<u8>, usize> = HashMap::new();
    for (key, effect) in effects {
        let at = *places.entry(key::bytes(&key)).or_insert(by_key.len());
        match by_key.get_mut(at).map(|(_, known)| known) {
            None => by_key.push((key, effect)),
            Some(known) => {
                *known = match (std::mem::replace(known, Effect::Nothing), effect) {
                    (Effect::Update(first), Effect::Update(second)) => Effect::Update(field.combine(first, &second)?),
                    (Effect::Update(delta), _) | (_, Effect::Update(delta)) => Effect::Update(delta),
                    (Effect::Refuse, _) | (_, Effect::Refuse) => Effect::Refuse,
                    (Effect::Delete, _) | (_, Effect::Delete) => Effect::Delete,
                    (_, effect) => effect,
                }
            }
        }
    }
    Ok(by_key)
}

/// Of many sources that appear, those that hosts already refer to: most often none, which one read tells.
async fn with_existing_hosts(
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    link: &Link,
    all: Effects,
) -> Result<Effects> {
    let appears = |effect: &Effect| matches!(effect, Effect::Update(Delta::Set { appeared: true, .. }));
    if all.len() < 2 || !all.iter().all(|(_, effect)| appears(effect)) {
        return Ok(all);
    }
    let mut keys = Vec::with_capacity(all.len());
    for (key, _) in &all {
        attempt.exclusive(kept, key).await?;
        keys.push(key.clone());
    }
    let path = link.local.path.dotted();
    match count(attempt, kept, Filter::among(&path, keys), Some(1)).await? {
        0 => Ok(Effects::new()),
        _ => Ok(all),
    }
}

/// A source that changed under the fence of its key.
async fn add_change(
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    field: &Arc<dyn Field>,
    (key, effect): (Value<'static>, Effect),
    updates: &mut HostUpdates,
) -> Result<()> {
    let Some(link) = field.link() else { return Ok(()) };
    attempt.exclusive(kept, &key).await?;
    let later = match &effect {
        Effect::Nothing => return Ok(()),
        Effect::Delete => deferred::JobAction::Delete,
        Effect::Update(_) | Effect::Look(_) | Effect::Ask(_) | Effect::Refuse => deferred::JobAction::Update,
    };
    if link.lag.is_some() && link.when_deleted != WhenDeleted::Reject {
        return jobs::enqueue(attempt, kept, &key, later).await;
    }
    let refuses = matches!(effect, Effect::Refuse);
    let limit = (!refuses).then_some(MAX_HOSTS_IN_TRANSACTION + 1);
    let hosts = count(attempt, kept, field.hosts(&key), limit).await?;
    match effect {
        _ if hosts == 0 => Ok(()),
        Effect::Refuse => Err(rejected(kept, link, &key, hosts)),
        _ if hosts > MAX_HOSTS_IN_TRANSACTION => jobs::enqueue(attempt, kept, &key, later).await,
        Effect::Update(delta) => updates.add(kept, field, key, delta),
        Effect::Delete => {
            attempt.doomed.push((kept.clone(), key));
            Ok(())
        }
        Effect::Nothing | Effect::Look(_) | Effect::Ask(_) => Ok(()),
    }
}

/// How many hosts match.
async fn count(attempt: &mut Attempt<'_>, kept: &Arc<ActiveRule>, filter: Filter, limit: Option<u64>) -> Result<u64> {
    let count = Count { ns: kept.rule.host.clone(), filter, skip: 0, limit, hint: None };
    let rows = attempt.read(std::slice::from_ref(kept), ReadOp::Count(count)).await?;
    let n = rows.first().and_then(|row: &Doc<'static>| row.get("n")).and_then(|n| n.as_i64_exact());
    Ok(n.map_or(0, |n| u64::try_from(n).unwrap_or_default()))
}

fn rejected(kept: &ActiveRule, link: &Link, key: &Value<'_>, hosts: u64) -> Error {
    let (documents, refer) = if hosts == 1 { ("document", "refers") } else { ("documents", "refer") };
    let message = format!(
        "{} {documents} of {} {refer} to the document of {} with {}: {}; rule {} says when_deleted: reject",
        hosts,
        kept.rule.host.collection,
        link.source.collection,
        link.foreign,
        document::value::show::element(key),
        kept.rule.name,
    );
    Error::new(Code::OperationFailed, message).with_hint(format!(
        "delete or re-point them first: {{ {}: {} }}",
        link.local.path,
        document::value::show::element(key)
    ))
}

async fn delete(attempt: &mut Attempt<'_>, kept: &Arc<ActiveRule>, key: &Value<'_>) -> Result<()> {
    let Some(field) = &kept.field else { return Ok(()) };
    let ns = kept.rule.host.clone();
    let capture = attempt.rules.of(&ns).map_or(Capture::Nothing, |local| local.capture.clone());
    let op = WriteOp::Delete(Delete::of(ns.clone(), vec![DeleteStatement::all(field.hosts(key))]));
    let written = attempt.derive(std::slice::from_ref(kept), &op, &capture).await?;
    attempt.cascaded.derived(&ns, written.changes);
    Ok(())
}
