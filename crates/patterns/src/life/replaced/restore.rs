//! `drop RULE --restore`: every host gets back what it had, and what the rule filled is removed. What earlier lives of the rule have
//! kept is given back after that, life by life: the oldest value of a host is the one that it had before the first of them.
//!
//! A part of the hosts is one transaction: the hosts, what was kept of them, the values put back, the rows removed, the position
//! saved. So it can be killed anywhere and continues from the position. Clients may write meanwhile, but not to the field.

use crate::execute::access::{Access, find};
use crate::execute::evaluate::{HostDifference, becomes};
use crate::execute::gate::Point;
use crate::life::lift::order_rows::is_order_row;
use crate::life::replaced::amount::Of;
use crate::life::replaced::handover::{Handed, hand_over};
use crate::life::replaced::{Amount, Places, amount, host_of, rows_between};
use crate::life::transaction::OwnTransaction;
use crate::life::walk::{self, Pace, PartDone, PartOfWalk, PartWork, WalkEnd, walk};
use crate::life::{CatalogRule, Life, catalog, lift, write_differences};
use crate::rule::names;
use crate::rule::{Fate, Rule, key};
use document::backend::{Answer, Session};
use document::filter::{Filter, Node, Test};
use document::op::{Context, Count, Durability, ReadOp};
use document::value::{Path, order};
use document::{Array, Code, Doc, Error, Result, Value};
use hashbrown::HashMap;
use std::cmp::Ordering;

/// How many hosts are looked at in one transaction, which writes about so many bytes.
const PACE: Pace = Pace { first: 500, most: 500, bytes: 8 << 20 };

/// Fails if what was kept of the rule's hosts is not there: then giving it back would only take values away.
pub(crate) async fn check(at: &mut Access<'_>, row: &catalog::Row, rule: &Rule) -> Result<()> {
    let refused = |why: &str, hint: String| Err(Error::new(Code::OperationFailed, why.to_owned()).with_hint(hint));
    let hint = format!("`pleach drop {}` without --restore leaves the values as they are", rule.name);
    let Some(since) = row.replaced.since else {
        let why = format!(
            "nothing is kept of what was there before rule {}: it was freed by `forget`, or the rule came with a dump or from an older version",
            rule.name
        );
        return refused(&why, hint);
    };
    let (mut expected, mut there) = (0, count(at, rule, since).await?);
    for of in amount::lives(at, &rule.host.db, &rule.name).await? {
        expected += of.amount.documents;
        if of.since != since {
            there += count(at, rule, of.since).await?;
        }
    }
    if there < expected {
        let why = format!(
            "of {expected} documents that were kept before rule {} changed them, {} holds only {there}",
            rule.name,
            names::replaced(&rule.host.db)
        );
        let hint = format!("a dump may have left them out: restore that collection first; {hint}");
        return refused(&why, hint);
    }
    Ok(())
}

async fn count(at: &mut Access<'_>, rule: &Rule, since: i64) -> Result<i64> {
    let (first, last) = (
        crate::life::replaced::host_id(&rule.name, since, None),
        crate::life::replaced::host_id(&rule.name, since, Some(&Value::MaxKey)),
    );
    let range = vec![Node::field("_id", Test::Gte(first)), Node::field("_id", Test::Lte(last))];
    let filter = Filter::from_node(Node::And(range));
    let op = Count { ns: names::replaced(&rule.host.db), filter, skip: 0, limit: None, hint: None };
    let rows = at.all(ReadOp::Count(op)).await?;
    Ok(rows.first().map_or(0, |row| catalog::long(row.get("n"))))
}

/// Gives back what is left of all lives; the caller removes the rule.
pub(crate) async fn restore(life: &Life, entry: &CatalogRule) -> Result<()> {
    let mut row = entry.row.clone();
    let (mut session, context) = (Session::default(), life.context());
    let mut at = Access { backend: &*life.backend, session: &mut session, context: &context };
    while let Some(since) = row.replaced.since {
        let lives = amount::lives(&mut at, &entry.db, &entry.rule.name).await?;
        let then = lives.iter().find(|of| of.since == since).and_then(Of::rule);
        let rule = then.as_ref().unwrap_or(&entry.rule);
        let array = row.replaced.lifted.as_ref().map(|lifted| Path::new(&lifted.array));
        let Some(given) = lift::restore::restore(life, entry, row, since, rule).await? else {
            return life.reload().await;
        };
        row = given;
        let places = Places::of(rule).without(array.as_ref());
        let Some(done) = restore_life(life, entry, row, since, &places).await? else { return life.reload().await };
        let Some(older) = lives.into_iter().find(|of| of.since < since) else { return Ok(()) };
        row = done;
        (row.replaced.since, row.replaced.seeded_to) = (Some(older.since), older.seeded_to);
        row.replaced.lifted = older.lifted;
        (row.replaced.restored_to, row.done) = (None, 0);
        if !catalog::replace(&mut at, &entry.db, &row, row.epoch).await? {
            return life.reload().await;
        }
        life.advanced(&entry.db, &row);
    }
    Ok(())
}

