//! What a built candidate takes: as its statistics say, and for which unit of the sample, so that it can be carried to the whole.

use crate::estimate::{Estimate, Measured};
use crate::keys::Key;
use crate::line::{self, Line, Rows};
use crate::plan::Plan;
use crate::sample::Sample;
use crate::store::{Candidate, Store};
use bson::{Document, doc};
use document::{Doc, Result};
use patterns::rule::Rule;
use patterns::rule::shape::Shape;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes as the statistics of collections say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bytes {
    pub data: f64,
    pub indexes: f64,
    /// Documents on disk, compressed.
    pub disk: f64,
}

/// One stored collection.
#[derive(Clone, Debug)]
pub struct Stored {
    pub name: String,
    pub documents: f64,
    pub bytes: Bytes,
    pub full_documents: Estimate,
    pub full_data: Estimate,
}

/// All that a candidate takes.
#[derive(Clone, Debug, Default)]
pub struct Sizes {
    pub collections: Vec<Stored>,
    /// Of all collections: what units have in several is estimated together.
    pub full_documents: Estimate,
    pub full_data: Estimate,
    /// Sizes of documents, with how many of the whole each stands for.
    pub spread: Spread,
}

impl Sizes {
    pub fn documents(&self) -> f64 {
        self.collections.iter().map(|stored| stored.documents).sum()
    }

    pub fn bytes(&self) -> Bytes {
        sum(self.collections.iter().map(|stored| stored.bytes))
    }

    /// The same of the whole: indexes grow with documents, what is on disk with the data.
    pub fn full(&self) -> Bytes {
        sum(self.collections.iter().map(|stored| Bytes {
            data: stored.full_data.total,
            indexes: stored.bytes.indexes * times(stored.full_documents.total, stored.documents),
            disk: stored.bytes.disk * times(stored.full_data.total, stored.bytes.data),
        }))
    }

    /// The share by which the whole may differ.
    pub fn error(&self) -> f64 {
        self.full_data.share().max(self.full_documents.share())
    }

    pub fn average(&self) -> f64 {
        times(self.full_data.total, self.full_documents.total)
    }
}

fn sum(all: impl Iterator<Item = Bytes>) -> Bytes {
    all.fold(Bytes::default(), |sum, one| Bytes {
        data: sum.data + one.data,
        indexes: sum.indexes + one.indexes,
        disk: sum.disk + one.disk,
    })
}

fn times(whole: f64, part: f64) -> f64 {
    if part > 0.0 { whole / part } else { 0.0 }
}

/// Sizes of documents with their weights.
#[derive(Clone, Debug, Default)]
pub struct Spread(BTreeMap<u64, f64>);

impl Spread {
    pub fn add(&mut self, size: u64, weight: f64) {
        *self.0.entry(size).or_default() += weight;
    }

    /// The size that this share of documents does not exceed.
    pub fn quantile(&self, share: f64) -> u64 {
        let wanted = self.0.values().sum::<f64>() * share;
        let mut seen = 0.0;
        for (size, weight) in &self.0 {
            seen += weight;
            if seen >= wanted - 1e-9 {
                return *size;
            }
        }
        self.0.keys().next_back().copied().unwrap_or_default()
    }
}

/// What the statistics of one collection say.
pub async fn statistics(line: &Line, db: &str, collection: &str) -> Result<(f64, Bytes)> {
    let stats = line::run(line, db, doc! { "collStats": collection }).await?;
    let figure = |name: &str| line::number(&stats, name);
    let bytes = Bytes { data: figure("size"), indexes: figure("totalIndexSize"), disk: figure("storageSize") };
    Ok((figure("count"), bytes))
}

/// The collections that are stored in a database and are not bookkeeping.
pub async fn stored_collections(line: &Line, db: &str) -> Result<Vec<String>> {
    let listed = line::all(line, db, doc! { "listCollections": 1 }).await?;
    let is_stored = |entry: &&Document| entry.get_str("type").unwrap_or("collection") == "collection";
    let names = listed.iter().filter(is_stored).filter_map(|entry| entry.get_str("name").ok());
    let mut names: Vec<String> =
        names.filter(|name| !name.starts_with("pleach.") && !name.starts_with("system.")).map(str::to_owned).collect();
    names.sort();
    Ok(names)
}

/// How the documents of a stored collection are known to belong to a unit.
enum Belonging {
    /// Clients' documents, with the key of the plan's collection.
    Plain { at: usize },
    /// The first document that a stored one becomes has it.
    Decoded { at: usize, shape: Arc<dyn Shape> },
    /// A field names the `_id` of a document of the plan.
    Owned { at: usize, owner: Key },
    /// Made by grouping others: as many as the whole has groups.
    Grouped { rule: Arc<Rule> },
}

