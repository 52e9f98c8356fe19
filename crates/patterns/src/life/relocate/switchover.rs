//! Switchovers: collections are renamed and the view is made anew. That is no transaction, so it is written down first, clients are
//! held meanwhile, and every step may be done again: after a stop anywhere the next run goes on.

use crate::execute::access::Access;
use crate::execute::gate::Point;
use crate::life::relocate::record::Switchover;
use crate::life::relocate::{readers, record, stored, way_back};
use crate::life::{CatalogRule, Life, catalog, plan, timeseries};
use crate::rule::Rule;
use crate::rule::State;
use crate::rule::shape::Place;
use document::backend::Session;
use document::op::Namespace;
use document::{Code, Doc, Error, Result};
use std::time::Duration;

/// How long clients are held for those who began earlier; between two attempts they go on for as long.
const SWITCHOVER_WAITS: [Duration; 4] =
    [Duration::from_secs(1), Duration::from_secs(2), Duration::from_secs(4), Duration::from_secs(8)];

/// How long clients are held for those who are between two batches of a cursor.
pub(super) const READERS: Duration = Duration::from_secs(2);

/// Does what is written down, if it still is.
pub(crate) async fn run(life: &Life, entry: &CatalogRule) -> Result<()> {
    let _changing = life.changing.lock().await;
    let Some(mut entry) = life.current(entry) else { return Ok(()) };
    let Some(switchover) = entry.row.shape.as_ref().and_then(|shape| shape.switchover.clone()) else { return Ok(()) };
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    let places = record::places(&switchover.places, &entry.db)?;
    life.pass(Point::Life("prepare")).await?;
    let plain_options = entry.row.shape.as_ref().and_then(|shape| shape.plain_options.clone());
    let first = FirstPlace { rule: &entry.rule.clone(), plain_options: plain_options.as_ref() };
    first.prepare(&mut at, &places, &switchover).await?;
    entry = begin(life, &mut at, entry).await?;
    readers::wait_for_readers(life, &readers::names(&entry, &switchover.renames), READERS).await?;
    for (from, to) in &switchover.renames {
        life.pass(Point::Life("rename")).await?;
        let (from, to) = (Namespace::new(&entry.db, from), Namespace::new(&entry.db, to));
        stored::rename(&mut at, &from, &to).await?;
    }
    let renamed = renamed(&mut at, &entry.rule, &switchover).await?;
    life.pass(Point::Life("make")).await?;
    first.make(&mut at, &places).await?;
    timeseries::ensure(&mut at, &entry).await?;
    life.pass(Point::Life("view")).await?;
    stored::ensure_view(&mut at, &entry.rule.host, &places).await?;
    let mut row = entry.row.clone();
    row.total = 0;
    for place in places.iter().skip(1) {
        row.total += plan::documents(&mut at, &place.stored).await?;
    }
    row.done = 0;
    if row.state == State::Maintaining {
        row.state = State::Seeding { position: None };
    }
    if let Some(shape) = &mut row.shape {
        shape.places = switchover.places;
        shape.switchover = None;
        shape.moved = None;
        if let Some((indexes, options)) = renamed {
            shape.plain_indexes = indexes;
            shape.plain_options = options;
        }
    }
    life.pass(Point::Life("turned")).await?;
    let turned = CatalogRule::new(&entry.db, row, entry.rule.clone())?;
    save(life, &mut at, turned).await
}

/// The indexes and the options of a plain collection.
type Plain = (Vec<Doc<'static>>, Option<Doc<'static>>);

/// What the plain collection has that has made room for its new form. It is dropped when its documents have moved, so the catalog
/// keeps that. Returns `None` if none has made room.
async fn renamed(at: &mut Access<'_>, rule: &Rule, switchover: &Switchover) -> Result<Option<Plain>> {
    let made_room = switchover.renames.iter().find(|(from, _)| **from == *rule.host.collection);
    let Some((_, aside)) = made_room else { return Ok(None) };
    let aside = Namespace::new(&rule.host.db, aside);
    Ok(Some((way_back::indexes(at, &aside).await?, way_back::options(at, &aside).await?)))
}

/// The first place is made; the others are there.
struct FirstPlace<'a> {
    rule: &'a Rule,
    /// The options that the collection had when it was plain.
    plain_options: Option<&'a Doc<'static>>,
}

impl FirstPlace<'_> {
    /// What no client sees yet.
    async fn prepare(&self, at: &mut Access<'_>, places: &[Place], switchover: &Switchover) -> Result<()> {
        let is_renamed = |place: &Place| switchover.renames.iter().any(|(from, _)| **from == *place.stored.collection);
        match places.first() {
            Some(place) if is_renamed(place) => Ok(()),
            _ => self.make(at, places).await,
        }
    }

    async fn make(&self, at: &mut Access<'_>, places: &[Place]) -> Result<()> {
        match places.first() {
            Some(place) => stored::ensure_place(at, self.rule, place, self.plain_options).await,
            None => Ok(()),
        }
    }
}

/// Writes down that it begins, so that clients are held here and in every other process, and waits for those who began earlier.
/// From then on they are held until it is done, whatever happens meanwhile.
pub(super) async fn begin(life: &Life, at: &mut Access<'_>, entry: CatalogRule) -> Result<CatalogRule> {
    if entry.switching {
        // It was begun before a stop or a failure.
        life.park(true).await;
        let settled = life.settled_by_all(at, &entry.db).await;
        life.park(false).await;
        return settled.map(|()| entry);
    }
    let mut row = entry.row.clone();
    if let Some(switchover) = row.shape.as_mut().and_then(|shape| shape.switchover.as_mut()) {
        switchover.begun = true;
    }
    let switching = CatalogRule { row, switching: true, ..entry.clone() };
    for limit in SWITCHOVER_WAITS {
        life.pass(Point::Life("hold")).await?;
        save(life, at, switching.clone()).await?;
        life.park(true).await;
        let settled = tokio::time::timeout(limit, life.settled_by_all(at, &entry.db)).await;
        life.park(false).await;
        if let Ok(settled) = settled {
            return settled.map(|()| switching);
        }
        save(life, at, entry.clone()).await?;
        life.park(true).await;
        life.wait_for_stop(limit).await;
        life.park(false).await;
        life.check_stopped()?;
    }
    Err(Error::new(Code::OperationFailed, "it waits for a transaction that a client has open"))
}

/// Makes it what the catalog says, what is in force here, and what the other processes learn.
pub(crate) async fn save(life: &Life, at: &mut Access<'_>, entry: CatalogRule) -> Result<()> {
    let (db, epoch) = (entry.db.clone(), entry.row.epoch);
    if !catalog::replace(at, &db, &entry.row, epoch).await? {
        life.refresh(at).await?;
        let message = format!("rule {} was changed meanwhile", entry.rule.name);
        return Err(Error::new(Code::ConflictingOperationInProgress, message));
    }
    life.put_entry(entry);
    life.put_in_force()?;
    life.publish(at, &db).await
}
