//! `lift`: the items of an array become documents of the child collection, before the window is seeded (SEMANTICS R2, R11).
//!
//! The array is an owned path from the rule's first moment, so it stays as it is under the walk. A part is some hosts or some items of one
//! host, in one transaction: children are inserted as a client's are, so that fields, shape and validator of their collection react; their
//! order is kept in `pleach.replaced`; a host whose last item is lifted loses the array, or gets the window in its place; the position
//! is saved. So it can be killed anywhere and goes on from there. [`restore`] is the way back, [`unfinished`] the end of one that was given up.

mod extent;
pub(crate) mod item;
pub(crate) mod left;
pub(crate) mod order_rows;
pub(crate) mod restore;
pub(crate) mod unfinished;
pub(crate) mod waiting_items;

use crate::execute::access::{Access, find, update_one, update_op};
use crate::execute::evaluate::Evaluator;
use crate::execute::gate::Point;
use crate::fields::value_at;
use crate::life::lift::item::{Child, Lift, holds};
use crate::life::lift::order_rows::OrderRow;
use crate::life::preview::shown;
use crate::life::replaced::amount::Amount;
use crate::life::replaced::{Lifted, amount};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog, replaced, write_differences};
use crate::mql::{call, object};
use crate::rule::key;
use document::backend::{Answer, Session};
use document::filter::Filter;
use document::op::{Find, Insert, UpdateStatement, WriteOp};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::update::Update;
use document::value::order;
use document::{Array, Code, Doc, Error, Result, Value};
use extent::Extent;
use hashbrown::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

const PACE: Pace = Pace { first: 200, most: 2_000, bytes: usize::MAX };

/// So many ids are asked for at a time.
pub(super) const IDS: usize = 5_000;

/// Lifts what is left. The next look at the rule finds that nothing is (see [`announce`]).
pub(super) async fn lift(life: &Life, entry: &CatalogRule) -> Result<()> {
    let Some(lift) = Lift::of(&entry.rule) else { return Ok(()) };
    let mut row = entry.row.clone();
    let begun = row.replaced.lifted.take().or_else(|| Lifted::of(&entry.rule)).unwrap_or_default();
    let from = begun.to.clone();
    row.replaced.lifted = Some(begun);
    let evaluator = Evaluator::new(&entry.rule)?.through(&life.patterned.executor);
    let mut lifting = Lifting { life, lift, evaluator, row };
    match walk(life, PACE, from, &mut lifting).await? {
        WalkEnd::Reached => Ok(()),
        // The reconciler looks at it anew.
        WalkEnd::Superseded => life.reload().await,
    }
}

/// Tells all writers that the array is lifted, before the window is seeded: they keep it by deltas then.
pub(super) fn announce(life: &Life) -> Result<()> {
    life.unpublished.store(true, Ordering::Relaxed);
    life.put_in_force()
}

struct Lifting<'a> {
    life: &'a Life,
    lift: Lift<'a>,
    evaluator: Evaluator,
    row: catalog::Row,
}

/// A host and those of its items that a part is about.
struct HostItems {
    id: Value<'static>,
    key: Option<Value<'static>>,
    children: Vec<Child>,
    /// Whether none of its items was lifted before.
    is_first: bool,
    /// Where the array stands, or what the window that comes in its place is made in; `None` if there is neither, or the part is not the
    /// first of the host.
    standing: Option<Array<'static>>,
    has_array: bool,
    /// Whether no item is left.
    is_last: bool,
}

