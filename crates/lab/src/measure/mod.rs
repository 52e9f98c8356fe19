//! What a built candidate takes: as its statistics say, and for which unit of the sample, so that it can be carried to the whole.

mod belonging;
mod groups;
mod sizes;

pub use groups::groups;
pub use sizes::{Bytes, Sizes, Spread, Statistics, Stored};

use crate::estimate::{Estimate, Known, Measured};
use crate::line::{self, Line, Rows};
use crate::plan::Plan;
use crate::sample::Sample;
use crate::store::{Candidate, Store};
use crate::strata::Stratum;
use belonging::{Belonging, belonging, by_unit};
use bson::{Document, doc};
use document::Result;
use patterns::rule::Rule;
use std::collections::HashMap;

/// What the statistics of one collection say.
pub async fn statistics(line: &Line, db: &str, collection: &str) -> Result<Statistics> {
    let stats = line::run(line, db, doc! { "collStats": collection }).await?;
    let figure = |name: &str| line::number(&stats, name);
    let bytes = Bytes { data: figure("size"), indexes: figure("totalIndexSize"), disk: figure("storageSize") };
    Ok(Statistics { documents: figure("count"), bytes, indexes: figure("nindexes") })
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

/// The collections of the sample before anything is built of it.
pub type Loaded = HashMap<String, Statistics>;

pub async fn loaded(store: &Store) -> Result<Loaded> {
    let mut all = Loaded::new();
    for name in stored_collections(&store.stored, &store.db).await? {
        let found = statistics(&store.stored, &store.db, &name).await?;
        all.insert(name, found);
    }
    Ok(all)
}

/// Measures a store in which a candidate is built. `groups` says how many groups the whole has.
pub async fn sizes(
    store: &Store,
    loaded: &Loaded,
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
        let measured = statistics(&store.stored, &store.db, &name).await?;
        let (documents, bytes) = (measured.documents, measured.bytes);
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
                let (of_documents, of_data) = totals(sample, &of_units);
                // A collection that no rule adds documents to, or takes any from, has as many as today.
                let count = loaded.get(&name).filter(|before| before.documents == documents);
                let count = count.and_then(|_| sample.counts.get(&plan.place(&name)?)).map(|count| *count as f64);
                (count.map_or(of_documents, Estimate::exact), of_data)
            }
            None => {
                let times = sample.of as f64 / sample.documents.max(1) as f64;
                (Estimate::exact(documents * times), Estimate::exact(bytes.data * times))
            }
        };
        let is_of_units =
            matches!(belonging, Some(Belonging::Plain { .. } | Belonging::Decoded { .. } | Belonging::Owned { .. }));
        if !is_of_units {
            all.full_documents = all.full_documents.and(full_documents);
            all.full_data = all.full_data.and(full_data);
        }
        let full = Bytes::default();
        let stored = Stored { name, measured, is_of_units, full_documents, full_data, full };
        all.collections.push(stored.with_data(full_data, store.is_mongodb));
    }
    let (documents, data) = totals(sample, &together);
    // The units as a whole are known better than their parts, which must add up to it.
    let parts: f64 =
        all.collections.iter().filter(|stored| stored.is_of_units).map(|stored| stored.full_data.total).sum();
    for stored in all.collections.iter_mut().filter(|stored| stored.is_of_units && parts > 0.0) {
        *stored = stored.with_data(stored.full_data.times(data.total / parts), store.is_mongodb);
    }
    all.full_documents = all.full_documents.and(documents);
    all.full_data = all.full_data.and(data);
    Ok(all)
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
        let units = || sample.units.iter().zip(of_units).filter(|(taken, _)| taken.family == *family);
        let counted: Vec<Measured> = units()
            .map(|(taken, own)| Measured { stratum: taken.stratum, today: taken.documents as f64, then: own.0 })
            .collect();
        let weighed: Vec<Measured> = units()
            .map(|(taken, own)| Measured { stratum: taken.stratum, today: taken.bytes as f64, then: own.1 })
            .collect();
        let known = |of: fn(&Stratum) -> Known| strata.iter().map(of).collect::<Vec<_>>();
        documents = documents.and(Estimate::of(&known(Stratum::documents), &counted));
        data = data.and(Estimate::of(&known(Stratum::bytes), &weighed));
    }
    (documents, data)
}
