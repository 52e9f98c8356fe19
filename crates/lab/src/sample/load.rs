//! Puts the units that were chosen, and what they refer to, into every scratch store: batch by batch, never all in memory.

use super::survey::{Surveyed, Units, unpacked};
use super::{Amount, Report, Sample, Taken};
use crate::keys::{Key, canonical};
use crate::plan::Plan;
use crate::random::Random;
use crate::source::Source;
use crate::store::Store;
use document::{Doc, DocWriter, Result, Value};
use patterns::rule::key::linked;
use std::collections::HashMap;

/// How many documents of each collection the mix is made of.
const POOL: usize = 400;

/// Copies of copies are followed so far.
const DEEPEST: usize = 6;

pub(super) async fn load(
    source: &Source,
    plan: &Plan,
    surveyed: Surveyed,
    amount: Amount,
    seed: u64,
    stores: &[Store],
    report: &mut Report<'_>,
) -> Result<Sample> {
    let all = surveyed.units.values().map(Units::documents).sum();
    let pools = vec![Vec::new(); plan.members.len()];
    let mut sample = Sample { of: all, pools, counts: surveyed.counts, ..Sample::default() };
    let mut budget = 0;
    let mut families: Vec<(usize, Units)> = surveyed.units.into_iter().collect();
    families.sort_by_key(|(root, _)| *root);
    for (root, units) in families {
        let documents = amount.of(units.documents(), all);
        budget += documents;
        choose(&mut sample, plan, root, units, documents);
    }
    let mut loader = Loader {
        source,
        plan,
        stores,
        sample,
        batches: vec![(Vec::new(), 0); plan.members.len()],
        references: vec![HashMap::new(); plan.references.len()],
        random: Random::seeded(seed),
        pool_keys: vec![Vec::new(); plan.members.len()],
        budget,
        report,
    };
    for at in 0..plan.members.len() {
        loader.indexes(at).await?;
    }
    for at in 0..plan.members.len() {
        loader.units(at).await?;
    }
    loader.references().await?;
    loader.flush_all().await?;
    loader.sample.is_snapshot = source.is_snapshot();
    Ok(loader.sample)
}

/// Chooses the units of one family.
fn choose(sample: &mut Sample, plan: &Plan, root: usize, units: Units, documents: u64) {
    let (strata, chosen) = units.take(documents);
    let mut taken_of = vec![0_u64; strata.len()];
    chosen.iter().for_each(|unit| {
        if let Some(count) = taken_of.get_mut(unit.stratum) {
            *count += 1;
        }
    });
    let Some(key) = plan.members.get(root).map(|member| member.key.clone()) else { return };
    let mut belongs = HashMap::new();
    for unit in chosen {
        let (of, from) = (strata.get(unit.stratum), taken_of.get(unit.stratum));
        let weight = of.zip(from).map_or(1.0, |(of, from)| of.units as f64 / (*from).max(1) as f64);
        let group = unpacked(&unit.key);
        let number = u32::try_from(sample.units.len()).unwrap_or(u32::MAX);
        belongs.insert(key.of_group(&group), (key.first(&group), number));
        sample.units.push(Taken {
            family: root,
            stratum: unit.stratum,
            documents: unit.documents,
            bytes: unit.bytes,
            weight,
        });
    }
    sample.belongs.insert((root, key.dotted()), belongs);
    sample.families.insert(root, strata);
}

