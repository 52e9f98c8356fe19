//! What is known of reads and writes: commands by their shape, second reads, counters per collection. Each source is named in the report.
//!
//! [`gather`] asks the sources, one file each. All of them count by the shapes of `document::traffic`, as a server does ([`described`],
//! [`table`]). A source that may not be read is named with the reason. The advisor's own reads are not counted: a Pleach leaves those of
//! its tools out, and a MongoDB shows the name of the connection ([`OWN_NAME`]).

mod described;
mod followed;
mod index_uses;
mod latency;
mod log;
mod operation;
mod profile;
mod table;
mod workload;

#[cfg(test)]
mod tests;

use crate::options::Options;
use crate::reader::Reader;
use document::{Doc, Result, Value};

/// What connections of Pleach's own tools call themselves (`appName`).
pub const OWN_NAME: &str = "pleach";

/// Fewer commands say nothing about how often something is done.
const ENOUGH: u64 = 20;

/// All that the sources say together.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    pub sources: Vec<Source>,
    pub shapes: Vec<CommandShape>,
    pub second_reads: Vec<SecondRead>,
    pub counters: Vec<Counter>,
    pub unused_indexes: Vec<UnusedIndex>,
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
    /// Those of them that equal a value, or one of several.
    pub equal: Vec<String>,
    /// The filter has an expression besides.
    pub has_expression: bool,
    /// Conditions that have the same value in all runs; nothing where the source shows no values.
    pub constants: Vec<(String, Value<'static>)>,
    pub sort: Vec<String>,
    /// The fields that it gives; `None` for whole documents.
    pub fields: Option<Vec<String>>,
    /// The fields that it leaves out, or gives a part of.
    pub left_out: Vec<String>,
    /// The fields that it changes; `replaced` for whole documents.
    pub changed: Vec<String>,
    pub removes: bool,
    pub stages: Vec<Stage>,
    pub count: u64,
    pub milliseconds: f64,
    /// Documents or keys, whichever is more; 0 if the source does not say.
    pub examined: u64,
    pub returned: u64,
    pub written: u64,
    pub bytes: u64,
}

/// A stage of a pipeline, as far as findings care.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stage {
    /// `$lookup`, `$group` …
    pub name: String,
    /// The collection that it reads.
    pub from: Option<String>,
    /// `localField`, or what the stage's own pipeline compares with.
    pub local: Option<String>,
    /// `foreignField`.
    pub foreign: Option<String>,
    /// The fields of the other document that are used; `None` if all may be.
    pub fields: Option<Vec<String>>,
    /// The paths that `$group` groups by.
    pub keys: Vec<String>,
    /// The accumulators of `$group`, also of one inside a `$lookup`.
    pub folds: Vec<Accumulated>,
}

/// `stars: { $avg: "$rating" }`; without a path it is of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accumulated {
    pub name: String,
    pub operator: String,
    pub path: Option<String>,
}

/// A read by a value that came out of the answer before, on one connection.
#[derive(Clone, Debug, Default)]
pub struct SecondRead {
    pub source: usize,
    pub database: String,
    /// The collection whose documents hold the reference, and where; no path if the source shows no answers.
    pub from: String,
    pub path: Option<String>,
    /// The collection that is read then, and by which key.
    pub to: String,
    pub key: String,
    /// The fields of the second document that were returned; `None` if all.
    pub fields: Option<Vec<String>>,
    /// The answers that were followed so, and the reads.
    pub answers: u64,
    pub count: u64,
    /// Where the path is not known: some first filters, with the ids of the second read.
    pub pairs: Vec<(Doc<'static>, Vec<Value<'static>>)>,
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

/// An index that nothing has used since its server started.
#[derive(Clone, Debug, Default)]
pub struct UnusedIndex {
    pub database: String,
    pub collection: String,
    pub name: String,
}

impl CommandShape {
    pub fn is_read(&self) -> bool {
        matches!(&*self.kind, "find" | "aggregate" | "count" | "distinct")
    }

