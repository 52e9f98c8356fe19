//! Several rules in one sub-document of a host: the first one that was seeded knows that the sub-document was empty, or no document
//! at all. If it is dropped first, the others learn it, so that the last one leaves the host as it was.

use super::amount::{self, Amount};
use super::restore::rows;
use super::{host_id, host_of};
use crate::life::records::At;
use crate::life::{Entry, Life, names};
use crate::link::key;
use crate::mql;
use document::{Array, ArrayWriter, Doc, Result, Value};
use hashbrown::HashMap;

/// What a host had on the way to a rule's field, where others still have theirs.
pub(super) struct Handed {
    pub(super) host: Value<'static>,
    /// Entries of a record, each with its path.
    pub(super) entries: Vec<(String, Doc<'static>)>,
}

/// Adds it to what is kept of the other rules, in the transaction that takes it from this one.
pub(super) async fn hand_over(life: &Life, at: &mut At<'_>, from: &Entry, handed: &[Handed]) -> Result<()> {
    let is_other = |entry: &Entry| entry.rule.host == from.rule.host && entry.rule.name != from.rule.name;
    for other in life.entries().into_iter().filter(is_other) {
        let Some(since) = other.row.replaced.since else { continue };
        let field = other.rule.field.dotted();
        let leads = |path: &str| field.strip_prefix(path).is_some_and(|rest| rest.starts_with('.'));
        let concerned = handed.iter().filter(|handed| handed.entries.iter().any(|(path, _)| leads(path)));
        let concerned: Vec<&Handed> = concerned.collect();
        if concerned.is_empty() {
            continue;
        }
        let ids = concerned.iter().map(|handed| host_id(&other.rule.name, since, Some(&handed.host))).collect();
        let known = rows(at, &other.db, ids).await?;
        let known: HashMap<Vec<u8>, &Doc<'static>> =
            known.iter().filter_map(|row| Some((key::bytes(&host_of(row)?), row))).collect();
        let mut change = Amount::default();
        for handed in concerned {
            let row = known.get(&key::bytes(&handed.host)).copied();
            let before = row.and_then(|row| row.get("was"));
            let more = handed.entries.iter().filter(|(path, _)| leads(path)).map(|(_, entry)| entry);
            let was = with_more(before.as_ref(), more);
            let id = host_id(&other.rule.name, since, Some(&handed.host));
            let new = mql::document([("_id", id), ("was", Value::Array(was))]);
            // A row that says that the host had nothing is not counted.
            if let Some(row) = row.filter(|_| !matches!(&before, Some(Value::Array(was)) if was.is_empty())) {
                change = change.minus(row);
            }
            change.add(&new);
            at.put(&names::replaced(&other.db), &new).await?;
        }
        amount::add(at, &other.rule, since, change).await?;
    }
    Ok(())
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
