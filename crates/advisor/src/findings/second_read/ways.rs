//! From which collection to which the traffic leads, by which reference: of `$lookup`s and of second reads together.

use crate::reader::Bound;
use crate::relation::{self, Relation};
use crate::survey::{Collection, Survey};
use crate::traffic::{CommandShape, SecondRead, Stage};
use crate::values::share;
use document::{ArrayWriter, Doc, DocWriter, Result, Value};
use std::collections::BTreeMap;

/// A path that is followed less often than another one of the same two collections is there by chance, unless it is a reference.
const BY_CHANCE: f64 = 0.9;
/// A larger collection is asked only by an index.
const SCANNED: u64 = 200_000;

/// One reference that reads follow.
pub(super) struct Way<'s> {
    pub(super) host: &'s Collection,
    pub(super) to: &'s Collection,
    pub(super) relation: Relation,
    /// The fields that are wanted of the other document; `None` if all may be.
    pub(super) fields: Option<Vec<String>>,
    pub(super) by_source: BTreeMap<usize, Seen>,
    /// From 0 to 1.
    pub(super) sure: f64,
}

/// What one source has seen of a way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Reads of the host that were followed.
    pub(super) followed: u64,
    /// The reads that followed.
    pub(super) reads: u64,
    pub(super) lookups: u64,
}

impl Way<'_> {
    pub(super) fn lookups(&self) -> u64 {
        self.by_source.values().map(|seen| seen.lookups).max().unwrap_or(0)
    }

    pub(super) fn reads(&self, source: usize) -> u64 {
        self.by_source.get(&source).map_or(0, |seen| seen.reads)
    }

    fn want(&mut self, fields: Option<&Vec<String>>) {
        match (&mut self.fields, fields) {
            (Some(known), Some(fields)) => {
                for field in fields.iter().filter(|field| *field != "_id") {
                    if !known.contains(field) {
                        known.push(field.clone());
                    }
                }
            }
            (known, _) => *known = None,
        }
    }
}

/// Host, reference, other collection and its key.
type Key = (String, String, String, String);

/// All ways of a database, in a fixed order.
pub(super) async fn all<'s>(survey: &'s Survey<'s>) -> Result<Vec<Way<'s>>> {
    let mut ways: BTreeMap<Key, Way<'s>> = BTreeMap::new();
    for shape in survey.traffic.shapes.iter().filter(|shape| shape.database == survey.database) {
        for stage in shape.stages.iter().filter(|stage| stage.name == "$lookup") {
            of_lookup(survey, shape, stage, &mut ways).await?;
        }
    }
    for read in survey.traffic.second_reads.iter().filter(|read| read.database == survey.database) {
        of_read(survey, read, &mut ways).await?;
    }
    Ok(ways.into_values().filter(|way| way.relation.checked > 0).collect())
}

async fn of_lookup<'s>(
    survey: &'s Survey<'s>,
    shape: &CommandShape,
    stage: &Stage,
    ways: &mut BTreeMap<Key, Way<'s>>,
) -> Result<()> {
    let (Some(from), Some(local), Some(foreign)) = (&stage.from, &stage.local, &stage.foreign) else { return Ok(()) };
    // By the document's own `_id` or by a field of many: those are its children.
    let is_reference = |to: &Collection| local != "_id" && to.statistics.is_unique(foreign);
    if !stage.folds.is_empty() || !survey.collection(from).is_some_and(is_reference) {
        return Ok(());
    }
    let key = (shape.collection.clone(), local.clone(), from.clone(), foreign.clone());
    let Some(way) = way(survey, key, 0.95, ways).await? else { return Ok(()) };
    let seen = way.by_source.entry(shape.source).or_default();
    seen.followed += shape.count;
    seen.reads += shape.count;
    seen.lookups += shape.count;
    way.want(stage.fields.as_ref());
    Ok(())
}

