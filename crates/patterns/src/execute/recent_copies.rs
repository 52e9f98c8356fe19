//! Copies that were read lately, for a plan that may rely on them: taken from, and put into, the rule's
//! [`CopyCache`](crate::active::copy_cache::CopyCache).

use crate::active::ActiveRule;
use crate::active::copy_cache::User;
use crate::execute::attempt::Attempt;
use crate::rule::fence::fence_key;
use crate::rule::{Rows, WhenChanged, key};
use document::backend::FenceKey;
use document::{Result, Value};
use std::sync::Arc;
use std::time::Instant;

/// More sources at once are read: one command is cheaper than as many conditions.
const TOGETHER: usize = 16;

/// The user that the run acts for.
fn user(attempt: &Attempt<'_>) -> User {
    attempt.session.relay.as_ref().and_then(|relay| relay.user())
}

/// The copies of all these sources, if each was read lately: their fences are then passed at the versions of that time.
pub(crate) fn recall(attempt: &mut Attempt<'_>, kept: &Arc<ActiveRule>, keys: &[Value<'static>]) -> Option<Rows> {
    if !attempt.relies || keys.len() > TOGETHER {
        return None;
    }
    let user = user(attempt);
    let mut copies = Rows::default();
    let mut fences = Vec::with_capacity(keys.len());
    for value in keys {
        let (copy, version) = kept.recent.find(&user, &key::bytes(value))?;
        copies.insert(value, copy);
        fences.push(version);
    }
    for (value, version) in keys.iter().zip(fences) {
        attempt.shared_at(kept, value.clone(), version);
    }
    Some(copies)
}

/// Remembers copies that were just read, if they are read often: their versions are read in the same transaction.
pub(crate) async fn remember(
    attempt: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    keys: &[Value<'static>],
    copies: &Rows,
) -> Result<()> {
    let asked = Instant::now();
    // A frozen copy's source may change without a fence.
    let is_frozen = kept.rule.link().is_some_and(|link| link.when_changed == WhenChanged::Keep);
    if !attempt.relies || keys.len() > TOGETHER || is_frozen {
        return Ok(());
    }
    let user = user(attempt);
    let is_warm =
        |value: &&Value<'static>| kept.recent.is_warm(&user, &key::bytes(value)) && copies.get(value).is_some();
    let warm: Vec<&Value<'static>> = keys.iter().filter(is_warm).collect();
    let Some(pipelining) = attempt.executor.inner.pipelining().filter(|_| !warm.is_empty()) else { return Ok(()) };
    let fences: Vec<FenceKey> = warm.iter().map(|value| fence_key(&kept.rule, value)).collect();
    let versions = pipelining.versions(attempt.session, attempt.context, &fences).await?;
    for (value, version) in warm.into_iter().zip(versions) {
        match (version, copies.get(value)) {
            (Some(version), Some(copy)) => kept.recent.keep(&user, key::bytes(value), copy.clone(), version, asked),
            // Nobody has had this fence to himself yet: that gives it its first version.
            _ => attempt.exclusive(kept, value).await?,
        }
    }
    Ok(())
}
