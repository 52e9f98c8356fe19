//! Several rules in one sub-document of a host: the first one that was seeded knows that the sub-document was empty, or no document
//! at all. If it is dropped first, the others learn it, so that the last one leaves the host as it was.

use crate::execute::access::Access;
use crate::life::replaced::amount::Amount;
use crate::life::replaced::restore::rows;
use crate::life::replaced::{OnTheWay, Places, amount, host_id, host_of};
use crate::life::{CatalogRule, Life};
use crate::mql;
use crate::rule::names;
use crate::rule::{Rule, key};
use document::{Array, ArrayWriter, Doc, Result, Value};
use hashbrown::HashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a host had on the way to a rule's field, where others still have theirs.
pub(super) struct Handed {
    pub(super) host: Value<'static>,
    pub(super) entries: Vec<OnTheWay>,
}

/// Adds it to what is kept of the other rules, in the transaction that takes it from this one.
pub(super) async fn hand_over(life: &Life, at: &mut Access<'_>, from: &CatalogRule, handed: &[Handed]) -> Result<()> {
    if handed.is_empty() {
        return Ok(());
    }
    for (other, since) in others(life, at, from).await? {
        let places = Places::of(&other);
        let concerned = handed.iter().filter(|handed| handed.entries.iter().any(|way| way.leads_to(&places)));
        let concerned: Vec<&Handed> = concerned.collect();
        if concerned.is_empty() {
            continue;
        }
        let ids = concerned.iter().map(|handed| host_id(&other.name, since, Some(&handed.host))).collect();
        let known = rows(at, &other.host.db, ids).await?;
        let known: HashMap<Vec<u8>, &Doc<'static>> =
            known.iter().filter_map(|row| Some((key::bytes(&host_of(row)?), row))).collect();
        let mut change = Amount::default();
        for handed in concerned {
            let row = known.get(&key::bytes(&handed.host)).copied();
            let before = row.and_then(|row| row.get("was"));
            let more = handed.entries.iter().filter(|way| way.leads_to(&places)).map(|way| &way.entry);
            let was = with_more(before.as_ref(), more);
            let id = host_id(&other.name, since, Some(&handed.host));
            let new = mql::document([("_id", id), ("was", Value::Array(was))]);
            // A row that says that the host had nothing is not counted.
            if let Some(row) = row.filter(|_| !matches!(&before, Some(Value::Array(was)) if was.is_empty())) {
                change = change.minus(row);
            }
            change.add(&new);
            at.put(&names::replaced(&other.host.db), &new).await?;
        }
        amount::add(at, &other, since, change).await?;
    }
    Ok(())
}

/// The other rules of the collection that keep what hosts had, each with the first life that does; also those that are gone.
async fn others(life: &Life, at: &mut Access<'_>, from: &CatalogRule) -> Result<Vec<(Arc<Rule>, i64)>> {
    let mut others: BTreeMap<Arc<str>, (Arc<Rule>, i64)> = BTreeMap::new();
    let living =
        life.entries().into_iter().filter_map(|entry| entry.row.replaced.since.map(|since| (entry.rule, since)));
    let gone = amount::all(at, &from.db).await?;
    let gone = gone.iter().filter_map(|of| Some((Arc::new(of.rule()?), of.since)));
    for (rule, since) in living.chain(gone) {
        if rule.host == from.rule.host && rule.name != from.rule.name {
            let first = others.entry(rule.name.clone()).or_insert((rule, since));
            first.1 = first.1.min(since);
        }
    }
    Ok(others.into_values().collect())
}

fn with_more<'e>(before: Option<&Value<'_>>, more: impl Iterator<Item = &'e Doc<'static>>) -> Array<'static> {
    let mut was = ArrayWriter::new();
    if let Some(Value::Array(before)) = before {
        before.iter().for_each(|entry| {
            was.push(&entry);
        });
    }
    more.for_each(|entry| {
        was.push(&Value::Document(entry.borrow()));
    });
    was.finish()
}
