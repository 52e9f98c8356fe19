//! The end of a move: the view without what is empty now, or no view and the collection under its own name again.

use crate::execute::access::Access;
use crate::execute::gate::Point;
use crate::life::relocate::record::Switchover;
use crate::life::relocate::{readers, readers_of_source, stored, switchover, way_back};
use crate::life::replaced::ended_rules;
use crate::life::{CatalogRule, Life, catalog};
use crate::rule::State;
use crate::rule::shape::Place;
use document::backend::Session;
use document::{Code, Error, Result};
use std::time::Duration;

/// How long readers of what is empty are waited for before it is dropped.
const LAST_READERS: Duration = Duration::from_secs(5);

/// All documents are in the first place: the rule is on.
pub(crate) async fn on(life: &Life, entry: &CatalogRule) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(entry) = life.current(entry) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let mut row = entry.row.clone();
    let Some(shape) = &mut row.shape else { return Ok(()) };
    if shape.places.len() > 1 {
        let emptied = entry.places.get(1..).unwrap_or_default().to_vec();
        let places = entry.places.get(..1).unwrap_or_default().to_vec();
        life.pass(Point::Life("narrow")).await?;
        stored::ensure_view(&mut at, &entry.rule.host, &places).await?;
        life.put_entry(CatalogRule { places, ..entry.clone() });
        life.put_in_force()?;
        if !life.settled_within(LAST_READERS).await? {
            life.put_entry(entry);
            return Err(Error::new(Code::OperationFailed, "it waits for a transaction that a client has open"));
        }
        readers::wait_for_readers(life, &readers::names(&entry, &[]), LAST_READERS).await?;
        for place in &emptied {
            life.pass(Point::Life("remove")).await?;
            drop_empty(&mut at, place).await?;
        }
        shape.places.truncate(1);
        readers_of_source::seed_again(life, &mut at, &entry).await?;
    }
    row.state = State::On;
    row.done = row.total;
    life.pass(Point::Life("state")).await?;
    let on = CatalogRule::new(&entry.db, row, entry.rule.clone())?;
    switchover::save(life, &mut at, on).await?;
    life.state_changed.notify_waiters();
    tracing::info!(rule = &*entry.rule.name, "on");
    Ok(())
}

async fn drop_empty(at: &mut Access<'_>, place: &Place) -> Result<()> {
    if !stored::is_empty(at, &place.stored).await? {
        let message = format!("{} was written to by somebody who does not go through Pleach", place.stored);
        return Err(Error::new(Code::OperationFailed, message));
    }
    stored::drop_if_there(at, &place.stored).await
}

/// The rule ends: its view goes, and what is left is the collection under its own name, or nothing if the data goes too.
pub(crate) async fn off(life: &Life, entry: &CatalogRule) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(mut entry) = life.current(entry) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let (db, logical, with_data) = (entry.db.clone(), entry.rule.host.clone(), entry.row.with_data);
    let plain = entry.places.first().filter(|place| place.shape.is_plain() && !with_data).cloned();
    if let (Some(plain), Some(shape)) = (&plain, &entry.row.shape)
        && let Some(ns) = way_back::plain_name(&mut at, &plain.stored, &logical).await?
    {
        life.pass(Point::Life("index")).await?;
        // Clients are not held yet: it may take long.
        let mut back = way_back::make_indexes(&mut at, &ns, shape).await?;
        back.options = way_back::give_options(&mut at, &ns, shape).await?;
        life.note_way_back(&entry, back);
    }
    if !entry.places.is_empty() {
        let shape = entry.row.shape.get_or_insert_default();
        let renames = plain.iter().map(|place| (place.stored.collection.to_string(), logical.collection.to_string()));
        shape.switchover.get_or_insert_with(|| Switchover { renames: renames.collect(), ..Switchover::default() });
        entry = switchover::begin(life, &mut at, entry).await?;
        readers::wait_for_readers(life, &readers::names(&entry, &[]), switchover::READERS).await?;
        life.pass(Point::Life("unview")).await?;
        if stored::look_up(&mut at, &logical).await?.is_some_and(|found| found.is_view()) {
            stored::drop_if_there(&mut at, &logical).await?;
        }
        if let Some(plain) = &plain {
            life.pass(Point::Life("rename")).await?;
            stored::rename(&mut at, &plain.stored, &logical).await?;
        }
        readers_of_source::seed_again(life, &mut at, &entry).await?;
        for place in entry.places.iter().filter(|place| plain.as_ref().is_none_or(|plain| plain.stored != place.stored))
        {
            life.pass(Point::Life("remove")).await?;
            match with_data {
                true => stored::drop_if_there(&mut at, &place.stored).await?,
                false => drop_empty(&mut at, place).await?,
            }
        }
    } else if let (Some(_), Some(into)) =
        (&entry.row.shape, entry.rule.shape().and_then(|shape| shape.declared_place()))
    {
        // Nothing had been moved yet.
        if stored::is_empty(&mut at, into).await? {
            stored::drop_if_there(&mut at, into).await?;
        }
    }
    life.tidy_indexes(&mut at, &db).await?;
    life.pass(Point::Life("forget")).await?;
    ended_rules::end(&mut at, &entry).await?;
    catalog::remove(&mut at, &db, &entry.row).await?;
    life.remove_entry(&entry);
    life.put_in_force()?;
    life.publish(&mut at, &db).await?;
    tracing::info!(rule = &*entry.rule.name, "gone");
    Ok(())
}

/// The rule ends, and all stays as it is stored: a view over buckets.
pub(crate) async fn leave(life: &Life, at: &mut Access<'_>, entry: &CatalogRule) -> Result<()> {
    let relocation = entry.row.shape.clone().unwrap_or_default();
    if relocation.is_moving() || entry.row.state != State::On {
        let message = format!("the collection of rule {} is still being brought into another form", entry.rule.name);
        return Err(Error::new(Code::ConflictingOperationInProgress, message)
            .with_hint("wait until `pleach status` shows it `on`"));
    }
    ended_rules::end(at, entry).await?;
    catalog::remove(at, &entry.db, &entry.row).await?;
    life.remove_entry(entry);
    life.put_in_force()
}
