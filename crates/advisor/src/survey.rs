//! All that findings may look at of one database: its collections with samples and figures, relations, traffic, rules in force.

use crate::Progress;
use crate::age::Age;
use crate::measured::{self, Measured};
use crate::options::{KEPT_OF_COLLECTION, MEMORY, Options};
use crate::reader::Reader;
use crate::relation::{self, Relation};
use crate::report::{Finding, LookedAt};
use crate::rules::{self, RuleInForce};
use crate::sample::{self, Spread};
use crate::shape::Shape;
use crate::statistics::Statistics;
use crate::traffic::Traffic;
use crate::values::text;
use document::filter::Filter;
use document::op::{AdminOp, Namespace};
use document::{Code, Doc, Error, Result, Value};

pub struct Survey<'s> {
    pub reader: &'s Reader<'s>,
    pub options: &'s Options,
    pub database: &'s str,
    pub collections: Vec<Collection>,
    pub relations: Vec<Relation>,
    pub traffic: &'s Traffic,
    pub rules: Vec<RuleInForce>,
}

/// What is known of one collection.
#[derive(Clone, Debug)]
pub struct Collection {
    pub ns: Namespace,
    pub statistics: Statistics,
    /// Of all sampled documents.
    pub shape: Shape,
    /// As many of them as memory allows, in order of `_id`.
    pub sample: Vec<Doc<'static>>,
    pub spread: Spread,
    pub age: Age,
    /// When it was looked at: milliseconds since 1970.
    pub seen_at: i64,
    pub measured: Measured,
}

impl Collection {
    pub fn name(&self) -> &str {
        &self.ns.collection
    }

    /// Another name for a field that the documents have already; `None` if they do not.
    pub fn other_name(&self, field: &str) -> Option<String> {
        self.shape.path(field)?;
        let mut names = (2..).map(|number| format!("{field}{number}"));
        names.find(|name| self.shape.path(name).is_none())
    }

    /// The field that holds, or would hold, the number of a document's version.
    pub fn version_field(&self) -> String {
        const USUAL: [&str; 4] = ["schemaVersion", "schema_version", "_schemaVersion", "docVersion"];
        USUAL.into_iter().find(|name| self.shape.path(name).is_some()).unwrap_or("schemaVersion").to_owned()
    }

    /// How many documents were looked at.
    pub fn sampled(&self) -> u64 {
        self.shape.documents
    }
}

/// A document that is larger is measured, but not kept.
const LARGEST_KEPT: usize = 256 << 10;

/// Databases that hold no data of applications.
const INTERNAL: [&str; 3] = ["admin", "config", "local"];

/// The databases to look at: those that are named, or all that the user may see.
pub async fn databases(reader: &Reader<'_>, options: &Options, looked_at: &mut LookedAt) -> Result<Vec<String>> {
    if !options.databases.is_empty() {
        looked_at.databases.clone_from(&options.databases);
        return Ok(options.databases.clone());
    }
    let listed = reader.admin(AdminOp::ListDatabases { filter: Filter::all(), name_only: true }).await;
    let mut names: Vec<String> = match listed {
        Ok(rows) => rows.iter().map(|row| text(row, "name")).collect(),
        Err(error) if error.code() == Code::Unauthorized => {
            return Err(Error::new(Code::Unauthorized, format!("the databases cannot be listed: {}", error.message()))
                .with_hint("name the database with --db; the right to read it is enough"));
        }
        Err(error) => return Err(error),
    };
    names.retain(|name| !INTERNAL.contains(&&**name));
    names.sort();
    looked_at.databases.clone_from(&names);
    Ok(names)
}

impl<'s> Survey<'s> {
    /// Looks at a database.
    pub async fn of(
        reader: &'s Reader<'s>,
        database: &'s str,
        options: &'s Options,
        traffic: &'s Traffic,
        looked_at: &mut LookedAt,
        progress: &dyn Progress,
    ) -> Result<Survey<'s>> {
        let rules = rules::in_force(reader, database).await;
        let names = collections(reader, database, &rules).await?;
        let mut all = Vec::new();
        for name in names {
            let ns = Namespace::new(database, &name);
            match Statistics::of(reader, &ns).await {
                Ok(statistics) => all.push((ns, statistics)),
                Err(error) => looked_at.unseen(&ns, &error),
            }
        }
        let total: u64 =
            all.iter().map(|(_, statistics)| sample::size(statistics, options.sample()).min(statistics.count)).sum();
        let budget = (MEMORY / all.len().max(1)).min(KEPT_OF_COLLECTION);
        let (mut done, mut surveyed) = (0, Vec::new());
        for (ns, statistics) in all {
            if reader.cancel.is_set() {
                break;
            }
            progress.show(done, total, &ns.to_string());
            let name = ns.clone();
            match Collection::of(reader, ns, statistics, options, budget).await {
                Ok(collection) => {
                    done += collection.sampled();
                    looked_at.add(&collection);
                    surveyed.push(collection);
                }
                Err(error) => looked_at.unseen(&name, &error),
            }
            progress.show(done, total, &name.to_string());
        }
        let relations = match reader.cancel.is_set() {
            true => Vec::new(),
            false => relation::relations(reader, database, &surveyed, options).await?,
        };
        Ok(Survey { reader, options, database, collections: surveyed, relations, traffic, rules })
    }

    pub fn collection(&self, name: &str) -> Option<&Collection> {
        self.collections.iter().find(|collection| collection.name() == name)
    }

    /// A name that no collection has.
    pub fn free_name(&self, name: &str) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| self.collection(name).is_none()).unwrap_or_default()
    }

    /// Whether no rule keeps already what a finding is about.
    pub fn is_new(&self, finding: &Finding) -> bool {
        let keeps = |rule: &RuleInForce| {
            rule.keeps(&finding.collection, &finding.field)
                || rule.kept_of(&finding.collection) == Some(finding.pattern)
        };
        !self.rules.iter().any(keeps)
    }
}