impl PartWork for Lifting<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl Lifting<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, row) = (self.life, &self.row);
        let (rule, context) = (self.lift.rule, &life.adding_context());
        let lifted = row.replaced.lifted.clone().unwrap_or_default();
        let begun = u64::try_from(lifted.items).unwrap_or(0);
        let mut outside = Session::default();
        let mut at = Access { backend: &*life.backend, session: &mut outside, context };
        let extent = extent::look(&mut at, &self.lift, part, begun, life.at_most(u64::MAX)).await?;
        // The host that was begun may be gone.
        let begun = if extent.is_of(lifted.to.as_ref()) { begun } else { 0 };
        let mut began = OwnTransaction::begin_for(life, context, rule).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if catalog::epoch(&mut at, &rule.host.db, &row.rule).await? != Some(row.epoch) {
            return Ok(None);
        }
        life.pass(Point::Life("take")).await?;
        let found = at.find(extent.find(&self.lift, part.from, begun)?).await?;
        let hosts = found.iter().map(|host| self.items(host, begun, extent.limit())).collect::<Result<Vec<_>>>()?;
        life.pass(Point::Life("children")).await?;
        let there = self.there(&mut began, &hosts).await?;
        self.insert(&mut began, &hosts).await?;
        life.pass(Point::Life("keep")).await?;
        self.keep(&mut began, &hosts, begun, there).await?;
        life.pass(Point::Life("write")).await?;
        self.take_arrays(&mut began, &hosts).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        let moved: usize = hosts.iter().map(|host| host.children.len()).sum();
        let (to, items) = match extent {
            Extent::Items { host, limit, .. } if hosts.iter().any(|host| !host.is_last) => (Some(host), begun + limit),
            Extent::Items { next, .. } | Extent::Hosts { next } => (next, 0),
        };
        let mut next = row.clone();
        let items = i64::try_from(items).unwrap_or(i64::MAX);
        next.replaced.lifted = Some(Lifted { to: Some(to.clone().unwrap_or(Value::MaxKey)), items, ..lifted });
        next.replaced.seeded.lifted += i64::try_from(moved).unwrap_or(i64::MAX);
        next.done += i64::try_from(hosts.iter().filter(|host| host.is_last).count()).unwrap_or(i64::MAX);
        life.pass(Point::Life("save")).await?;
        catalog::save(&mut at, &rule.host.db, &next).await?;
        began.commit().await?;
        life.advanced(&rule.host.db, &next);
        self.row = next;
        Ok(Some(PartDone { next: to, documents: hosts.len(), bytes: 0 }))
    }

    /// What a host has in its array, as documents.
    fn items(&self, host: &Doc<'static>, begun: u64, limit: u64) -> Result<HostItems> {
        let lift = &self.lift;
        let (id, key) = (host.get("_id").unwrap_or(Value::Null), lift.key(host));
        let found = value_at(host, &lift.array);
        let items: Vec<Value<'_>> = match &found {
            Value::Array(items) => items.iter().collect(),
            value if value.is_nullish() => Vec::new(),
            _ => return Err(unfit(lift, &id, "is no array")),
        };
        if key.is_none() && !items.is_empty() {
            return Err(unfit(
                lift,
                &id,
                &format!("has items, and no `{}` by which they find it", lift.link.local.path),
            ));
        }
        let mut children = Vec::new();
        for (place, item) in (begun..).zip(&items).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
            let key = key.as_ref().unwrap_or(&Value::Null);
            let child = lift.child(&id, key, place, item);
            children.push(child.map_err(|misfit| {
                unfit(lift, &id, &format!("has an item at {place} that cannot become a document: {}", misfit.why(lift)))
            })?);
        }
        let is_first = begun == 0;
        let is_noted = is_first && (lift.is_window() || !found.is_missing());
        let emptied = if matches!(found, Value::Array(_)) { Value::Array(Array::empty()) } else { found.clone() };
        let standing = is_noted.then(|| order_rows::standing(&lift.array, host, &emptied));
        Ok(HostItems {
            is_first,
            standing: standing.filter(|record| !record.is_empty()),
            has_array: matches!(found, Value::Array(_)),
            is_last: u64::try_from(items.len()).is_ok_and(|items| items <= limit),
            id,
            key,
            children,
        })
    }

    /// The ids of the children that hosts have before the first of their items is lifted, by the hosts' keys.
    async fn there(
        &self,
        began: &mut OwnTransaction<'_>,
        hosts: &[HostItems],
    ) -> Result<HashMap<Vec<u8>, Vec<Value<'static>>>> {
        let keys: Vec<Value<'static>> =
            hosts.iter().filter(|host| host.is_first).filter_map(|host| host.key.clone()).collect();
        let mut there: HashMap<Vec<u8>, Vec<Value<'static>>> = HashMap::new();
        if keys.is_empty() {
            return Ok(there);
        }
        let by = self.lift.by.dotted();
        let shown = crate::mql::document([("_id", Value::Int32(1)), (&*by, Value::Int32(1))]);
        let filter = Filter::among(&by, keys);
        let projection = Some(Arc::new(Projection::parse_find(&shown, &filter, &mut Names::new())?));
        let mut at = children(self.life, began);
        for child in at.find(Find { projection, ..find(self.lift.source(), filter) }).await? {
            let key = value_at(&child, self.lift.by);
            there.entry(key::bytes(&key)).or_default().extend(child.get("_id"));
        }
        Ok(there)
    }

    /// Inserts the children that are not there. One that is there with all that the item has stands for it.
    async fn insert(&self, began: &mut OwnTransaction<'_>, hosts: &[HostItems]) -> Result<()> {
        let lift = &self.lift;
        let mut all: Vec<(&Value<'static>, &Child)> = Vec::new();
        hosts.iter().for_each(|host| all.extend(host.children.iter().map(|child| (&host.id, child))));
        all.sort_by(|(_, a), (_, b)| order::compare(&a.id, &b.id));
        let again = all.iter().zip(all.iter().skip(1)).find(|((_, one), (_, other))| order::equal(&one.id, &other.id));
        if let Some(((host, child), _)) = again {
            return Err(twice(lift, host, &child.id));
        }
        let mut at = children(self.life, began);
        let keys: Vec<Value<'static>> = hosts.iter().filter_map(|host| host.key.clone()).collect();
        let mut new = Vec::with_capacity(all.len());
        for some in all.chunks(IDS) {
            let ids = some.iter().map(|(_, child)| child.id.clone()).collect();
            let filter = match self.life.patterned.rules().shaped(lift.source()) {
                // Documents of other keys may have the same `_id` there, and are not found by it.
                Some(_) => Filter::among("_id", ids).and(Filter::among(&lift.by.dotted(), keys.clone())),
                None => Filter::among("_id", ids),
            };
            let stored = at.find(find(lift.source(), filter)).await?;
            let stored: HashMap<Vec<u8>, &Doc<'static>> =
                stored.iter().filter_map(|child| Some((key::bytes(&child.get("_id")?), child))).collect();
            for (host, child) in some {
                match stored.get(&key::bytes(&child.id)) {
                    None => new.push(child.document.clone()),
                    Some(stored) if holds(stored, &child.document) => {}
                    Some(_) => return Err(twice(lift, host, &child.id)),
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let inserted = at.write(&WriteOp::Insert(Insert::of(lift.source().clone(), new))).await;
        let context = format!("items of `{}` cannot become documents of {}: ", lift.array, lift.source().collection);
        inserted.map(drop).map_err(|error| error.context(&context))
    }

    /// Keeps the order of the items.
    async fn keep(
        &self,
        began: &mut OwnTransaction<'_>,
        hosts: &[HostItems],
        begun: u64,
        mut there: HashMap<Vec<u8>, Vec<Value<'static>>>,
    ) -> Result<()> {
        let (lift, Some(since)) = (&self.lift, self.row.replaced.since) else { return Ok(()) };
        let mut rows = Vec::new();
        for host in hosts {
            let of_host = host.key.as_ref().filter(|_| host.is_first).map(key::bytes);
            let row = OrderRow {
                host: host.id.clone(),
                item: i64::try_from(begun).unwrap_or(i64::MAX),
                children: &host.children,
                array: host.standing.clone(),
                there: of_host.and_then(|key| there.remove(&key)).unwrap_or_default(),
            };
            if !row.is_empty() {
                rows.push(row.write(lift, since));
            }
        }
        let mut amount = Amount::default();
        rows.iter().for_each(|row| amount.add(row));
        let mut at = Access { backend: &*self.life.backend, session: &mut began.session, context: began.context };
        replaced::insert(&mut at, lift.rule, rows).await?;
        amount::add(&mut at, lift.rule, since, amount).await
    }

    /// Takes the array from hosts whose last item is lifted; where it is the window's own field, the window comes in its place.
    async fn take_arrays(&self, began: &mut OwnTransaction<'_>, hosts: &[HostItems]) -> Result<()> {
        let (life, lift) = (self.life, &self.lift);
        let done = hosts.iter().filter(|host| host.is_last && host.has_array);
        let ids: Vec<Value<'static>> = done.map(|host| host.id.clone()).collect();
        if ids.is_empty() {
            return Ok(());
        }
        let array = lift.array.dotted();
        let change = match lift.is_window() {
            true => call("$set", object([(&*array, Value::Array(Array::empty()))])),
            false => call("$unset", object([(&*array, Value::from(""))])),
        };
        let update = Update::parse(&change, &[], &mut Names::new())?;
        let statement = UpdateStatement { multi: true, ..update_one(Filter::among("_id", ids.clone()), update) };
        write_differences::run(life, began, lift.rule, &update_op(lift.host(), vec![statement])).await?;
        if !lift.is_window() {
            return Ok(());
        }
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context: began.context };
        let hosts = at.find(find(lift.host(), Filter::among("_id", ids))).await?;
        let differences = self.evaluator.differences(&mut at, &hosts).await?;
        write_differences::write(life, began, lift.rule, &differences).await
    }
}

/// The child collection as clients see it, in the open transaction.
pub(super) fn children<'a>(life: &'a Life, began: &'a mut OwnTransaction<'_>) -> Access<'a> {
    Access { backend: &life.patterned, session: &mut began.session, context: began.context }
}

fn unfit(lift: &Lift<'_>, host: &Value<'_>, what: &str) -> Error {
    let message =
        format!("`{}` of the document of {} with _id {} {what}", lift.array, lift.host().collection, shown(host));
    let hint = format!(
        "change that document with `serve --raw` or beside Pleach, or `pleach drop {} --restore`",
        lift.rule.name
    );
    Error::new(Code::OperationFailed, message).with_hint(hint)
}

/// Another document has the `_id` of an item.
fn twice(lift: &Lift<'_>, host: &Value<'_>, id: &Value<'_>) -> Error {
    let source = &lift.source().collection;
    unfit(lift, host, &format!("has an item with _id {}, which another document of {source} has", shown(id)))
}
