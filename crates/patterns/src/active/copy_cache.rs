//! Copies that were read lately, each with the version of its fence (SEMANTICS R1): an insert may take one without reading the
//! source again, where the flight that it leaves with fails if somebody has had the fence exclusively since. So every change that
//! goes through Pleach, in whichever process, is seen. One made behind its back has no fence: for its sake what was read is
//! relied on for a moment only.

use document::Doc;
use document::backend::FenceVersion;
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

/// What a rule has read lately, by user and key. It goes with the rules that it was read under.
///
/// What was read for one user fills no insert of another, which may not be allowed to read the source (SEMANTICS R37).
#[derive(Debug, Default)]
pub(crate) struct CopyCache {
    users: Mutex<HashMap<User, HashMap<Vec<u8>, Source>>>,
}

/// The user of a line; `None` where nobody authenticates.
pub(crate) type User = Option<Arc<str>>;

#[derive(Debug)]
struct Source {
    asked: Instant,
    copy: Option<(Doc<'static>, FenceVersion)>,
}

impl CopyCache {
    pub(crate) fn find(&self, user: &User, key: &[u8]) -> Option<(Doc<'static>, FenceVersion)> {
        let users = self.users.lock();
        let source = users.get(user)?.get(key)?;
        source.copy.clone().filter(|_| source.asked.elapsed() < FRESH)
    }

    /// Notes that a source is read; says whether it was a short time ago too.
    pub(crate) fn is_warm(&self, user: &User, key: &[u8]) -> bool {
        let now = Instant::now();
        let mut users = self.users.lock();
        if users.values().map(HashMap::len).sum::<usize>() >= MANY {
            users.clear();
        }
        let sources = users.entry(user.clone()).or_default();
        let before = sources.insert(key.to_vec(), Source { asked: now, copy: None });
        before.is_some_and(|before| now.duration_since(before.asked) < WARM)
    }

    pub(crate) fn keep(&self, user: &User, key: Vec<u8>, copy: Doc<'static>, version: FenceVersion, asked: Instant) {
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
