//! What `find` shows of a document, as a stage: with `$`, `$elemMatch` and `$slice`, which a view's pipeline cannot say.

use crate::mql::call;
use document::filter::{Details, Filter};
use document::pipeline::{Rows, Run, Stage, Stream};
use document::project::Projection;
use document::{Doc, Env, Result, Value};
use std::sync::Arc;

#[derive(Debug)]
pub(super) struct FindProjection {
    projection: Arc<Projection>,
    /// What the match found out about arrays is found out again, if the projection asks for it.
    filter: Option<Filter>,
}

impl FindProjection {
    pub(super) fn new(projection: Arc<Projection>, filter: &Filter) -> FindProjection {
        let filter = projection.needs_details().then(|| filter.clone());
        FindProjection { projection, filter }
    }

    pub(super) fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        let mut details = Details::default();
        if let Some(filter) = &self.filter {
            filter.matches_with(doc, env, &mut details)?;
        }
        self.projection.apply(doc, &details, env)
    }

    /// The stage that says the same to a real MongoDB; `None` if it has none.
    pub(super) fn to_mql(&self) -> Option<Value<'static>> {
        let spec = self.projection.source()?;
        let only_find = |value: &Value<'_>| match value {
            Value::Document(inner) => ["$slice", "$elemMatch", "$meta"].iter().any(|name| inner.contains(name)),
            _ => false,
        };
        let plain = spec.iter().all(|(name, value)| !name.as_str().contains('$') && !only_find(&value));
        plain.then(|| call("$project", Value::Document(spec.borrow())))
    }
}

impl Stage for FindProjection {
    fn name(&self) -> &'static str {
        "$project"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Projected { stage: self, input, env: run.env.clone() }))
    }

    fn one_to_one(&self) -> bool {
        true
    }
}

struct Projected {
    stage: Arc<FindProjection>,
    input: Rows,
    env: Env,
}

impl Stream for Projected {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(doc) = self.input.next()? else { return Ok(None) };
        self.stage.apply(&doc, &self.env).map(Some)
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
