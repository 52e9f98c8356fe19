//! Pipelines over collections and views: what leads a pipeline is answered by the plan, the rest is streamed.

use super::ahead;
use super::present::Present;
use super::rows::{self, Window};
use crate::catalog::{Catalog, Collection};
use crate::index::access::{Query, text};
use crate::index::scan::Want;
use document::op::{Hint, Namespace};
use document::pipeline::{Collections, Pipeline, Role, Rows, Run, Stage, empty, not_first, results};
use document::text::carried::without_scores;
use document::{Code, Env, Error, Result};
use std::sync::Arc;

/// How many views may stand on each other.
const MAX_VIEWS: usize = 20;

/// What a pipeline is run on.
#[derive(Clone)]
pub(crate) struct ReadSource {
    pub(crate) present: Present,
    pub(crate) env: Env,
}

impl ReadSource {
    /// The results of `pipeline` over a collection, or over a view of one.
    pub(crate) fn run(&self, ns: &Namespace, pipeline: Pipeline, hint: Option<&Hint>) -> Result<Rows> {
        self.open(ns, pipeline, hint).map(|(rows, _)| rows)
    }

    /// The same, and whether a batch of them takes no time to speak of.
    pub(super) fn open(&self, ns: &Namespace, pipeline: Pipeline, hint: Option<&Hint>) -> Result<(Rows, bool)> {
        let (rows, quick) = self.run_in(ns, pipeline, hint, &self.env)?;
        Ok((results(rows), quick))
    }

    /// Whether reading the collection once takes no time to speak of.
    pub(super) fn is_quick(&self, ns: &Namespace) -> Result<bool> {
        let moment = self.present.moment()?;
        Ok(moment.catalog.get(ns).is_none_or(|found| found.view().is_none() && super::is_small(found)))
    }

    fn run_in(&self, ns: &Namespace, pipeline: Pipeline, hint: Option<&Hint>, env: &Env) -> Result<(Rows, bool)> {
        let collections = Arc::new(OfDatabase { source: self.clone(), db: ns.db.clone() });
        let run = Run { env: env.clone(), collections };
        if pipeline.makes_documents() {
            return Ok((pipeline.start(empty(), &run)?, false));
        }
        let moment = self.present.moment()?;
        let (collection, pipeline) = resolve(&moment.catalog, ns, pipeline)?;
        let split = pipeline.split();
        let leading = &split.leading;
        let bound = text::bind(collection.as_deref(), ns, &leading.filter, hint)?;
        let filter = bound.as_ref().unwrap_or(&leading.filter);
        let Some(collection) = collection else { return Ok((split.rest.start(empty(), &run)?, false)) };
        let window = Window { skip: leading.skip, limit: leading.limit };
        // Only a count is made of entries: they do not tell a missing field from null, which stages do.
        let score = split.rest.reads_score;
        let counts = split.needed.as_ref().is_some_and(Vec::is_empty) && leading.sort.is_none() && !score;
        let (sort, limit) = (leading.sort.as_ref(), window.reach());
        let query = Query { sort, hint, limit, score, ..Query::new(filter, env) };
        let want = if counts { Want::Count } else { Want::Documents };
        let (rows, plan) = rows::find(&self.present, &collection, query, window, want)?;
        let few = super::is_small(&collection) || super::reads_few(&plan, window);
        let quick = few && split.rest.stages.iter().all(|stage| stays_short(&**stage));
        let drained = split.rest.stages.first().is_some_and(|stage| stage.name() == "$group");
        let rows = split.rest.start(if drained { ahead::read_ahead(rows) } else { rows }, &run)?;
        Ok((if score { without_scores(rows) } else { rows }, quick))
    }
}

/// Whether a stage has little to do with few documents: it reads no others and makes no more of them.
fn stays_short(stage: &dyn Stage) -> bool {
    match stage.role() {
        Role::Match(_) | Role::Sort(_) | Role::Skip(_) | Role::Limit(_) | Role::Transform(_) => true,
        Role::Source | Role::Other => stage.name() == "$group",
    }
}

/// The collection behind a name, and what to run over it; `None` if there is none.
pub(crate) fn resolve(
    catalog: &Catalog,
    ns: &Namespace,
    mut pipeline: Pipeline,
) -> Result<(Option<Arc<Collection>>, Pipeline)> {
    let mut ns = ns.clone();
    for _ in 0..=MAX_VIEWS {
        let Some(found) = catalog.get(&ns) else { return Ok((None, pipeline)) };
        let Some(view) = found.view() else { return Ok((Some(found.clone()), pipeline)) };
        if pipeline.searches_text() && !view.pipeline.stages.is_empty() {
            return Err(not_first());
        }
        pipeline = view.pipeline.clone().then(pipeline);
        ns = view.on.clone();
    }
    Err(Error::new(
        Code::ViewDepthLimitExceeded,
        format!("View depth too deep or view cycle detected; maximum depth is {MAX_VIEWS}"),
    ))
}

/// The other collections that a pipeline names, in the same moment.
struct OfDatabase {
    source: ReadSource,
    db: Arc<str>,
}

impl Collections for OfDatabase {
    fn open(&self, collection: &str, pipeline: &Pipeline, env: &Env) -> Result<Rows> {
        let ns = Namespace::new(&self.db, collection);
        self.source.run_in(&ns, pipeline.clone(), None, env).map(|(rows, _)| rows)
    }
}
