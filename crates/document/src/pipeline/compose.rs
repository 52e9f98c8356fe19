//! Pipelines put together by programs: a query as stages, a stage from elsewhere.

use super::foreign::Foreign;
use super::limit::Limit;
use super::match_::Match;
use super::skip::Skip;
use super::sort::Sort;
use super::union_with::UnionWith;
use super::{Pipeline, Stage};
use crate::error::Result;
use crate::filter::{Filter, Node};
use crate::op::SortSpec;
use crate::raw::{Array, ArrayWriter, Doc, DocWriter};
use crate::value::Value;
use std::sync::Arc;

impl Pipeline {
    /// A query as the stages that say the same.
    pub fn of_query(filter: &Filter, sort: Option<&SortSpec>, skip: u64, limit: Option<u64>) -> Pipeline {
        let (mut stages, mut source): (Vec<Arc<dyn Stage>>, _) = (Vec::new(), ArrayWriter::new());
        if !filter.is_all() {
            stages.push(Arc::new(Match { filter: filter.clone(), conditions: conditions(filter) }));
            source.push(&written("$match", &Value::Document(filter.source.borrow())));
        }
        if let Some(spec) = sort.filter(|spec| !spec.keys.is_empty()) {
            stages.push(Arc::new(Sort { spec: spec.clone(), limit: None }));
            source.push(&written("$sort", &Value::Document(spec.to_document())));
        }
        let whole = |number: u64| Value::Int64(i64::try_from(number).unwrap_or(i64::MAX));
        if skip > 0 {
            stages.push(Arc::new(Skip(skip)));
            source.push(&written("$skip", &whole(skip)));
        }
        if let Some(limit) = limit {
            stages.push(Arc::new(Limit(limit)));
            source.push(&written("$limit", &whole(limit)));
        }
        let reads_score = sort.is_some_and(SortSpec::reads_score);
        Pipeline { stages, sink: None, source: Some(source.finish()), reads_score }.optimised()
    }

    /// The documents of another collection behind those that come in: what `inner` gives of it.
    pub fn union_with(collection: &str, inner: Pipeline) -> Result<Pipeline> {
        let source = inner.source.as_ref().map(|stages| {
            let mut writer = DocWriter::new();
            writer.append("coll", &Value::from(collection)).append("pipeline", &Value::Array(stages.borrow()));
            [written("$unionWith", &Value::Document(writer.finish()))].into_iter().collect()
        });
        let foreign = Foreign::new("$unionWith", Some(collection.to_owned()), inner)?;
        Ok(Pipeline::of_stage(UnionWith(foreign), source))
    }

    /// One stage; `source` is what says the same to a real MongoDB.
    pub fn of_stage(stage: impl Stage + 'static, source: Option<Array<'static>>) -> Pipeline {
        Pipeline { stages: vec![Arc::new(stage)], sink: None, source, reads_score: false }
    }
}

/// The parts that all must hold, each for itself.
fn conditions(filter: &Filter) -> Vec<Filter> {
    match &filter.root {
        Node::And(nodes) => nodes.iter().cloned().map(Filter::from_node).collect(),
        _ => vec![filter.clone()],
    }
}

fn written(name: &str, argument: &Value<'_>) -> Value<'static> {
    let mut writer = DocWriter::new();
    writer.append(name, argument);
    Value::Document(writer.finish())
}

impl SortSpec {
    /// `{ a: 1, "b.c": -1 }`. A score has no name of its own; any will do.
    pub fn to_document(&self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        for (at, key) in self.keys.iter().enumerate() {
            if key.is_by_score() {
                writer.append(&format!("score{at}"), &written("$meta", &Value::from("textScore")));
                continue;
            }
            writer.append(&key.path.dotted(), &Value::Int32(if key.descending { -1 } else { 1 }));
        }
        writer.finish()
    }
}