/// Gives back what one life of the rule has kept. Returns the rule's row as it is then, or `None` if somebody has changed the rule
/// meanwhile.
async fn restore_life(
    life: &Life,
    entry: &CatalogRule,
    row: catalog::Row,
    since: i64,
    places: &Places,
) -> Result<Option<catalog::Row>> {
    let position = row.replaced.restored_to.clone();
    if matches!(position, Some(Value::MaxKey)) {
        return Ok(Some(row));
    }
    let mut returning = ReturningValues { life, entry, row, since, places };
    let end = walk(life, PACE, position, &mut returning).await?;
    Ok((end == WalkEnd::Reached).then_some(returning.row))
}

/// What one life of the rule has kept.
struct ReturningValues<'a> {
    life: &'a Life,
    entry: &'a CatalogRule,
    row: catalog::Row,
    since: i64,
    places: &'a Places,
}

impl PartWork for ReturningValues<'_> {
    fn part<'a>(&'a mut self, part: PartOfWalk<'a>) -> Answer<'a, Option<PartDone>> {
        Box::pin(self.one_part(part))
    }
}

impl ReturningValues<'_> {
    async fn one_part(&mut self, part: PartOfWalk<'_>) -> Result<Option<PartDone>> {
        let ReturningValues { life, entry, ref row, since, places } = *self;
        let (rule, from) = (&entry.rule, part.from);
        let context = &Context { durability: Durability::Relaxed, ..life.context() };
        // Held until the commit: another process that applies the rule anew waits for this one.
        let _held = life.patterned.rules();
        let mut began = OwnTransaction::begin(life, context).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if catalog::epoch(&mut at, &rule.host.db, &row.rule).await? != Some(row.epoch) {
            return Ok(None);
        }
        life.pass(Point::Life("take")).await?;
        let (hosts, to) = walk::read(&mut at, &rule.host, part, None).await?;
        let mut kept = at.find(rows_between(rule, since, from, to.as_ref())).await?;
        kept.retain(|row| !is_order_row(row));
        let was: HashMap<Vec<u8>, &Doc<'static>> =
            kept.iter().filter_map(|row| Some((key::bytes(&host_of(row)?), row))).collect();
        let (mut differences, mut used, mut amount) = (Vec::new(), Vec::new(), Amount::default());
        let mut handed = Vec::new();
        for host in &hosts {
            let id = host.get("_id").unwrap_or(Value::Null);
            let record = was.get(&key::bytes(&id));
            let right = match record.map(|row| (row, row.get("was"))) {
                Some((row, Some(Value::Array(record)))) => {
                    used.extend(row.get("_id"));
                    if !record.is_empty() {
                        amount.add(row);
                    }
                    let right = places.give_back(host, &record);
                    let entries = places.in_the_way(&right, &record);
                    if !entries.is_empty() {
                        handed.push(Handed { host: id.clone(), entries });
                    }
                    right
                }
                _ if is_seeded(row, &id) => places.give_back(host, &Array::empty()),
                // Seeding has not come to it: it has what it had.
                _ => continue,
            };
            if right.as_bytes() != host.as_bytes() {
                differences.push(difference(host, &right));
            }
        }
        life.pass(Point::Life("give back")).await?;
        write_differences::write(life, &mut began, rule, &differences).await?;
        let mut at = Access { backend: &*life.backend, session: &mut began.session, context };
        if !used.is_empty() {
            at.delete(&names::replaced(&rule.host.db), among(used)).await?;
            let taken = Amount { documents: -amount.documents, bytes: -amount.bytes };
            amount::add(&mut at, rule, since, taken).await?;
            hand_over(life, &mut at, entry, &handed).await?;
        }
        let mut next = row.clone();
        next.replaced.restored_to = Some(to.clone().unwrap_or(Value::MaxKey));
        next.done += i64::try_from(hosts.len()).unwrap_or(i64::MAX);
        life.pass(Point::Life("save")).await?;
        catalog::save(&mut at, &rule.host.db, &next).await?;
        began.commit().await?;
        life.advanced(&entry.db, &next);
        self.row = next;
        Ok(Some(PartDone::of(&hosts, to)))
    }
}

/// Whether the rule had seeded the host when it was dropped.
fn is_seeded(row: &catalog::Row, id: &Value<'_>) -> bool {
    match &row.replaced.seeded_to {
        Some(Value::MaxKey) => true,
        Some(to) => order::compare(id, to) == Ordering::Less,
        None => false,
    }
}

fn difference(host: &Doc<'static>, right: &Doc<'static>) -> HostDifference {
    HostDifference {
        id: host.get("_id").unwrap_or(Value::Null),
        keys: Default::default(),
        stored: Value::Missing,
        expected: Value::Missing,
        fate: Fate::Corrected,
        obstacle: None,
        update: becomes(host, right),
    }
}

pub(crate) fn among(ids: Vec<Value<'static>>) -> Filter {
    Filter::among("_id", ids)
}

/// The rows of some hosts.
pub(crate) async fn rows(at: &mut Access<'_>, db: &str, ids: Vec<Value<'static>>) -> Result<Vec<Doc<'static>>> {
    match ids.is_empty() {
        true => Ok(Vec::new()),
        false => at.find(find(&names::replaced(db), among(ids))).await,
    }
}
