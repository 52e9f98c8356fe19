//! Brings documents back whose version is given up (see [`super::change`]). A client waits for it, so it keeps to the
//! declared rate, but not to the hours. It needs no position: what is left to do is what is stored in such a version.

use crate::execute::access::Access;
use crate::life::versions::figures::count;
use crate::life::versions::migration::{NextDocuments, part, share};
use crate::life::versions::readers;
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::Lens;
use crate::rule::state::State;
use document::backend::Session;
use document::{Code, Error, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

pub(crate) async fn take_back(life: &Life, entry: &CatalogRule, lens: &Arc<Lens>) -> Result<()> {
    let backend = &**life.patterned.inner();
    let context = life.adding_context();
    let left = count(backend, &context, &entry.rule.host, lens.beyond()).await?;
    let mut row = entry.row.clone();
    (row.done, row.total) = (0, i64::try_from(left).unwrap_or(i64::MAX));
    life.advanced(&entry.db, &row);
    let mut next = NextDocuments::default();
    loop {
        life.check_stopped()?;
        if life.current(entry).is_none() {
            return Ok(());
        }
        let began = Instant::now();
        let most = lens.migrate.most_together();
        let outcome = part(backend, &context, &entry.rule.host, lens, lens.beyond(), most, &mut next).await?;
        if let Some((id, reason)) = outcome.stuck.first() {
            let message = format!(
                "{} documents of {} cannot be brought back to version {}, such as _id {}: {reason}",
                outcome.stuck.len(),
                entry.rule.host.collection,
                lens.newest(),
                crate::life::preview::shown(id)
            );
            return Err(Error::new(Code::OperationFailed, message));
        }
        if outcome.found == 0 {
            return finish(life, entry, lens).await;
        }
        row.done += i64::try_from(outcome.done).unwrap_or_default();
        life.advanced(&entry.db, &row);
        let pause = share(&lens.migrate, outcome.found).saturating_sub(began.elapsed());
        if !pause.is_zero() {
            life.wait_for_stop(pause).await;
        }
    }
}

/// What is declared behind the versions that stay comes in force.
async fn finish(life: &Life, entry: &CatalogRule, lens: &Lens) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(mut row) = life.row_of(entry).filter(|row| row.epoch == entry.row.epoch) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    (row.taken_back, row.state, row.epoch) = (None, State::Maintaining, row.epoch + 1);
    life.unpublished.store(true, Ordering::Relaxed);
    if !catalog::replace(&mut at, &entry.db, &row, entry.row.epoch).await? {
        return life.refresh(&mut at).await;
    }
    let declared = CatalogRule::of(&entry.db, row)?;
    let now = declared.rule.lens().cloned();
    life.put_entry(declared);
    if let Some(now) = now.filter(|now| now.newest() > lens.newest()) {
        readers::compute_anew(life, &mut at, &entry.db, &entry.rule.host, &[lens, &now]).await?;
    }
    life.put_in_force()?;
    life.publish(&mut at, &entry.db).await
}