/// Collections of clients' own documents: no views, no time series, no buckets, nothing of MongoDB's or of Pleach's.
async fn collections(reader: &Reader<'_>, database: &str, rules: &[RuleInForce]) -> Result<Vec<String>> {
    let listed = AdminOp::ListCollections { db: database.to_owned(), filter: Filter::all(), name_only: false };
    let rows = reader.admin(listed).await?;
    let views: Vec<String> = rows.iter().filter(|row| text(row, "type") != "collection").map(viewed_on).collect();
    let is_own = |row: &&Doc<'static>| {
        let name = text(row, "name");
        let is_shaped = rules.iter().any(|rule| rule.kept_of(&name) == Some("bucket"));
        text(row, "type") == "collection" && !name.starts_with("system.") && !name.starts_with("pleach.") && !is_shaped
    };
    let mut names: Vec<String> = rows.iter().filter(is_own).map(|row| text(row, "name")).collect();
    // What a rule stores beneath a name is its own: the view that clients read is made on it.
    let is_stored = |name: &String| !rules.is_empty() && views.contains(name) && rules.iter().any(is_bucket);
    names.retain(|name| !is_stored(name));
    names.sort();
    Ok(names)
}

fn is_bucket(rule: &RuleInForce) -> bool {
    rule.name.ends_with(".bucket")
}

/// The collection under a view.
fn viewed_on(row: &Doc<'static>) -> String {
    match row.get("options") {
        Some(Value::Document(options)) => text(&options, "viewOn"),
        _ => String::new(),
    }
}

impl Collection {
    async fn of(
        reader: &Reader<'_>,
        ns: Namespace,
        statistics: Statistics,
        options: &Options,
        budget: usize,
    ) -> Result<Collection> {
        let (mut shape, mut kept) = (Shape::default(), Kept::new(budget));
        let spread = sample::each(reader, &ns, &statistics, options.sample(), options.seed, &mut |doc| {
            shape.add(&doc);
            kept.add(doc);
        })
        .await?;
        let age = Age::of(&shape);
        let measured = measured::measure(reader, &ns, &statistics, &shape, spread, &age).await;
        Ok(Collection { ns, statistics, age, seen_at: reader.now(), shape, sample: kept.documents, spread, measured })
    }
}

/// Documents up to a number of bytes. When they are full, every second one goes, so that those of all ages stay.
struct Kept {
    documents: Vec<Doc<'static>>,
    bytes: usize,
    budget: usize,
    /// One of so many is kept.
    every: u64,
    seen: u64,
}

impl Kept {
    fn new(budget: usize) -> Kept {
        Kept { documents: Vec::new(), bytes: 0, budget, every: 1, seen: 0 }
    }

    fn add(&mut self, doc: Doc<'static>) {
        self.seen += 1;
        let size = doc.as_bytes().len();
        if size > LARGEST_KEPT || !self.seen.is_multiple_of(self.every) {
            return;
        }
        self.bytes += size;
        self.documents.push(doc);
        while self.bytes > self.budget && self.documents.len() > 1 {
            let mut place = 0;
            self.documents.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            self.every *= 2;
            self.bytes = self.documents.iter().map(|doc| doc.as_bytes().len()).sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_of_all_ages() {
        let mut kept = Kept::new(10_000);
        for n in 0..1_000 {
            kept.add(Doc::from(bson::doc! { "_id": n, "text": "x".repeat(100) }));
        }
        assert!(kept.bytes <= 10_000 && kept.documents.len() > 30, "{} {}", kept.bytes, kept.documents.len());
        let ids: Vec<i32> =
            kept.documents.iter().map(|doc| bson::Document::try_from(doc).unwrap().get_i32("_id").unwrap()).collect();
        assert!(ids[0] < 50 && ids[ids.len() - 1] > 900 && ids.is_sorted(), "{ids:?}");
        kept.add(Doc::from(bson::doc! { "_id": 0, "text": "x".repeat(LARGEST_KEPT) }));
        assert_eq!(kept.documents.len(), ids.len());
    }
}
