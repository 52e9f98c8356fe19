//! Aggregation pipelines: each stage is parsed once and then turns one stream of documents into another.
//!
//! A stage is one file with a constant [`StageDef`] listed in [`STAGES`]. Stages pull; blocking ones (`$group`, `$sort`)
//! drain their input first. Writing stages (`$merge`, `$out`) are a [`Sink`]: the server runs them through the backend, so
//! that every write path is the same. [`Pipeline::split`] tells the engine what it can answer from an index.

mod compose;
mod expand;
pub mod expr;
mod external_sort;
mod foreign;
mod implied;
mod leading;
mod map;
mod merging;
mod nested;
mod optimise;
mod parse;
mod places;
mod registry;
mod rows;
mod sink;
pub mod sort_spec;
mod text_search;

mod bucket;
mod bucket_auto;
mod count;
mod documents;
mod facet;
mod graph_lookup;
mod group;
mod grouping;
mod limit;
mod lookup;
mod match_;
mod merge;
mod out;
mod project;
mod redact;
mod refused;
mod replace_root;
mod sample;
mod skip;
mod sort;
mod sort_by_count;
mod union_with;
mod unwind;

#[cfg(test)]
mod group_tests;
#[cfg(test)]
mod joins_tests;
#[cfg(test)]
mod optimise_tests;
#[cfg(test)]
mod recorded_tests;
#[cfg(test)]
mod testing;

pub use expand::Expand;
pub use leading::{Leading, Split};
pub use parse::{Parser, Within};
pub use registry::STAGES;
pub use rows::{Rows, Stream, drain, empty, from_documents, results};
pub use sink::{MergeSpec, Sink, WhenMatched, WhenNotMatched};
pub use sort::sorted;
pub use text_search::not_first;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Array, Doc};
use crate::value::{Path, Value};
use expr::Names;
use std::fmt::Debug;
use std::sync::Arc;

/// A compiled stage: immutable, shared by all runs.
pub trait Stage: Debug + Send + Sync {
    fn name(&self) -> &'static str;

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows>;

    /// What the optimiser and the access layer know more about than [`Stage::start`].
    fn role(&self) -> Role<'_> {
        Role::Other
    }

    /// Which paths of its input matter, given those of its output that do; nothing means all.
    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        None
    }

    /// Whether it gives one document for each, in the same order, so that a window before it is one behind it.
    fn one_to_one(&self) -> bool {
        matches!(self.role(), Role::Transform(_))
    }

    /// Whether a condition on `path` holds after the stage exactly for what comes of the documents for which it holds before, so
    /// that a `$match` on it may be moved ahead.
    fn keeps(&self, _path: &Path) -> bool {
        false
    }
}

/// The stages that are understood by others than themselves.
pub enum Role<'a> {
    Match(&'a match_::Match),
    Sort(&'a sort::Sort),
    Skip(u64),
    Limit(u64),
    /// Gives one document for each, whatever the others are: what an update may consist of.
    Transform(&'a dyn Transform),
    /// The first stage makes the documents: there is no collection behind it.
    Source,
    Other,
}

/// A function of one document.
pub trait Transform {
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>>;
}

/// What running a pipeline needs from outside.
#[derive(Clone)]
pub struct Run {
    pub env: Env,
    pub collections: Arc<dyn Collections>,
}

/// Other collections of the database, for `$lookup`, `$unionWith` and the like. A missing collection is empty; a view runs
/// its own pipeline first.
pub trait Collections: Send + Sync {
    fn open(&self, collection: &str, pipeline: &Pipeline, env: &Env) -> Result<Rows>;
}

/// One entry of the registry.
pub struct StageDef {
    pub name: &'static str,
    pub help: &'static str,
    pub parse: fn(&Value<'_>, &mut Parser<'_>) -> Result<Parsed>,
    pub place: Place,
    /// Known to MongoDB, refused by us: `parse` only says so.
    pub refused: bool,
}

/// What a stage is parsed to: `$count` and `$sortByCount` are two stages.
pub enum Parsed {
    One(Arc<dyn Stage>),
    Two(Arc<dyn Stage>, Arc<dyn Stage>),
    Sink(Sink),
}

impl Parsed {
    fn one(stage: impl Stage + 'static) -> Result<Parsed> {
        Ok(Parsed::One(Arc::new(stage)))
    }
}

/// Where in a pipeline a stage may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Anywhere,
    First,
    Last,
    /// Anywhere but inside `$facet`.
    NotInFacet,
}

/// A compiled pipeline.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    pub stages: Vec<Arc<dyn Stage>>,
    /// `$merge` or `$out` at the end.
    pub sink: Option<Sink>,
    /// As the client wrote it, the sink included: for a backend that is a real MongoDB. `None` if it was put together here.
    pub source: Option<Array<'static>>,
    /// Whether a stage reads the score of the text search that it begins with.
    pub reads_score: bool,
}

impl Pipeline {
    /// Parses and optimises the pipeline of a command or a view.
    pub fn parse(stages: &Array<'_>, names: &mut Names) -> Result<Pipeline> {
        let pipeline = parse::pipeline(stages, &mut Parser::new(names))?.optimised();
        Ok(Pipeline { source: Some(stages.clone().into_owned()), ..pipeline })
    }

    /// Parses the pipeline of an update: stages that turn one document into one.
    pub fn parse_update(stages: &Array<'_>, names: &mut Names) -> Result<Pipeline> {
        parse::update(stages, names)
    }

    /// Refuses what is no list of known stages; says nothing about their arguments.
    pub fn check_shape(stages: &Array<'_>) -> Result<()> {
        parse::check_shape(stages)
    }

    /// This pipeline, then `next`: a view's and then what is asked of the view.
    pub fn then(mut self, next: Pipeline) -> Pipeline {
        self.source = match (&self.source, &next.source) {
            (Some(first), Some(then)) => Some(first.iter().chain(then.iter()).collect()),
            _ => None,
        };
        self.stages.extend(next.stages);
        self.sink = self.sink.or(next.sink);
        self.reads_score |= next.reads_score;
        self.optimised()
    }

    /// Chains the stages behind `input`.
    pub fn start(&self, input: Rows, run: &Run) -> Result<Rows> {
        self.stages.iter().try_fold(input, |rows, stage| Arc::clone(stage).start(rows, run))
    }

    /// Whether it begins with a text search.
    pub fn searches_text(&self) -> bool {
        matches!(self.stages.first().map(|stage| stage.role()), Some(Role::Match(stage)) if stage.filter.has_text())
    }

    /// Whether the first stage makes the documents, so that no collection is read.
    pub fn makes_documents(&self) -> bool {
        self.stages.first().is_some_and(|stage| matches!(stage.role(), Role::Source))
    }

    /// Runs a pipeline of an update on one document.
    pub fn transform(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        let mut result: Option<Doc<'static>> = None;
        for stage in &self.stages {
            let Role::Transform(transform) = stage.role() else {
                return Err(parse::not_in_update(stage.name()));
            };
            result = Some(transform.apply(result.as_ref().map_or(&doc.borrow(), |done| done), env)?);
        }
        Ok(result.unwrap_or_else(|| doc.clone().into_owned()))
    }
}

/// Known to MongoDB, not there: the same words for every stage.
fn refuse(name: &str) -> Error {
    Error::not_implemented(format_args!("The stage {name}"))
}