    /// Whether a field comes whole with what it gives.
    pub fn takes_whole(&self, path: &str) -> bool {
        let within = |outer: &String| {
            path.strip_prefix(outer.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        match &self.fields {
            Some(fields) => fields.iter().any(within),
            None => !self.left_out.iter().any(within),
        }
    }

    /// Whether it may change one of the fields of documents that are there.
    pub fn changes_any(&self, fields: &[String]) -> bool {
        let touches = |changed: &String| {
            changed == "replaced"
                || fields.iter().any(|field| {
                    let (one, other) = (format!("{field}."), format!("{changed}."));
                    one.starts_with(&other) || other.starts_with(&one)
                })
        };
        matches!(&*self.kind, "update" | "findAndModify") && self.changed.iter().any(touches)
    }

    /// How many of its commands wrote: a load of very many documents at once is one.
    pub fn writes(&self) -> u64 {
        match &*self.kind {
            "insert" | "update" | "delete" | "findAndModify" => self.count,
            _ => 0,
        }
    }
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

    /// A figure of a collection's shapes, by the source where it is greatest: sources see the same commands, and are not added up.
    pub fn most(&self, database: &str, collection: &str, figure: impl Fn(&CommandShape) -> u64) -> u64 {
        let of_source = |source: usize| {
            self.of(database, collection).filter(|shape| shape.source == source).map(&figure).sum::<u64>()
        };
        (0..self.sources.len()).map(of_source).max().unwrap_or(0)
    }

    /// How many of the reads of a source are of the collection.
    pub fn reads_of(&self, source: usize, database: &str, collection: &str) -> u64 {
        let reads = self.of(database, collection).filter(|shape| shape.source == source && shape.is_read());
        reads.map(|shape| shape.count).sum()
    }

    /// Changes of some fields of one collection, and reads of another that would hold copies of them, where there are more changes than
    /// these reads allow; by the source that shows most of both.
    pub fn changes_too_often(
        &self,
        database: &str,
        (changed, fields): (&str, &[String]),
        read: &str,
        reads_per_change: u64,
    ) -> Option<(u64, u64)> {
        let of_source = |source: usize| {
            let changes =
                self.of(database, changed).filter(|shape| shape.source == source && shape.changes_any(fields));
            (changes.map(CommandShape::writes).sum::<u64>(), self.reads_of(source, database, read))
        };
        let clearest = (0..self.sources.len()).map(of_source).max_by_key(|(changes, reads)| changes + reads);
        clearest.filter(|(changes, reads)| changes + reads >= ENOUGH && changes * reads_per_change > *reads)
    }

    /// A count as one of an hour, if the source has counted for long enough to say.
    pub fn an_hour(&self, source: usize, count: u64) -> Option<f64> {
        let seconds = self.sources.get(source)?.seconds;
        #[expect(clippy::cast_precision_loss, reason = "a count of commands")]
        (seconds >= crate::thresholds::OBSERVED_SECONDS).then(|| count as f64 * 3_600.0 / seconds)
    }

    /// Whether any source shows single commands.
    pub fn shows_commands(&self) -> bool {
        !self.shapes.is_empty()
    }

    /// Names a source, and gives its place.
    fn source(&mut self, name: impl Into<String>, seconds: f64, note: Option<String>) -> usize {
        self.sources.push(Source { name: name.into(), seconds, note });
        self.sources.len() - 1
    }
}

/// Asks every source that there is; one that cannot be read is named with the reason.
pub async fn gather(reader: &Reader<'_>, databases: &[String], options: &Options) -> Result<Traffic> {
    let mut traffic = Traffic::default();
    workload::read(reader, databases, &mut traffic).await;
    profile::read(reader, databases, &mut traffic).await;
    for log in &options.logs {
        log::read(log, databases, &reader.cancel, &mut traffic);
    }
    latency::read(reader, databases, &mut traffic).await;
    index_uses::read(reader, databases, &mut traffic).await;
    Ok(traffic)
}

/// Databases and collections that hold no data of applications.
fn is_internal(database: &str, collection: &str) -> bool {
    matches!(database, "admin" | "config" | "local")
        || collection.is_empty()
        || collection.starts_with("system.")
        || collection.starts_with("pleach.")
        || collection.starts_with("$cmd")
}

fn is_asked(databases: &[String], name: &str) -> bool {
    databases.iter().any(|asked| asked == name)
}
