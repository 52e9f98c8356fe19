//! The reconciler: brings every rule from the state it is in to where it should be, one after the other.

use crate::execute::access::Access;
use crate::execute::gate::Point;
use crate::life::{CatalogRule, Life, catalog, lifecycle};
use crate::rule::state::State;
use document::Result;
use document::backend::Session;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long it leaves a rule alone that failed.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

/// Runs until the life is stopped.
pub(crate) async fn keep(life: Arc<Life>) {
    while !life.is_stopped() {
        let is_tidy = tidy(&life).await;
        let Some(entry) = next(&life) else {
            let waits = !is_tidy || life.entries().iter().any(|entry| entry.row.state == State::Restoring);
            let limit = if waits { AFTER_FAILURE } else { Duration::MAX };
            let _woken = tokio::time::timeout(limit, life.wake_reconciler.notified()).await;
            continue;
        };
        let asked = life.bring_on_requests.load(Ordering::Relaxed);
        let outcome = advance(&life, &entry).await;
        let problem = outcome.err().filter(|_| !life.is_stopped()).map(|error| error.to_string());
        let failed = problem.is_some();
        if let Some(problem) = &problem
            && entry.problem.as_ref() != Some(problem)
        {
            tracing::warn!(rule = &*entry.rule.name, state = entry.row.state.name(), %problem, "a rule does not get on");
        }
        life.note_problem(&entry, problem, asked);
        if failed {
            life.wait_for_stop(AFTER_FAILURE).await;
        }
    }
}

/// Removes indexes that had to stay while another process changed rules. Returns whether all are gone.
async fn tidy(life: &Life) -> bool {
    let databases = life.untidy.lock().clone();
    let mut is_tidy = true;
    for db in databases {
        is_tidy &= life.tidy_again(&db).await.unwrap_or_else(|error| {
            tracing::debug!(%error, db, "indexes that no rule needs could not be removed yet");
            false
        });
    }
    is_tidy
}

/// The first rule that is not where it should be. What others are computed from comes first (see [`Life::sort`]); what
/// failed is tried again after the rest.
fn next(life: &Life) -> Option<CatalogRule> {
    let waits = |entry: &CatalogRule| entry.row.state == State::Restoring && life.is_restoring(&entry.db);
    let is_unfinished = |entry: &CatalogRule| entry.row.state != State::On && life.is_ours(&entry.row) && !waits(entry);
    let unfinished = || life.entries().into_iter().filter(is_unfinished);
    unfinished().find(|entry| entry.problem.is_none()).or_else(|| unfinished().next())
}

/// The same once, for a caller that waits for it.
pub(crate) async fn bring_on(life: &Life) -> Result<()> {
    while let Some(entry) = next(life) {
        life.check_stopped()?;
        advance(life, &entry).await?;
    }
    Ok(())
}

async fn advance(life: &Life, entry: &CatalogRule) -> Result<()> {
    if entry.row.state == State::Restoring {
        return crate::life::restore::wake(life, entry).await;
    }
    lifecycle::of(&entry.rule).advance(life, entry).await
}

/// Writes down that the rule has come to another state, unless somebody has changed it meanwhile.
pub(super) async fn set_state(life: &Life, entry: &CatalogRule, state: State) -> Result<()> {
    let _changing = life.changing.lock().await;
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    // As it is now: seeding has saved its position, or somebody has changed the rule meanwhile.
    let Some(mut row) = life.row_of(entry) else { return Ok(()) };
    if row.epoch != entry.row.epoch {
        return Ok(());
    }
    row.tidy &= state != State::On;
    row.state = state;
    life.pass(Point::Life("state")).await?;
    if !catalog::replace(&mut at, &entry.db, &row, row.epoch).await? {
        // Another process has changed it.
        return life.refresh(&mut at).await;
    }
    let is_on = row.state == State::On;
    life.advanced(&entry.db, &row);
    life.put_in_force()?;
    match is_on {
        true => life.publish(&mut at, &entry.db).await,
        false => Ok(()),
    }
}
