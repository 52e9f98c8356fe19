//! Reading another collection from inside a pipeline: what `$lookup`, `$graphLookup` and `$unionWith` share.

use super::match_::Match;
use super::{Pipeline, Rows, Run, Stage, empty};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::{Filter, Node, Test};
use crate::raw::Doc;
use crate::value::path::Part;
use crate::value::{Path, Value};
use std::sync::Arc;

/// A collection, or none if the pipeline makes its own documents, and what is run over it.
#[derive(Debug)]
pub(super) struct Foreign {
    collection: String,
    pipeline: Pipeline,
}

impl Foreign {
    /// Without a collection the pipeline must begin with `$documents`.
    pub(super) fn new(stage: &str, collection: Option<String>, pipeline: Pipeline) -> Result<Foreign> {
        if collection.is_none() && !pipeline.makes_documents() {
            return Err(Error::failed_to_parse(format!(
                "{stage} stage without explicit collection must have a pipeline with $documents as first stage"
            )));
        }
        Ok(Foreign { collection: collection.unwrap_or_default(), pipeline: pipeline.optimised() })
    }

    pub(super) fn collection(&self) -> &str {
        &self.collection
    }

    pub(super) fn stages(&self) -> &[Arc<dyn Stage>] {
        &self.pipeline.stages
    }

    /// Runs the pipeline behind `filter`, which comes first so that an index can serve it.
    pub(super) fn open(&self, filter: Option<Filter>, run: &Run, env: &Env) -> Result<Rows> {
        let Some(filter) = filter else { return self.start(&self.pipeline, run, env) };
        let mut stages = self.pipeline.stages.clone();
        let at = usize::from(self.pipeline.makes_documents());
        stages.insert(at, Arc::new(Match::all(vec![filter])));
        self.start(&Pipeline { stages, ..Pipeline::default() }, run, env)
    }

    /// Runs the pipeline in front of `filter`, which goes ahead of the stages that leave its paths alone.
    pub(super) fn open_behind(&self, filter: Filter, run: &Run) -> Result<Rows> {
        let mut stages = self.pipeline.stages.clone();
        stages.push(Arc::new(Match::all(vec![filter])));
        self.start(&Pipeline { stages, ..Pipeline::default() }.optimised(), run, &run.env)
    }

    fn start(&self, pipeline: &Pipeline, run: &Run, env: &Env) -> Result<Rows> {
        if pipeline.makes_documents() {
            let run = Run { env: env.clone(), collections: Arc::clone(&run.collections) };
            return pipeline.start(empty(), &run);
        }
        run.collections.open(&self.collection, pipeline, env)
    }
}

/// The filter for documents whose `foreign` field equals one of `values`: as `$lookup` joins, null stands for missing too.
pub(super) fn equal_to_any(foreign: &Path, mut values: Vec<Value<'static>>) -> Filter {
    let node = |test| Node::Field { path: foreign.clone(), test };
    let root = match values.len() {
        0 => node(Test::Eq(Value::Null)),
        1 => node(Test::Eq(values.pop().unwrap_or(Value::Null))),
        // Inside $in a regex would be a pattern; here it is a value.
        _ if values.iter().any(|value| matches!(value, Value::Regex { .. })) => {
            Node::Or(values.into_iter().map(|value| node(Test::Eq(value))).collect())
        }
        _ => node(Test::among(values)),
    };
    Filter::from_node(root)
}

/// Calls `visit` with every value at `parts`: each element of an array at the end, and of the arrays on the way; a number in
/// the path is a position in an array.
pub(super) fn each_value<'a>(doc: &Doc<'a>, parts: &[Part], visit: &mut dyn FnMut(Value<'a>)) {
    let Some((first, mut rest)) = parts.split_first() else { return };
    let mut value = doc.get(&first.name).unwrap_or(Value::Missing);
    while let (Value::Array(array), Some((next, after))) = (&value, rest.split_first()) {
        let Some(index) = next.index else { break };
        let element = array.get(index).unwrap_or(Value::Missing);
        (value, rest) = (element, after);
    }
    match value {
        Value::Array(array) if rest.is_empty() => array.iter().for_each(visit),
        Value::Missing => {}
        value if rest.is_empty() => visit(value),
        Value::Array(array) => {
            for item in array.iter() {
                if let Value::Document(inner) = item {
                    each_value(&inner, rest, visit);
                }
            }
        }
        Value::Document(inner) => each_value(&inner, rest, visit),
        _ => {}
    }
}
