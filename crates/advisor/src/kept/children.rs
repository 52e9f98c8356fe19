//! The children of parents, read within bounds: all of a small collection, or by an index those of as many parents as fit. A large
//! collection without an index on the reference is not read: that would be a scan.

use super::row::{Paths, Row};
use crate::reader::Reader;
use crate::relation::{Relation, Source};
use crate::survey::Survey;
use crate::values::{at, each_at, hash, key_bytes};
use document::filter::Filter;
use document::op::{Find, ReadOp};
use document::pipeline::expr::Names;
use document::project::Projection;
use document::value::Path;
use document::{Doc, DocWriter, Result, Value};
use hashbrown::{HashMap, HashSet};
use std::sync::Arc;

pub use super::windows::Child;

/// For each document of the sample, so many values of children are held.
const CELLS_PER_DOCUMENT: u64 = 200;
/// So many children are looked at for each document of the sample.
const CHILDREN_PER_DOCUMENT: u64 = 10;
/// So many parents are asked for in one read.
const PARENTS: usize = 100;
/// Larger fields of children are not read: they are in no window.
const LARGEST_FIELD: u64 = 2_000;
/// So many fields are read.
const MOST_FIELDS: usize = 40;

/// How children were found: part of the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All children were read.
    Whole,
    /// Those of some parents were looked up.
    Index,
}

impl Way {
    pub fn words(self) -> &'static str {
        match self {
            Way::Whole => "all children were read",
            Way::Index => "the children of sampled parents were read by the index",
        }
    }
}

/// Parents that were sampled, and all children of each.
pub struct Families {
    /// Places of the parents in the sample.
    pub parents: Vec<usize>,
    /// For each of them the places of its children.
    pub families: Vec<Vec<u32>>,
    pub children: Vec<Child>,
    pub paths: Paths,
    pub way: Way,
}

/// A parent's place, and the hash and the value of its key.
type Keyed = (usize, u64, Value<'static>);

/// What is read of children.
pub struct Reading<'r> {
    pub reader: &'r Reader<'r>,
    pub relation: &'r Relation,
    pub child: Source<'r>,
    projection: Option<Arc<Projection>>,
    /// How many children may be read.
    budget: u64,
    /// What the sample has is not used: it may have changed.
    afresh: bool,
}

impl<'r> Reading<'r> {
    /// `None` if the children cannot be read within bounds.
    pub fn of(survey: &'r Survey<'r>, relation: &'r Relation) -> Result<Option<Reading<'r>>> {
        let Some(collection) = survey.collection(&relation.from) else { return Ok(None) };
        let child = Source::of(collection);
        let fields: Vec<&str> = collection
            .shape
            .below("")
            .filter(|facts| facts.average_bytes() <= LARGEST_FIELD && facts.path != crate::shape::ANY_NAME)
            .map(|facts| facts.path.as_str())
            .take(MOST_FIELDS)
            .collect();
        let sample = survey.options.sample();
        let by_cells = sample.saturating_mul(CELLS_PER_DOCUMENT) / (fields.len() as u64).max(1);
        let budget = by_cells.min(sample.saturating_mul(CHILDREN_PER_DOCUMENT));
        let reading = Reading {
            reader: survey.reader,
            relation,
            child,
            projection: shown(relation, &fields)?,
            budget,
            afresh: false,
        };
        let can_be_read = reading.is_whole() || child.statistics.is_indexed(&relation.path);
        Ok(can_be_read.then_some(reading))
    }

    /// The same, but never from the sample.
    #[must_use]
    pub fn afresh(self) -> Reading<'r> {
        Reading { afresh: true, ..self }
    }

    fn is_whole(&self) -> bool {
        self.child.documents() <= self.budget
    }

    /// The children of these parents. Their paths are numbered as in `paths`.
    pub async fn families(&self, parents: &[Doc<'static>], paths: Paths) -> Result<Families> {
        let keyed: Vec<Keyed> = parents
            .iter()
            .enumerate()
            .filter_map(|(place, parent)| {
                let value = at(parent, &self.relation.key).filter(|value| !value.is_nullish())?;
                Some((place, hash(&value), value.into_owned()))
            })
            .collect();
        match self.is_whole() {
            true => self.whole(&keyed, paths).await,
            false => self.by_index(&keyed, paths).await,
        }
    }

    async fn whole(&self, parents: &[Keyed], paths: Paths) -> Result<Families> {
        let mut gathered = Gathered::new(self.relation, paths, parents.iter().map(|(_, key, _)| *key));
        if self.child.is_whole && !self.afresh {
            self.child.sample.iter().for_each(|doc| gathered.add(doc));
        } else {
            let find =
                Find { projection: self.projection.clone(), ..Find::matching(self.child.ns.clone(), Filter::all()) };
            // Its count may be stale: so many more are read, and then it is given up.
            let mut left = self.budget.saturating_mul(2);
            let take = &mut |doc: Doc<'static>| {
                gathered.add(&doc);
                left -= 1;
                left > 0
            };
            if !self.reader.each(ReadOp::Find(find), take).await? {
                return Ok(gathered.families(&[], Way::Whole));
            }
        }
        let parents: Vec<(usize, u64)> = parents.iter().map(|(place, key, _)| (*place, *key)).collect();
        Ok(gathered.families(&parents, Way::Whole))
    }