async fn of_read<'s>(survey: &'s Survey<'s>, read: &SecondRead, ways: &mut BTreeMap<Key, Way<'s>>) -> Result<()> {
    let relations =
        || survey.relations.iter().filter(|it| it.from == read.from && it.to == read.to && it.key == read.key);
    let found: Vec<(String, f64)> = match &read.path {
        Some(path) if path == "_id" => Vec::new(),
        Some(path) => {
            let same = |other: &&SecondRead| {
                (other.source, &other.database, &other.from, &other.to)
                    == (read.source, &read.database, &read.from, &read.to)
            };
            let most = survey.traffic.second_reads.iter().filter(same).map(|other| other.count).max().unwrap_or(0);
            let is_reference = relations().any(|relation| relation.path == *path);
            let is_chance = !is_reference && share(read.count, most) < BY_CHANCE;
            if is_chance { Vec::new() } else { vec![(path.clone(), 0.95)] }
        }
        // No answers were seen: it is one of the references, if the data says so.
        None => {
            let mut best: Option<(String, f64)> = None;
            for relation in relations() {
                let held = held(survey, read, relation).await?;
                if held > best.as_ref().map_or(0.5, |(_, best)| *best) {
                    best = Some((relation.path.clone(), held));
                }
            }
            best.into_iter().map(|(path, held)| (path, 0.9 * held)).collect()
        }
    };
    for (path, sure) in found {
        let key = (read.from.clone(), path, read.to.clone(), read.key.clone());
        let Some(way) = way(survey, key, sure, ways).await? else { continue };
        let seen = way.by_source.entry(read.source).or_default();
        seen.followed += read.answers;
        seen.reads += read.count;
        way.want(read.fields.as_ref());
    }
    Ok(())
}

/// The way of that key, made if its collections and its reference are there.
async fn way<'s, 'w>(
    survey: &'s Survey<'s>,
    key: Key,
    sure: f64,
    ways: &'w mut BTreeMap<Key, Way<'s>>,
) -> Result<Option<&'w mut Way<'s>>> {
    if !ways.contains_key(&key) {
        let (from, path, to, by) = &key;
        let (Some(host), Some(to)) = (survey.collection(from), survey.collection(to)) else { return Ok(None) };
        let known = survey
            .relations
            .iter()
            .find(|it| it.from == *from && it.path == *path && it.to == to.name() && it.key == *by);
        let relation = match known {
            Some(relation) => Some(relation.clone()),
            None => relation::named(survey.reader, host, path, to, by).await?,
        };
        let Some(relation) = relation else { return Ok(None) };
        let fields = Some(Vec::new());
        ways.insert(key.clone(), Way { host, to, relation, fields, by_source: BTreeMap::new(), sure });
    }
    Ok(ways.get_mut(&key))
}

/// In which share of the examples the first filter finds a document that holds the id.
async fn held(survey: &Survey<'_>, read: &SecondRead, relation: &Relation) -> Result<f64> {
    let Some(host) = survey.collection(&read.from) else { return Ok(0.0) };
    let (mut asked, mut found) = (0, 0);
    for (filter, ids) in &read.pairs {
        let is_quick = host.statistics.count <= SCANNED
            || host.statistics.is_indexed(&relation.path)
            || filter.iter().any(|(name, _)| host.statistics.is_indexed(name.as_str()));
        if !is_quick || survey.reader.cancel.is_set() {
            continue;
        }
        let both = both(filter, &relation.path, ids);
        // A filter that is cut or of another version says nothing.
        let Ok(rows) = survey.reader.matching(&host.ns, &both, Bound::documents(1)).await else { continue };
        asked += 1;
        found += u64::from(!rows.is_empty());
    }
    // Nobody could ask: the relation of the two collections is all there is.
    Ok(if asked == 0 { 0.6 } else { share(found, asked) })
}

/// The first filter, and the reference is one of the ids.
fn both(filter: &Doc<'_>, path: &str, ids: &[Value<'static>]) -> Doc<'static> {
    let mut among = DocWriter::new();
    among.append("$in", &Value::Array(ids.iter().map(Value::borrow).collect()));
    let mut held = DocWriter::new();
    held.append(path, &Value::Document(among.finish()));
    let mut parts = ArrayWriter::new();
    parts.push(&Value::Document(filter.borrow()));
    parts.push(&Value::Document(held.finish()));
    let mut both = DocWriter::new();
    both.append("$and", &Value::Array(parts.finish()));
    both.finish()
}
