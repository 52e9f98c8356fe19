//! Copies that were read lately, each with the version of its fence (SEMANTICS R1): an insert may take one without reading the
//! source again, where the flight that it leaves with fails if somebody has had the fence exclusively since. So every change that
//! goes through Pleach, in whichever process, is seen. One made behind its back has no fence: for its sake what was read is
//! relied on for a moment only.

use crate::active::ActiveRule;
use crate::execute::attempt::Attempt;
use crate::rule::fence::fence_key;
use crate::rule::{Rows, WhenChanged, key};
use document::backend::{FenceKey, FenceVersion};
use document::{Doc, Result, Value};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// So long a copy is relied on.
const FRESH: Duration = Duration::from_millis(200);
/// A source that is asked for again within this time is expected to be asked for once more.
const WARM: Duration = Duration::from_secs(1);
/// So many sources of a rule are remembered before all are forgotten …
const MANY: usize = 10_000;
/// … none with a copy larger than this.
const LARGEST: usize = 4 << 10;
/// Who asks for more sources at once reads them: one command is cheaper than as many conditions.
const TOGETHER: usize = 16;

/// What a rule has read lately, by user and key. It goes with the rules that it was read under.
///
/// What was read for one user fills no insert of another, who may not be allowed to read the source (SEMANTICS R37).
#[derive(Debug, Default)]
pub(crate) struct CopyCache {
    users: Mutex<HashMap<User, HashMap<Vec<u8>, Source>>>,
}

/// The user of a line; `None` where nobody authenticates.
type User = Option<Arc<str>>;

#[derive(Debug)]
struct Source {
    asked: Instant,
    copy: Option<(Doc<'static>, FenceVersion)>,
}

impl CopyCache {
    fn find(&self, user: &User, key: &[u8]) -> Option<(Doc<'static>, FenceVersion)> {
        let users = self.users.lock();
        let source = users.get(user)?.get(key)?;
        source.copy.clone().filter(|_| source.asked.elapsed() < FRESH)
    }

    /// Notes that a source is read; says whether it was a short time ago too.
    fn is_warm(&self, user: &User, key: &[u8]) -> bool {
        let now = Instant::now();
        let mut users = self.users.lock();
        if users.values().map(HashMap::len).sum::<usize>() >= MANY {
            users.clear();
        }
        let sources = users.entry(user.clone()).or_default();
        let before = sources.insert(key.to_vec(), Source { asked: now, copy: None });
        before.is_some_and(|before| now.duration_since(before.asked) < WARM)
    }

    fn keep(&self, user: &User, key: Vec<u8>, copy: Doc<'static>, version: FenceVersion, asked: Instant) {
        if copy.as_bytes().len() <= LARGEST {
            let mut users = self.users.lock();
            users.entry(user.clone()).or_default().insert(key, Source { asked, copy: Some((copy, version)) });
        }
    }

    /// The source is about to change, or has changed.
    pub(crate) fn forget(&self, key: &[u8]) {
        for sources in self.users.lock().values_mut() {
            if let Some(source) = sources.get_mut(key) {
                source.copy = None;
            }
        }
    }
}

/// The user that the run acts for.
fn user(run: &Attempt<'_>) -> User {
    run.session.relay.as_ref().and_then(|relay| relay.user())
}

/// The copies of all these sources, if each was read lately: their fences are then passed at the versions of that time.
pub(crate) fn recall(run: &mut Attempt<'_>, kept: &Arc<ActiveRule>, keys: &[Value<'static>]) -> Option<Rows> {
    if !run.relies || keys.len() > TOGETHER {
        return None;
    }
    let user = user(run);
    let mut copies = Rows::default();
    let mut fences = Vec::with_capacity(keys.len());
    for value in keys {
        let (copy, version) = kept.recent.find(&user, &key::bytes(value))?;
        copies.insert(value, copy);
        fences.push(version);
    }
    for (value, version) in keys.iter().zip(fences) {
        run.shared_at(kept, value.clone(), version);
    }
    Some(copies)
}

/// Remembers copies that were just read, if they are read often: their versions are read in the same transaction.
pub(crate) async fn remember(
    run: &mut Attempt<'_>,
    kept: &Arc<ActiveRule>,
    keys: &[Value<'static>],
    copies: &Rows,
) -> Result<()> {
    let asked = Instant::now();
    // A frozen copy's source may change without a fence.
    let is_frozen = kept.rule.link().is_some_and(|link| link.when_changed == WhenChanged::Keep);
    if !run.relies || keys.len() > TOGETHER || is_frozen {
        return Ok(());
    }
    let user = user(run);
    let is_warm =
        |value: &&Value<'static>| kept.recent.is_warm(&user, &key::bytes(value)) && copies.get(value).is_some();
    let warm: Vec<&Value<'static>> = keys.iter().filter(is_warm).collect();
    let Some(pipelining) = run.executor.inner.pipelining().filter(|_| !warm.is_empty()) else { return Ok(()) };
    let fences: Vec<FenceKey> = warm.iter().map(|value| fence_key(&kept.rule, value)).collect();
    let versions = pipelining.versions(run.session, run.context, &fences).await?;
    for (value, version) in warm.into_iter().zip(versions) {
        match (version, copies.get(value)) {
            (Some(version), Some(copy)) => kept.recent.keep(&user, key::bytes(value), copy.clone(), version, asked),
            // Nobody has had this fence to himself yet: that gives it its first version.
            _ => run.exclusive(kept, value).await?,
        }
    }
    Ok(())
}