fn belonging(candidate: &Candidate, plan: &Plan, name: &str) -> Option<Belonging> {
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

/// Measures a store in which a candidate is built. `groups` says how many groups the whole has.
pub async fn sizes(
    store: &Store,
    candidate: &Candidate,
    plan: &Plan,
    sample: &Sample,
    groups: &impl AsyncFn(&Rule) -> Result<f64>,
) -> Result<Sizes> {
    let names = stored_collections(&store.stored, &store.db).await?;
    if store.is_mongodb {
        // Sizes on disk are those of the last checkpoint.
        let _allowed = line::run(&store.stored, "admin", doc! { "fsync": 1 }).await;
    }
    let mut all = Sizes::default();
    let mut together: Vec<(f64, f64)> = vec![(0.0, 0.0); sample.units.len()];
    for name in names {
        if !store.is_mongodb {
            // As it would be after a while: without what was overwritten.
            line::run(&store.stored, &store.db, doc! { "compact": &*name }).await?;
        }
        let (documents, bytes) = statistics(&store.stored, &store.db, &name).await?;
        if documents == 0.0 {
            continue;
        }
        let belonging = belonging(candidate, plan, &name);
        let (full_documents, full_data) = match &belonging {
            Some(Belonging::Grouped { rule }) => {
                let groups = Estimate::exact(groups(rule).await?);
                spread_evenly(store, &name, groups.total / documents, &mut all.spread).await?;
                (groups, groups.times(bytes.data / documents))
            }
            Some(known) => {
                let of_units = by_unit(store, &name, known, plan, sample, &mut all.spread).await?;
                for (sum, own) in together.iter_mut().zip(&of_units) {
                    sum.0 += own.0;
                    sum.1 += own.1;
                }
                totals(sample, &of_units)
            }
            None => {
                let times = sample.of as f64 / sample.documents.max(1) as f64;
                (Estimate::exact(documents * times), Estimate::exact(bytes.data * times))
            }
        };
        if !matches!(belonging, Some(Belonging::Plain { .. } | Belonging::Decoded { .. } | Belonging::Owned { .. })) {
            all.full_documents = all.full_documents.and(full_documents);
            all.full_data = all.full_data.and(full_data);
        }
        all.collections.push(Stored { name, documents, bytes, full_documents, full_data });
    }
    let (documents, data) = totals(sample, &together);
    all.full_documents = all.full_documents.and(documents);
    all.full_data = all.full_data.and(data);
    Ok(all)
}

/// Documents and bytes of each unit.
async fn by_unit(
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
        let by = match &member.follows {
            Some(follows) => (follows.parent, follows.by.dotted()),
            None => (at, member.key.dotted()),
        };
        sample.belongs.get(&by)?.get(&member.key.of(doc)).map(|(_, unit)| *unit)
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

async fn spread_evenly(store: &Store, name: &str, weight: f64, spread: &mut Spread) -> Result<()> {
    let mut rows = Rows::find(&store.stored, &store.db, name, doc! {}).await?;
    while let Some(doc) = rows.next().await? {
        spread.add(doc.as_bytes().len() as u64, weight);
    }
    Ok(())
}

/// Documents and bytes of the whole, family by family.
fn totals(sample: &Sample, of_units: &[(f64, f64)]) -> (Estimate, Estimate) {
    let (mut documents, mut data) = (Estimate::default(), Estimate::default());
    for (family, strata) in &sample.families {
        let measured = |figure: fn(&(f64, f64)) -> f64| -> Vec<Measured> {
            let units = sample.units.iter().zip(of_units).filter(|(taken, _)| taken.family == *family);
            let one = |(taken, own): (&crate::sample::Taken, &(f64, f64))| Measured {
                stratum: taken.stratum,
                today: taken.today as f64,
                then: figure(own),
            };
            units.map(one).collect()
        };
        documents = documents.and(Estimate::of(strata, &measured(|own| own.0)));
        data = data.and(Estimate::of(strata, &measured(|own| own.1)));
    }
    (documents, data)
}

/// How many groups a roll-up makes of the whole.
pub async fn groups(source: &crate::source::Source, rule: &Rule) -> Result<f64> {
    let Some(link) = rule.link() else { return Ok(0.0) };
    let by = match &link.foreign {
        patterns::rule::LinkKey::Path(key) => bson::Bson::String(format!("${}", key.path.dotted())),
        patterns::rule::LinkKey::Expression(expression) => {
            let mut doc = document::DocWriter::new();
            doc.append("by", &expression.source);
            Document::try_from(&doc.finish())?.remove("by").unwrap_or(bson::Bson::Null)
        }
    };
    let pipeline =
        vec![doc! { "$group": { "_id": by } }, doc! { "$match": { "_id": { "$ne": null } } }, doc! { "$count": "n" }];
    let command =
        doc! { "aggregate": &*link.source.collection, "pipeline": pipeline, "allowDiskUse": true, "cursor": {} };
    let mut rows = source.rows(command).await?;
    let found = rows.next().await?;
    Ok(found.map_or(Ok(Document::new()), |row| Document::try_from(&row)).map(|row| line::number(&row, "n"))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_weighed() {
        let mut spread = Spread::default();
        spread.add(100, 99.0);
        spread.add(5_000, 1.0);
        assert_eq!((spread.quantile(0.5), spread.quantile(0.99), spread.quantile(0.995)), (100, 100, 5_000));
        assert_eq!(Spread::default().quantile(0.5), 0);
    }
}
