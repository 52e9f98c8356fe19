//! What is asked of logical documents, and how a shape has it answered: requests and plans as data, and what reads need to know
//! of a shape.

use document::backend::{Batch, Facts};
use document::filter::Filter;
use document::op::{Aggregate, Find, Hint, Namespace, ReadOp, SortSpec};
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Array, Doc, Result, Value};
use std::fmt::Debug;
use std::sync::Arc;

/// What reads need to know of the form in which a collection is stored. Pure: it says what is to be read, and reads nothing.
pub trait ReadShape: Debug + Send + Sync {
    /// The stages that make logical documents of stored ones.
    fn view(&self, dialect: Dialect) -> Array<'static>;

    /// The same as code: gives the logical documents of a stored one, in stored order.
    fn decode(&self, stored: &Doc<'_>, each: &mut Each<'_>) -> Result<()>;

    /// What a filter on logical documents lets be asked of the stored ones: a superset of those that hold a match.
    fn push(&self, filter: &Filter) -> Filter;

    /// Whether stored documents are the logical ones as they are, so that neither [`ReadShape::view`] nor
    /// [`ReadShape::decode`] is needed.
    fn is_plain(&self) -> bool {
        false
    }

    /// Whether a condition on the path holds for a stored document exactly if it holds for all that it becomes.
    fn keeps(&self, _path: &Path) -> bool {
        false
    }

    /// Whether every stored document becomes one logical document.
    fn is_row_by_row(&self) -> bool {
        false
    }

    /// A short cut of this shape, where all documents are in one stored collection. `None`: the general way, which is the pushed
    /// filter, the view, and then what was asked.
    fn read(self: Arc<Self>, _: &ReadRequest, _stored: &Namespace, _: Facts) -> Result<Option<ReadPlan>> {
        Ok(None)
    }

    /// Where logical documents have hex digits; `None` if nowhere.
    fn hex_paths(&self) -> Option<HexPaths> {
        None
    }
}

/// Who runs the stages of a view. Only the way from bytes to hex digits differs: MongoDB 6.0 has none but a function in
/// JavaScript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    Embedded,
    MongoDb,
}

/// Takes each logical document of a stored one.
pub type Each<'e> = dyn FnMut(Doc<'static>) -> Result<()> + 'e;

/// Where logical documents have hex digits in lower case, which clients may write in either case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HexPaths {
    /// Top-level fields.
    pub fields: Vec<String>,
    /// The fields of a derived `_id`; none where the `_id` is the client's own.
    pub of_id: Vec<String>,
}

/// A read of logical documents, whatever command it came from.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// Over logical documents; its source says the same in MQL.
    pub pipeline: Pipeline,
    /// What `find` shows of each document, as one stage behind the pipeline. It has no source if only a find can say it.
    pub projection: Option<Pipeline>,
    pub hint: Option<Hint>,
    pub allow_disk_use: bool,
    /// Whether the command brought variables: its stages cannot be parsed again without them.
    pub has_variables: bool,
    /// Whether the plan is only to be shown, so that it must be one pipeline in MQL where that can be.
    pub for_people: bool,
}

impl ReadRequest {
    /// The stages as MQL; none if they were put together by a program that cannot say them.
    pub fn source(&self) -> Array<'static> {
        self.pipeline.source.clone().unwrap_or_else(Array::empty)
    }

    /// All that was asked as code: what a find shows is the last stage.
    pub fn native(&self) -> Pipeline {
        match &self.projection {
            Some(projection) => self.pipeline.clone().then(projection.clone()),
            None => self.pipeline.clone(),
        }
    }

    /// What logical documents must match before anything else is done with them.
    pub fn filter(&self) -> Filter {
        self.pipeline.split().leading.filter
    }

    /// Whether it reads collections besides the one it is asked of.
    pub fn reads_others(&self) -> bool {
        names_others(&self.source())
    }

    /// A pipeline over stored documents.
    pub fn aggregate(&self, stored: &Namespace, pipeline: Pipeline) -> ReadOp {
        ReadOp::Aggregate(Aggregate {
            ns: stored.clone(),
            collectionless: false,
            pipeline,
            hint: self.hint.clone(),
            allow_disk_use: self.allow_disk_use,
            collation: None,
        })
    }

    /// Stored documents as they are.
    pub fn find(&self, stored: &Namespace, filter: &Filter, sort: Option<SortSpec>) -> ReadOp {
        ReadOp::Find(Find {
            sort,
            hint: self.hint.clone(),
            allow_disk_use: self.allow_disk_use,
            ..Find::matching(stored.clone(), filter.clone())
        })
    }
}

