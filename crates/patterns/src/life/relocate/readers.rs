//! Clients that are between two batches of a cursor when its collection is taken away: MongoDB ends such a cursor with an error,
//! so those who go on reading are given the time to come to the end.

use crate::life::{CatalogRule, Life};
use document::Result;
use document::op::Namespace;
use std::sync::Weak;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(20);

/// The collections that a rule's readers read, under all their names.
pub(super) fn names(entry: &CatalogRule, renames: &[(String, String)]) -> Vec<Namespace> {
    let renamed = renames.iter().flat_map(|(from, to)| [from, to]).map(|name| Namespace::new(&entry.db, name));
    let stored = entry.places.iter().map(|place| place.stored.clone());
    [entry.rule.host.clone()].into_iter().chain(stored).chain(renamed).collect()
}

/// Waits for the cursors that are open now, not longer than so: one that nobody reads any more stops nothing.
pub(super) async fn wait_for_readers(life: &Life, names: &[Namespace], limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    let own_cursors = life.readers.of(names);
    let is_open = |reader: &Weak<()>| reader.strong_count() > 0;
    let mut behind = open(life, names).await?;
    while (own_cursors.iter().any(is_open) || !behind.is_empty()) && Instant::now() < end {
        life.check_stopped()?;
        life.wait_for_stop(PAUSE).await;
        if !behind.is_empty() {
            let open = open(life, names).await?;
            behind.retain(|id| open.contains(id));
        }
    }
    Ok(())
}

/// The cursors that are open in the server behind.
async fn open(life: &Life, names: &[Namespace]) -> Result<Vec<i64>> {
    match life.backend.remote() {
        Some(remote) => remote.open_cursors(names).await,
        None => Ok(Vec::new()),
    }
}
