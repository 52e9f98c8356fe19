//! What users may do, as the server behind has said a moment ago: for what is looked at so often that a question each time would
//! cost too much.

use crate::execute::executor::Executor;
use crate::execute::rights::Rights;
use document::Result;
use document::backend::{Privileges, Relay};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A right that was taken away is relied on for so long; `mongos` does it for 30 seconds. One that was given is noticed at once.
const RELIED_ON: Duration = Duration::from_secs(10);

/// From so many on, old ones are forgotten whenever one is added.
const MANY: usize = 1_000;

/// When a user's privileges were asked for, and what they were; `None` if nobody is restricted.
type Answered = (Instant, Option<Arc<Privileges>>);

/// By user: connections of the same user may do the same.
#[derive(Default)]
pub(crate) struct PrivilegeCache(Mutex<HashMap<Arc<str>, Answered>>);

impl PrivilegeCache {
    fn find(&self, user: &Arc<str>) -> Option<Option<Arc<Privileges>>> {
        let known = self.0.lock();
        known.get(user).filter(|(asked, _)| asked.elapsed() < RELIED_ON).map(|(_, privileges)| privileges.clone())
    }

    fn keep(&self, user: Arc<str>, asked: Instant, privileges: Option<Arc<Privileges>>) {
        let mut known = self.0.lock();
        if known.len() >= MANY {
            known.retain(|_, (asked, _)| asked.elapsed() < RELIED_ON);
        }
        known.insert(user, (asked, privileges));
    }
}

/// The rights of the line's user, if they suffice: as they are remembered, or else as they are now. Fails with what `suffices` says
/// of the latter.
pub(crate) async fn rights(
    executor: &Executor,
    line: Option<&Arc<dyn Relay>>,
    command: &str,
    suffices: impl Fn(&Rights) -> Result<()> + Send + Sync,
) -> Result<Rights> {
    let Some(line) = line else { return Ok(Rights::unrestricted()) };
    let user = line.user();
    if let Some(privileges) = user.as_ref().and_then(|user| executor.privilege_cache.find(user)) {
        let rights = Rights::by(privileges, command);
        if suffices(&rights).is_ok() {
            return Ok(rights);
        }
    }
    let asked = Instant::now();
    let rights = Rights::of(&*executor.inner, Some(line), command).await?;
    if let Some(user) = user {
        executor.privilege_cache.keep(user, asked, rights.privileges().cloned());
    }
    suffices(&rights)?;
    Ok(rights)
}