/// Whether a pipeline names other collections, inside `$facet` too.
pub fn names_others(stages: &Array<'_>) -> bool {
    stages.iter().any(|stage| {
        let Value::Document(stage) = stage else { return false };
        stage.iter().any(|(name, spec)| match (name.as_str(), spec) {
            ("$lookup" | "$graphLookup" | "$unionWith", _) => true,
            ("$facet", Value::Document(facets)) => {
                facets.iter().any(|(_, inner)| matches!(inner, Value::Array(inner) if names_others(&inner)))
            }
            _ => false,
        })
    })
}

/// How a read is run: what the backend is asked, and what is done with its rows in this process.
#[derive(Debug)]
pub struct ReadPlan {
    /// On stored documents.
    pub op: ReadOp,
    /// What is run in this process over its rows; `None` if they are the answer already.
    pub local: Option<Pipeline>,
    /// How many rows are asked for at first, if something is done with them in this process.
    pub first_rows: usize,
    /// What was asked of the stored documents, for people.
    pub pushed: Filter,
    /// From which summaries in stored documents it is answered, for people.
    pub summaries: Option<&'static str>,
    /// How to find the answer if this turns out not to be the way.
    pub unless: Option<Unless>,
}

impl ReadPlan {
    /// How many rows are asked for at first, if nothing says more.
    pub const FIRST_ROWS: usize = 101;

    /// The rows of an operation are the answer.
    pub fn new(op: ReadOp, pushed: Filter) -> ReadPlan {
        ReadPlan { op, local: None, first_rows: ReadPlan::FIRST_ROWS, pushed, summaries: None, unless: None }
    }
}

/// A plan to be taken instead if a check of the first rows fails.
#[derive(Debug)]
pub struct Unless {
    pub check: Check,
    /// `None`: the general way.
    pub plan: Option<Box<ReadPlan>>,
}

/// What is not known before the backend has answered.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// The first rows are all.
    FirstRowsAreAll,
    /// This is true of each of the first rows.
    EachRow(fn(&Doc<'_>) -> bool),
}

impl Check {
    pub fn holds(self, first: &Batch) -> bool {
        match self {
            Check::FirstRowsAreAll => first.exhausted,
            Check::EachRow(is_right) => first.documents.iter().all(is_right),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{Bson, doc};

    fn stages(stages: Vec<bson::Document>) -> Array<'static> {
        match Value::from(Bson::from(stages)) {
            Value::Array(stages) => stages,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn other_collections_are_named_by_joins_and_inside_facets() {
        let own = doc! { "$match": { "$lookup": 1 } };
        let joined = doc! { "$lookup": { "from": "others", "as": "o" } };
        assert!(!names_others(&stages(vec![own.clone()])));
        assert!(names_others(&stages(vec![own.clone(), joined.clone()])));
        assert!(names_others(&stages(vec![doc! { "$facet": { "a": [own.clone()], "b": [joined] } }])));
        assert!(!names_others(&stages(vec![doc! { "$facet": { "a": [own] } }])));
    }

    #[test]
    fn a_check_looks_at_the_first_rows_only() {
        let row = |n: i32| Doc::from(doc! { "n": n });
        let batch = |exhausted| Batch { documents: vec![row(1), row(2)], exhausted };
        assert!(Check::FirstRowsAreAll.holds(&batch(true)));
        assert!(!Check::FirstRowsAreAll.holds(&batch(false)));
        assert!(Check::EachRow(|row| row.contains("n")).holds(&batch(false)));
        assert!(!Check::EachRow(|row| row.get("n") == Some(Value::Int32(1))).holds(&batch(true)));
    }
}
