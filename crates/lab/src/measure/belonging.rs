//! How a stored document of a candidate belongs to a unit of the sample.

use super::sizes::Spread;
use crate::keys::Key;
use crate::line::Rows;
use crate::plan::Plan;
use crate::sample::Sample;
use crate::store::{Candidate, Store};
use bson::doc;
use document::{Doc, Result};
use patterns::rule::Rule;
use patterns::rule::shape::Shape;
use std::sync::Arc;

/// How the documents of a stored collection are known to belong to a unit.
pub(super) enum Belonging {
    /// Clients' documents, with the key of the plan's collection.
    Plain { at: usize },
    /// The first document that a stored one becomes has it.
    Decoded { at: usize, shape: Arc<dyn Shape> },
    /// A field names the `_id` of a document of the plan.
    Owned { at: usize, owner: Key },
    /// Made by grouping others: as many as the whole has groups.
    Grouped { rule: Arc<Rule> },
}

pub(super) fn belonging(candidate: &Candidate, plan: &Plan, name: &str) -> Option<Belonging> {
    for rule in &candidate.rules {
        let host = plan.place(&rule.host.collection);
        if let (Some(at), Some(place)) = (host, rule.declared_place())
            && *place.stored.collection == *name
        {
            return Some(Belonging::Decoded { at, shape: place.shape });
        }
        if let (Some(at), Some(outlier)) = (host, rule.outlier())
            && *outlier.overflow.collection == *name
        {
            return Some(Belonging::Owned { at, owner: Key::of_fields([&*outlier.owner].into_iter()) });
        }
        if *rule.host.collection == *name && rule.link().is_some_and(|link| link.create) {
            return Some(Belonging::Grouped { rule: rule.clone() });
        }
    }
    plan.place(name).map(|at| Belonging::Plain { at })
}

/// Documents and bytes of each unit.
pub(super) async fn by_unit(
    store: &Store,
    name: &str,
    belonging: &Belonging,
    plan: &Plan,
    sample: &Sample,
    spread: &mut Spread,
) -> Result<Vec<(f64, f64)>> {
    let mut of_units = vec![(0.0, 0.0); sample.units.len()];
    let mut rows = Rows::find(&store.stored, &store.db, name, doc! {}).await?;
    while let Some(doc) = rows.next().await? {
        let Some(unit) = unit_of(&doc, belonging, plan, sample)? else { continue };
        let (place, taken) = (of_units.get_mut(unit as usize), sample.units.get(unit as usize));
        if let (Some(place), Some(taken)) = (place, taken) {
            let size = doc.as_bytes().len();
            place.0 += 1.0;
            place.1 += size as f64;
            spread.add(size as u64, taken.weight);
        }
    }
    Ok(of_units)
}

fn unit_of(doc: &Doc<'_>, belonging: &Belonging, plan: &Plan, sample: &Sample) -> Result<Option<u32>> {
    let of_member = |at: usize, doc: &Doc<'_>| {
        let member = plan.members.get(at)?;
        let (by, key) = (plan.unit_key(at), member.key.of(doc));
        let found = sample.belongs.get(&by).and_then(|units| units.get(&key)).map(|(_, unit)| *unit);
        found.or_else(|| sample.lowered.get(&by)?.get(&key).copied())
    };
    Ok(match belonging {
        Belonging::Plain { at } => of_member(*at, doc),
        Belonging::Decoded { at, shape } => {
            let mut first = None;
            shape.decode(doc, &mut |logical| {
                if first.is_none() {
                    first = Some(logical);
                }
                Ok(())
            })?;
            first.and_then(|logical| of_member(*at, &logical))
        }
        Belonging::Owned { at, owner } => {
            let ids = sample.belongs.get(&(*at, Key::id().dotted()));
            ids.and_then(|ids| ids.get(&owner.of(doc))).map(|(_, unit)| *unit)
        }
        Belonging::Grouped { .. } => None,
    })
}