struct Loader<'l, 'r> {
    source: &'l Source,
    plan: &'l Plan,
    stores: &'l [Store],
    sample: Sample,
    /// What waits to be inserted, by collection, with its bytes.
    batches: Vec<(Vec<Doc<'static>>, usize)>,
    /// The values that documents refer to, by reference, and whether they were followed.
    references: Vec<HashMap<Vec<u8>, (Value<'static>, bool)>>,
    random: Random,
    /// The lot that each document of each pool has drawn.
    pool_keys: Vec<Vec<f64>>,
    budget: u64,
    report: &'l mut Report<'r>,
}

impl Loader<'_, '_> {
    /// The indexes that a collection has today.
    async fn indexes(&mut self, at: usize) -> Result<()> {
        let plan = self.plan;
        let Some(member) = plan.members.get(at) else { return Ok(()) };
        let indexes = self.source.indexes(&member.name).await;
        let mut left = Vec::new();
        for store in self.stores {
            left.extend(store.make_indexes(&member.name, &indexes).await?);
        }
        left.sort();
        left.dedup();
        self.sample.notes.extend(left.into_iter().map(|name| {
            format!("the index {name} cannot be made in the scratch store: its bytes are missing (--scratch mongodb://… has all kinds)")
        }));
        Ok(())
    }

    /// All documents of a collection that belong to units.
    async fn units(&mut self, at: usize) -> Result<()> {
        let plan = self.plan;
        let Some(member) = plan.members.get(at) else { return Ok(()) };
        let by = plan.unit_key(at);
        let Some(wanted) = self.sample.belongs.get(&by) else { return Ok(()) };
        let wanted: HashMap<Vec<u8>, u32> = wanted.iter().map(|(key, (_, unit))| (key.clone(), *unit)).collect();
        let mut values: HashMap<Vec<u8>, Value<'static>> = HashMap::new();
        for (value, _) in self.sample.belongs.get(&by).into_iter().flat_map(HashMap::values) {
            values.entry(canonical(value)).or_insert_with(|| value.clone());
        }
        let Some(path) = member.key.dotted().into_iter().next() else { return Ok(()) };
        let source = self.source;
        source
            .with_values(&member.name, &path, values.values(), async |doc| {
                // Other series with the same first field come along.
                match wanted.get(&member.key.of(&doc)) {
                    Some(unit) => self.add(at, doc, Some(*unit)).await,
                    None => Ok(()),
                }
            })
            .await
    }

    /// What the loaded documents refer to, and so on.
    async fn references(&mut self) -> Result<()> {
        let plan = self.plan;
        for _ in 0..DEEPEST {
            let mut found = false;
            for (at, reference) in plan.references.iter().enumerate() {
                let mut due = Vec::new();
                for (value, followed) in self.references.get_mut(at).into_iter().flat_map(HashMap::values_mut) {
                    if !std::mem::replace(followed, true) {
                        due.push(value.clone());
                    }
                }
                let Some(target) = plan.members.get(reference.to) else { continue };
                if due.is_empty() {
                    continue;
                }
                found = true;
                let source = self.source;
                source
                    .with_values(&target.name, &reference.foreign.dotted(), due.iter(), async |doc| {
                        self.add(reference.to, doc, None).await
                    })
                    .await?;
            }
            if !found {
                return Ok(());
            }
        }
        Ok(())
    }

    /// One document; `unit` is nothing if it was only taken for another one.
    async fn add(&mut self, at: usize, doc: Doc<'static>, unit: Option<u32>) -> Result<()> {
        let doc = without_bookkeeping(doc);
        let plan = self.plan;
        if let Some(unit) = unit
            && let Some(member) = plan.members.get(at)
        {
            let by = plan.unit_key(at);
            if let Some(lowered) = member.key.lowered(&doc) {
                self.sample.lowered.entry(by).or_default().entry(lowered).or_insert(unit);
            }
            for key in &member.referred {
                let value = first_value(key, &doc);
                self.sample.belongs.entry((at, key.dotted())).or_default().entry(key.of(&doc)).or_insert((value, unit));
            }
            self.sample.documents += 1;
        }
        for (reference, values) in plan.references.iter().zip(&mut self.references) {
            if reference.from == at && (unit.is_some() || !reference.of_units) {
                for value in linked(&doc, &reference.local).values {
                    values.entry(canonical(&value)).or_insert((value, false));
                }
            }
        }
        let taken = unit.and_then(|unit| self.sample.units.get(unit as usize));
        let weight = taken.map_or(1.0, |taken| taken.weight);
        self.pool(at, &doc, weight);
        let Some((batch, bytes)) = self.batches.get_mut(at) else { return Ok(()) };
        *bytes += doc.as_bytes().len();
        batch.push(doc);
        if *bytes >= 4 << 20 || batch.len() >= 5_000 {
            self.flush(at).await?;
        }
        Ok(())
    }

    /// Every document of the whole has the same chance to stay: one of a unit that stands for many has so much more, by the method
    /// of Efraimidis and Spirakis.
    fn pool(&mut self, at: usize, doc: &Doc<'static>, weight: f64) {
        let (Some(pool), Some(keys)) = (self.sample.pools.get_mut(at), self.pool_keys.get_mut(at)) else { return };
        let key = self.random.fraction().powf(1.0 / weight.max(1e-9));
        if pool.len() < POOL {
            pool.push(doc.clone());
            keys.push(key);
            return;
        }
        let lowest = keys.iter().enumerate().min_by(|(_, one), (_, other)| one.total_cmp(other));
        let Some(place) = lowest.filter(|(_, lowest)| **lowest < key).map(|(place, _)| place) else { return };
        if let (Some(old), Some(old_key)) = (pool.get_mut(place), keys.get_mut(place)) {
            (*old, *old_key) = (doc.clone(), key);
        }
    }

    async fn flush(&mut self, at: usize) -> Result<()> {
        let (Some(member), Some((batch, bytes))) = (self.plan.members.get(at), self.batches.get_mut(at)) else {
            return Ok(());
        };
        *bytes = 0;
        let batch = std::mem::take(batch);
        if batch.is_empty() {
            return Ok(());
        }
        for store in self.stores {
            store.insert(&member.name, &batch).await?;
        }
        (self.report)(self.sample.documents, self.budget);
        Ok(())
    }

    async fn flush_all(&mut self) -> Result<()> {
        for at in 0..self.batches.len() {
            self.flush(at).await?;
        }
        Ok(())
    }
}

fn first_value(key: &Key, doc: &Doc<'_>) -> Value<'static> {
    let path = key.dotted().into_iter().next().unwrap_or_default();
    let path = patterns::rule::KeyPath::new(document::value::Path::new(&path));
    linked(doc, &path).values.into_iter().next().unwrap_or(Value::Null)
}

/// What rules in force keep beside a document's own fields is made anew in the scratch store.
fn without_bookkeeping(doc: Doc<'static>) -> Doc<'static> {
    const OURS: &str = "_pleach";
    if !doc.contains(OURS) {
        return doc;
    }
    let mut kept = DocWriter::new();
    for (name, value) in doc.iter().filter(|(name, _)| name.as_str() != OURS) {
        kept.append(name.as_str(), &value);
    }
    kept.finish()
}
