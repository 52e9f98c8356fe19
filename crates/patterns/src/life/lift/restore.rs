//! The way back of a lift, by `drop RULE --restore`: each host gets its children as items again, as they are now: those that were lifted in
//! their old order, those that came since behind them by `_id`. These children leave their collection; what was there before a host's
//! array was lifted stays. A host whose items do not fit is named and left.
//!
//! A part of the hosts is one transaction that ends with its position, so that it can be killed anywhere.

use crate::execute::access::{Access, aggregate, find, update_one, update_op};
use crate::execute::evaluate::becomes;
use crate::execute::gate::Point;
use crate::execute::replaced::values::{Places, without};
use crate::fields::set_paths::put;
use crate::fields::value_at;
use crate::life::catalog::long;
use crate::life::lift::item::Lift;
use crate::life::lift::order_rows::{self, HostOrder, is_order_row, with_value};
use crate::life::lift::unfinished::delete_children;
use crate::life::lift::{children, unfinished};
use crate::life::replaced::amount::Amount;
use crate::life::replaced::restore::among;
use crate::life::replaced::{amount, rows_between};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, Recovery, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog};
use crate::mql::{call, document, field, object};
use crate::rule::{Rule, key, names};
use document::backend::{Answer, Session};
use document::error::Scope;
use document::filter::Filter;
use document::op::{Context, Durability, Find};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::project::Projection;
use document::update::Update;
use document::{Array, Doc, Error, Result, Value};
use hashbrown::HashMap;
use std::sync::Arc;

const PACE: Pace = Pace { first: 200, most: 1_000, bytes: usize::MAX };

/// One transaction takes back about so many children …
const MOST_CHILDREN: i64 = 5_000;
/// … of so many bytes, or all of one host.
const MOST_BYTES: i64 = 4 << 20;

/// A document is not larger.
const DOCUMENT_BYTES: usize = 16 << 20;
/// What the name of an item takes beside the item itself: its kind, its number and a zero.
const ITEM_BYTES: usize = 9;

/// So many bytes are written by one statement, or by several together: a statement is not much larger than a document may be.
const STATEMENT_BYTES: usize = 4 << 20;

/// Gives back the items that one life of the rule has lifted. Returns the rule's row as it is then, or `None` if somebody has changed the
/// rule meanwhile. `rule` is as it was at the end of that life.
pub(crate) async fn restore(
    life: &Life,
    entry: &CatalogRule,
    row: catalog::Row,
    since: i64,
    rule: &Rule,
) -> Result<Option<catalog::Row>> {
    let Some(row) = unfinished::undo(life, entry, row, since).await? else { return Ok(None) };
    let Some(lifted) = row.replaced.lifted.clone() else { return Ok(Some(row)) };
    let (Some(lift), Some(to)) = (Lift::new(rule, &lifted.array), lifted.to) else { return Ok(Some(row)) };
    if matches!(lifted.restored_to, Some(Value::MaxKey)) {
        return Ok(Some(row));
    }
    let until = Some(to).filter(|to| !matches!(to, Value::MaxKey));
    let mut returning = ReturningItems { life, entry, lift, row, since, until, refused: None };
    let end = walk(life, PACE, lifted.restored_to, &mut returning).await?;
    Ok((end == WalkEnd::Reached).then_some(returning.row))
}

struct ReturningItems<'a> {
    life: &'a Life,
    entry: &'a CatalogRule,
    lift: Lift<'a>,
    row: catalog::Row,
    since: i64,
    /// The first host that was not lifted.
    until: Option<Value<'static>>,
    /// Why the children of the next host cannot be deleted.
    refused: Option<String>,
}

/// What becomes of a host.
struct Return {
    id: Value<'static>,
    items: Vec<Doc<'static>>,
    /// Where the array stood.
    array: Option<Array<'static>>,
}

