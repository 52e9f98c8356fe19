//! How the documents of a query are found: a plan is data, made once, explained or run.

use super::candidate::Candidate;
use super::ranges::{self, KeyRange, Ranges};
use super::text::TextScan;
use crate::catalog::Index;
use crate::store::keys::{DOCUMENTS, EntryParts, index_prefix};
use bytes::Bytes;
use document::filter::{Filter, Node};
use document::op::SortSpec;
use document::value::Path;
use document::{Doc, DocWriter, Value};
use std::sync::Arc;

/// A way to the documents of a query.
#[derive(Clone, Debug)]
pub struct Plan {
    pub source: Source,
    /// What a document that was found must still pass.
    pub residual: Option<Node>,
    /// Whether the documents come in the order that was asked for.
    pub ordered: bool,
}

#[derive(Clone, Debug)]
pub enum Source {
    /// There is no such collection.
    Nothing,
    /// All documents, by `_id`.
    Collection {
        reverse: bool,
        ranges: Arc<[KeyRange]>,
    },
    /// The document with this `_id`.
    Id {
        key: Bytes,
    },
    Index(Arc<IndexScan>),
    /// What a text index finds.
    Text(Arc<TextScan>),
    /// What any of the plans finds, each once.
    Union(Vec<Plan>),
    /// The same of plans that all give the order that was asked for.
    Merge(Arc<MergedPlans>),
}

/// Plans that give one order, to be merged.
#[derive(Clone, Debug)]
pub struct MergedPlans {
    pub plans: Vec<Plan>,
    pub order: SortSpec,
}

/// A part of an index, read in one direction.
#[derive(Clone, Debug)]
pub struct IndexScan {
    pub candidate: Candidate,
    pub ranges: Ranges,
    pub reverse: bool,
    /// The whole filter, for entries that do not say what they were.
    pub filter: Option<Filter>,
    /// Makes documents of entries, if nothing more is needed of them.
    pub covering: Option<Covering>,
    /// The order that was asked for, if the index gives it: entries that were cut are put in order by their documents.
    pub order: Option<SortSpec>,
    /// Bounds given by hand, as they were given.
    pub by_hand: Option<ByHand>,
}

#[derive(Clone, Debug, Default)]
pub struct ByHand {
    pub min: Option<Doc<'static>>,
    pub max: Option<Doc<'static>>,
}

impl Source {
    pub fn collection(reverse: bool) -> Source {
        let all = KeyRange { from: index_prefix(DOCUMENTS).to_vec(), to: index_prefix(DOCUMENTS + 1).to_vec() };
        Source::Collection { reverse, ranges: Arc::from([all]) }
    }
}

impl Plan {
    pub fn nothing() -> Plan {
        Plan { source: Source::Nothing, residual: None, ordered: true }
    }

    /// Reads everything and tests each document. `ordered` if no order was asked for.
    pub fn collection(filter: &Filter, reverse: bool, ordered: bool) -> Plan {
        let residual = (!filter.is_all()).then(|| filter.root.clone());
        Plan { source: Source::collection(reverse), residual, ordered }
    }

    /// Whether it finds documents by keys. The collection itself is in order by `_id`, so that a part of it is one of keys too.
    pub fn reads_keys(&self) -> bool {
        !matches!(self.source, Source::Collection { .. } | Source::Nothing)
    }

    /// Visits the indexes with entries of their own that it reads.
    pub fn each_index(&self, visit: &mut impl FnMut(&Index)) {
        match &self.source {
            Source::Index(scan) => visit(scan.index()),
            Source::Text(scan) => visit(&scan.index),
            Source::Union(plans) => plans.iter().for_each(|plan| plan.each_index(&mut *visit)),
            Source::Merge(merged) => merged.plans.iter().for_each(|plan| plan.each_index(&mut *visit)),
            Source::Nothing | Source::Collection { .. } | Source::Id { .. } => {}
        }
    }

    /// How many documents it finds at most, as far as its bounds tell.
    pub fn at_most(&self) -> Option<usize> {
        match &self.source {
            Source::Nothing => Some(0),
            Source::Id { .. } => Some(1),
            Source::Index(scan) => {
                let index = scan.index();
                let one_each = (index.id == DOCUMENTS || index.unique) && scan.ranges.points && !scan.ranges.inexact;
                one_each.then_some(scan.ranges.ranges.len())
            }
            Source::Union(plans) => plans.iter().map(Plan::at_most).sum(),
            Source::Merge(merged) => merged.plans.iter().map(Plan::at_most).sum(),
            Source::Collection { .. } | Source::Text(_) => None,
        }
    }