    /// As many parents as the budget allows, spread over all of them.
    async fn by_index(&self, parents: &[Keyed], paths: Paths) -> Result<Families> {
        let mut gathered = Gathered::new(self.relation, paths, parents.iter().map(|(_, key, _)| *key));
        let mut seen = Vec::new();
        let stride = parents.len().div_ceil(PARENTS).max(1);
        for chunk in 0..stride {
            // Every stride-th parent: each read has some of all ages.
            let wanted: Vec<_> = parents.iter().skip(chunk).step_by(stride).collect();
            let left = self.budget.saturating_sub(gathered.children.len() as u64);
            if left == 0 || self.reader.cancel.is_set() {
                break;
            }
            self.chunk(&wanted, left, &mut gathered, &mut seen).await?;
        }
        seen.sort_unstable();
        Ok(gathered.families(&seen, Way::Index))
    }

    /// The children of some parents, or of half of them if they are too many. A parent that alone has too many is left out.
    async fn chunk(
        &self,
        parents: &[&Keyed],
        budget: u64,
        gathered: &mut Gathered,
        seen: &mut Vec<(usize, u64)>,
    ) -> Result<()> {
        let mut stack = vec![parents.to_vec()];
        let mut left = budget;
        while let Some(parents) = stack.pop() {
            let filter = Filter::among(&self.relation.path, parents.iter().map(|(.., value)| value.clone()).collect());
            let projection = self.projection.clone();
            let find = Find { projection, limit: Some(left), ..Find::matching(self.child.ns.clone(), filter) };
            let (mut found, most) = (Vec::new(), left);
            let mut take = |doc| {
                found.push(doc);
                true
            };
            let was_read = self.reader.each(ReadOp::Find(find), &mut take).await?;
            let complete = was_read && (found.len() as u64) < most;
            if complete {
                found.iter().for_each(|doc| gathered.add(doc));
                seen.extend(parents.iter().map(|(place, key, _)| (*place, *key)));
                left = left.saturating_sub(found.len() as u64);
            } else if let (1.., (first, second)) = (parents.len() / 2, parents.split_at(parents.len() / 2)) {
                stack.extend([second.to_vec(), first.to_vec()]);
            }
            if left == 0 || self.reader.cancel.is_set() {
                break;
            }
        }
        Ok(())
    }
}

/// Only the fields that are compared, the reference and `_id`.
fn shown(relation: &Relation, fields: &[&str]) -> Result<Option<Arc<Projection>>> {
    let reference = relation.path.split('.').next().unwrap_or_default();
    let mut all: Vec<&str> = fields.to_vec();
    all.extend([reference, "_id"].into_iter().filter(|name| !fields.contains(name)));
    let mut shown = DocWriter::new();
    for name in all.iter().filter(|name| !name.contains('$')) {
        shown.append(name, &Value::Int32(1));
    }
    Projection::parse_find(&shown.finish(), &Filter::all(), &mut Names::new())
        .map(|projection| Some(Arc::new(projection)))
}

/// Children by the hash of their parent's key.
struct Gathered {
    reference: Path,
    of: HashMap<u64, Vec<u32>>,
    children: Vec<Child>,
    paths: Paths,
}

impl Gathered {
    fn new(relation: &Relation, paths: Paths, parents: impl Iterator<Item = u64>) -> Gathered {
        Gathered {
            reference: Path::new(&relation.path),
            of: parents.map(|key| (key, Vec::new())).collect(),
            children: Vec::new(),
            paths,
        }
    }

    fn add(&mut self, doc: &Doc<'_>) {
        let mut parents: HashSet<u64> = HashSet::new();
        each_at(doc, &self.reference, &mut |value| {
            let key = hash(value);
            if self.of.contains_key(&key) {
                parents.insert(key);
            }
        });
        if parents.is_empty() {
            return;
        }
        let Ok(place) = u32::try_from(self.children.len()) else { return };
        let id = doc.get("_id").map(|id| key_bytes(&id)).unwrap_or_default();
        self.children.push(Child { row: Row::of(doc, &mut self.paths), id: id.into() });
        for parent in parents {
            if let Some(children) = self.of.get_mut(&parent) {
                children.push(place);
            }
        }
    }

    fn families(mut self, parents: &[(usize, u64)], way: Way) -> Families {
        let families = parents.iter().map(|(_, key)| self.of.remove(key).unwrap_or_default()).collect();
        let parents = parents.iter().map(|(place, _)| *place).collect();
        Families { parents, families, children: self.children, paths: self.paths, way }
    }
}