impl PartWork for ReturningItems<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }

    /// Somebody refers to a child, and it may not be deleted: its host is left.
    fn failed<'a>(&'a mut self, error: Error, part: PartOfWalk<'a>) -> Answer<'a, Recovery> {
        Box::pin(async move {
            match (error.scope(), part.size) {
                (Scope::Statement, 1) if self.refused.is_none() => {
                    self.refused = Some(error.message().to_owned());
                    Ok(Recovery::OneByOne)
                }
                (Scope::Statement, 2..) => Ok(Recovery::OneByOne),
                _ => Err(error),
            }
        })
    }
}

impl ReturningItems<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let (life, entry, since) = (self.life, self.entry, self.since);
        let (lift, rule) = (&self.lift, self.lift.rule);
        let context = &Context { durability: Durability::Relaxed, ..life.context() };
        let to = self.boundary(context, part).await?;
        // Held until the commit: another process that applies the rule anew waits for this one.
        let _held = life.patterned.rules();
        let mut began = OwnTransaction::begin(life, context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if catalog::epoch(&mut at, &entry.db, &self.row.rule).await? != Some(self.row.epoch) {
            return Ok(None);
        }
        life.pass(Point::Life("take")).await?;
        let end = to.as_ref().or(self.until.as_ref());
        let hosts = at.find(walk::range(lift.host(), part.from, end)).await?;
        let rows = at.find(rows_between(rule, since, part.from, end)).await?;
        let rows: Vec<Doc<'static>> = rows.into_iter().filter(|row| is_order_row(row)).collect();
        let mut orders = order_rows::read(&rows);
        let keys: Vec<Value<'static>> = hosts.iter().filter_map(|host| lift.key(host)).collect();
        let mut found = self.children(&mut began, &keys).await?;
        let (mut returns, mut gone) = (Vec::new(), Vec::new());
        for host in &hosts {
            let id = host.get("_id").unwrap_or(Value::Null);
            let order = orders.remove(&key::bytes(&id)).unwrap_or_default();
            let of_host = lift.key(host).and_then(|key| found.remove(&key::bytes(&key))).unwrap_or_default();
            match self.returned(host, order, of_host) {
                Ok((back, ids)) => {
                    returns.extend(back);
                    gone.extend(ids);
                }
                Err(why) => life.note_left_host(entry, &id, &why),
            }
        }
        life.pass(Point::Life("children")).await?;
        delete_children(life, &mut began, lift, &gone, &keys).await?;
        life.pass(Point::Life("give back")).await?;
        self.give_back(&mut began, &returns).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        self.free(&mut at, &rows).await?;
        let mut next = self.row.clone();
        if let Some(lifted) = &mut next.replaced.lifted {
            lifted.restored_to = Some(to.clone().unwrap_or(Value::MaxKey));
        }
        next.done += i64::try_from(hosts.len()).unwrap_or(i64::MAX);
        life.pass(Point::Life("save")).await?;
        catalog::save(&mut at, &entry.db, &next).await?;
        began.commit().await?;
        life.advanced(&entry.db, &next);
        (self.row, self.refused) = (next, None);
        Ok(Some(PartDone { next: to, documents: hosts.len(), bytes: 0 }))
    }

    /// The host that the next part begins with: as many go before it as have few children together; `None` at the end.
    async fn boundary(&self, context: &Context, part: PartOfWalk<'_>) -> Result<Option<Value<'static>>> {
        let (life, lift) = (self.life, &self.lift);
        let mut session = Session::default();
        let mut at = Access { backend: &*life.backend, session: &mut session, context };
        let (local, by) = (lift.link.local.path.dotted(), lift.by.dotted());
        let mut shown = vec![("_id", Value::Int32(1))];
        shown.extend((local != "_id").then_some((&*local, Value::Int32(1))));
        let projection = Projection::parse_find(&document(shown), &Filter::all(), &mut Names::new())?;
        let query = Find { projection: Some(Arc::new(projection)), ..part.find(lift.host(), self.until.as_ref()) };
        let hosts = at.find(query).await?;
        let keys: Vec<Value<'static>> = hosts.iter().filter_map(|host| lift.key(host)).collect();
        let sizes = object([
            ("_id", field(&by)),
            ("n", call("$sum", Value::Int32(1))),
            ("bytes", call("$sum", call("$bsonSize", Value::from("$$ROOT")))),
        ]);
        let matching = object([(&*by, object([("$in", Value::Array(keys.into_iter().collect()))]))]);
        let stages = [call("$match", matching), call("$group", sizes)].into_iter().collect();
        let pipeline = Pipeline::parse(&stages, &mut Names::new())?;
        let mut of_children = Access { backend: &life.patterned, session: &mut Session::default(), context };
        let rows = of_children.all(aggregate(lift.source(), pipeline)).await?;
        let sizes: HashMap<Vec<u8>, (i64, i64)> = rows
            .iter()
            .filter_map(|row| Some((key::bytes(&row.get("_id")?), (long(row.get("n")), long(row.get("bytes"))))))
            .collect();
        let (mut number, mut bytes) = (0, 0);
        for (taken, host) in hosts.iter().enumerate() {
            let size = lift.key(host).and_then(|key| sizes.get(&key::bytes(&key))).copied().unwrap_or_default();
            number += size.0;
            bytes += size.1;
            let is_full = taken > 0 && (number > MOST_CHILDREN || bytes > MOST_BYTES);
            if is_full || taken as u64 >= part.size {
                return Ok(host.get("_id"));
            }
        }
        Ok(None)
    }

    /// The children of some keys, in the order of `_id`.
    async fn children(
        &self,
        began: &mut OwnTransaction<'_>,
        keys: &[Value<'static>],
    ) -> Result<HashMap<Vec<u8>, Vec<Doc<'static>>>> {
        let mut found: HashMap<Vec<u8>, Vec<Doc<'static>>> = HashMap::new();
        if keys.is_empty() {
            return Ok(found);
        }
        let filter = Filter::among(&self.lift.by.dotted(), keys.to_vec());
        let mut all = children(self.life, began).find(find(self.lift.source(), filter)).await?;
        all.sort_by_cached_key(|child| child.get("_id").map(|id| key::bytes(&id)));
        for child in all {
            let of = key::bytes(&value_at(&child, self.lift.by));
            found.entry(of).or_default().push(child);
        }
        Ok(found)
    }

    /// What a host gets back, and the ids of the children that it gets; or why not. `None` if there is nothing for it.
    fn returned(
        &self,
        host: &Doc<'static>,
        order: HostOrder,
        found: Vec<Doc<'static>>,
    ) -> Result<(Option<Return>, Vec<Value<'static>>), String> {
        let lift = &self.lift;
        let id = host.get("_id").unwrap_or(Value::Null);
        let mut by_id: HashMap<Vec<u8>, Doc<'static>> = HashMap::with_capacity(found.len());
        let mut since = Vec::new();
        let lifted: hashbrown::HashSet<Vec<u8>> = order.items.iter().map(|(id, _, _)| key::bytes(id)).collect();
        for child in found {
            let bytes = key::bytes(&child.get("_id").unwrap_or(Value::Null));
            match (lifted.contains(&bytes), order.there.contains(&bytes)) {
                (true, _) => drop(by_id.insert(bytes, child)),
                (false, true) => {}
                (false, false) => since.push(child),
            }
        }
        let (mut items, mut gone) = (Vec::new(), Vec::new());
        for (id, is_made, had_key) in &order.items {
            let bytes = key::bytes(id);
            let Some(child) = by_id.remove(&bytes) else { continue };
            items.push(lift.item(&child, *is_made, *had_key));
            // One that was there and stood for an item stays.
            if !order.there.contains(&bytes) {
                gone.push(id.clone());
            }
        }
        for child in since {
            items.push(lift.item(&child, false, false));
            gone.extend(child.get("_id"));
        }
        if let (Some(why), false) = (&self.refused, gone.is_empty()) {
            return Err(why.clone());
        }
        let array = lift.array.dotted();
        let now = value_at(host, &lift.array);
        let holds_items = matches!(&now, Value::Array(now) if !now.is_empty());
        if !lift.is_window() && (holds_items || !matches!(now, Value::Array(_)) && !now.is_nullish()) {
            return match items.is_empty() {
                true => Ok((None, Vec::new())),
                false => Err(format!("`{array}` holds something else by now")),
            };
        }
        let bytes: usize = items.iter().map(|item| item.as_bytes().len() + ITEM_BYTES).sum();
        if host.as_bytes().len() + bytes > DOCUMENT_BYTES {
            return Err(format!("its {} items no longer fit into one document", items.len()));
        }
        Ok((Some(Return { id, items, array: order.array }), gone))
    }

    /// Puts the items into the hosts, which may have been changed by what followed from the children.
    async fn give_back(&self, began: &mut OwnTransaction<'_>, returns: &[Return]) -> Result<()> {
        let (life, context) = (self.life, began.context);
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        let ids = returns.iter().map(|back| back.id.clone()).collect();
        let hosts = at.find(find(self.lift.host(), among(ids))).await?;
        let hosts: HashMap<Vec<u8>, &Doc<'static>> =
            hosts.iter().filter_map(|host| Some((key::bytes(&host.get("_id")?), host))).collect();
        let mut statements = Vec::new();
        for back in returns {
            let Some(host) = hosts.get(&key::bytes(&back.id)) else { continue };
            let (first, rest) = back.in_statements();
            let right = self.right(host, back, first);
            if right.as_bytes() != host.as_bytes() {
                let update = becomes(host, &right);
                statements.push((right.as_bytes().len(), update_one(Filter::equality("_id", &back.id), update)));
            }
            for some in rest {
                let items = some.iter().map(|item| Value::Document(item.borrow())).collect();
                let each = object([("$each", Value::Array(items))]);
                let push = call("$push", object([(&*self.lift.array.dotted(), each)]));
                let update = Update::parse(&push, &[], &mut Names::new())?;
                statements.push((STATEMENT_BYTES, update_one(Filter::equality("_id", &back.id), update)));
            }
        }
        let (mut together, mut bytes) = (Vec::new(), 0);
        for (size, statement) in statements {
            if bytes + size > STATEMENT_BYTES && !together.is_empty() {
                at.write(&update_op(self.lift.host(), std::mem::take(&mut together))).await?;
                bytes = 0;
            }
            bytes += size;
            together.push(statement);
        }
        match together.is_empty() {
            true => Ok(()),
            false => at.write(&update_op(self.lift.host(), together)).await.map(drop),
        }
    }

    /// The host with the first items in its array; as it was before if there are none.
    fn right(&self, host: &Doc<'static>, back: &Return, first: &[Doc<'static>]) -> Doc<'static> {
        let array = &self.lift.array;
        let items: Array<'static> = first.iter().map(|item| Value::Document(item.borrow())).collect();
        match &back.array {
            Some(standing) if items.is_empty() => Places::at(array).give_back(host, standing),
            Some(standing) if order_rows::has_array(standing, array) => {
                Places::at(array).give_back(host, &with_value(standing, array, &Value::Array(items)))
            }
            None if items.is_empty() => without(host, array),
            Some(_) | None => put(host, &[(&array.parts, Value::Array(items))]),
        }
    }

    /// Removes what was kept of them.
    async fn free(&self, at: &mut Access<'_>, rows: &[Doc<'static>]) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let used = rows.iter().filter_map(|row| row.get("_id")).collect();
        at.delete(&names::replaced(&self.entry.db), among(used)).await?;
        let taken = rows.iter().fold(Amount::default(), |amount, row| amount.minus(row));
        amount::add(at, &self.entry.rule, self.since, taken).await
    }
}

impl Return {
    /// The items that one statement takes, and those of each further one.
    fn in_statements(&self) -> (&[Doc<'static>], Vec<&[Doc<'static>]>) {
        let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
        for (place, item) in self.items.iter().enumerate() {
            let size = item.as_bytes().len();
            if place > begin && bytes + size > STATEMENT_BYTES {
                parts.push(self.items.get(begin..place).unwrap_or_default());
                (begin, bytes) = (place, 0);
            }
            bytes += size;
        }
        parts.push(self.items.get(begin..).unwrap_or_default());
        let mut parts = parts.into_iter();
        (parts.next().unwrap_or_default(), parts.collect())
    }
}