    /// Whether each entry that it reads is a document that it gives, in the order that was asked for.
    pub fn is_direct(&self) -> bool {
        let reads_no_more = match &self.source {
            Source::Index(scan) => scan.ranges.checks.is_empty() && !scan.ranges.inexact && !scan.may_repeat(),
            Source::Collection { .. } | Source::Nothing | Source::Id { .. } => true,
            Source::Union(_) | Source::Merge(_) | Source::Text(_) => false,
        };
        self.ordered && self.residual.is_none() && reads_no_more
    }

    /// Whether it gives documents without reading them.
    pub fn is_covered(&self) -> bool {
        matches!(&self.source, Source::Index(scan) if scan.covering.is_some())
    }
}

impl IndexScan {
    pub fn new(candidate: Candidate, reverse: bool, filter: &Filter) -> IndexScan {
        let descending: Vec<bool> = candidate.index.keys.iter().map(|key| key.descending).collect();
        let ranges = ranges::ranges(candidate.index.id, &candidate.bounds, &descending);
        let filter = (candidate.index.id != DOCUMENTS && !filter.is_all()).then(|| filter.clone());
        IndexScan { candidate, ranges, reverse, filter, covering: None, order: None, by_hand: None }
    }

    pub fn index(&self) -> &Index {
        &self.candidate.index
    }

    /// Whether a document may be found more than once.
    pub fn may_repeat(&self) -> bool {
        self.candidate.any_multikey() && !(self.ranges.points && self.ranges.ranges.len() == 1)
    }
}

/// How a document is made of the values of an entry, nested as the paths of the keys say.
#[derive(Clone, Debug)]
pub struct Covering {
    fields: Vec<Field>,
    descending: Vec<bool>,
}

#[derive(Clone, Debug)]
struct Field {
    name: Arc<str>,
    /// Which value it has; `None` if it is a document of others.
    value: Option<usize>,
    inner: Vec<Field>,
}

impl Covering {
    /// Nothing unless `needed` are keys of the index that never hold arrays.
    pub fn of(candidate: &Candidate, needed: &[Path]) -> Option<Covering> {
        let keys = &candidate.index.keys;
        if candidate.index.id == DOCUMENTS || candidate.index.text.is_some() || candidate.any_multikey() {
            return None;
        }
        if !needed.iter().all(|path| keys.iter().any(|key| key.path == *path)) {
            return None;
        }
        let mut fields = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            if key.path.parts.iter().any(|part| part.index.is_some()) {
                return None;
            }
            if needed.contains(&key.path) {
                add_field(&mut fields, &key.path, at)?;
            }
        }
        Some(Covering { fields, descending: keys.iter().map(|key| key.descending).collect() })
    }

    /// The document that the entry tells of; `None` if its values were cut.
    pub fn document(&self, entry: &EntryParts<'_>) -> Option<Doc<'static>> {
        let mut writer = DocWriter::new();
        if !self.fields.is_empty() {
            let values = entry.values(self.descending.iter().copied())?;
            write_fields(&self.fields, &values, &mut writer);
        }
        Some(writer.finish())
    }
}

/// Returns `None` if a path leads through another.
fn add_field(fields: &mut Vec<Field>, path: &Path, value: usize) -> Option<()> {
    let mut level = fields;
    let mut parts = path.parts.iter().peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let found = level.iter().position(|field| field.name == part.name);
        let at = match found {
            Some(_) if last => return None,
            Some(at) => at,
            None => {
                level.push(Field { name: part.name.clone(), value: last.then_some(value), inner: Vec::new() });
                level.len() - 1
            }
        };
        let field = level.get_mut(at)?;
        if !last && field.value.is_some() {
            return None;
        }
        level = &mut field.inner;
    }
    Some(())
}

fn write_fields(fields: &[Field], values: &[Value<'static>], writer: &mut DocWriter) {
    for field in fields {
        match field.value {
            Some(at) => {
                writer.append(&field.name, values.get(at).unwrap_or(&Value::Null));
            }
            None => {
                writer.start_document(&field.name);
                write_fields(&field.inner, values, writer);
                writer.end();
            }
        }
    }
}
