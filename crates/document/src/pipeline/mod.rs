//! Aggregation pipelines: each stage is parsed once and then turns one stream of documents into another.
//!
//! A stage is one file with a constant [`StageDef`] listed in [`STAGES`]. Stages pull; blocking ones (`$group`, `$sort`)
//! drain their input first. Writing stages (`$merge`, `$out`) are a [`Sink`]: the server runs them through the backend, so
//! that every write path is the same.

pub mod expr;
pub mod sort_spec;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::raw::{Array, Doc};
use expr::Names;
use std::fmt::Debug;
use std::sync::Arc;

/// A stream of documents.
pub trait Stream: Send {
    fn next(&mut self) -> Result<Option<Doc<'static>>>;
    /// Called when nobody will ask for a while (between two getMores): let go of snapshots and iterators; forward it.
    fn pause(&mut self);
}

pub type Rows = Box<dyn Stream>;

/// A compiled stage: immutable, shared by all runs.
pub trait Stage: Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows>;
    /// What the access layer can take over when the stage leads the pipeline.
    fn leading(&self) -> Leading<'_> {
        Leading::Other
    }
}

/// The stages an access layer understands.
pub enum Leading<'a> {
    Match(&'a Filter),
    Sort(&'a crate::op::SortSpec),
    Skip(u64),
    Limit(u64),
    Other,
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
    pub parse: fn(&crate::Value<'_>, &mut Names) -> Result<Arc<dyn Stage>>,
}

/// All stages, sorted by name.
pub const STAGES: &[&StageDef] = &[];

#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    pub stages: Vec<Arc<dyn Stage>>,
    /// `$merge` or `$out` at the end.
    pub sink: Option<Sink>,
}

/// Where a writing pipeline puts its results.
#[derive(Clone, Debug)]
pub enum Sink {
    Out { db: Option<String>, collection: String },
    Merge(Arc<MergeSpec>),
}

#[derive(Clone, Debug)]
pub struct MergeSpec {
    pub db: Option<String>,
    pub collection: String,
    pub on: Vec<String>,
    pub matched: WhenMatched,
    pub not_matched: WhenNotMatched,
}

#[derive(Clone, Debug)]
pub enum WhenMatched {
    Replace,
    KeepExisting,
    Merge,
    Fail,
    /// The stages as written; `$$new` and the `let` variables are constants per result.
    Pipeline {
        stages: Array<'static>,
        variables: Option<Doc<'static>>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenNotMatched {
    Insert,
    Discard,
    Fail,
}

impl Pipeline {
    pub fn parse(_stages: &Array<'_>, _names: &mut Names) -> Result<Pipeline> {
        Err(Error::not_implemented("aggregate"))
    }

    /// Chains the stages behind `input`.
    pub fn start(&self, input: Rows, run: &Run) -> Result<Rows> {
        self.stages.iter().try_fold(input, |rows, stage| stage.clone().start(rows, run))
    }
}
