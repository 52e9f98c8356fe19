//! `find`: of a collection by its plan, of a view by its pipeline with the filter, order and window behind it.

use super::pipeline::ReadSource;
use super::rows::{self, Window};
use crate::catalog::Collection;
use crate::index::access::{self, Query};
use crate::index::scan::Want;
use document::filter::{Details, Filter};
use document::op::Find;
use document::pipeline::expr::Names;
use document::pipeline::{Pipeline, Rows, Stream, empty};
use document::project::Projection;
use document::text::carried::without_scores;
use document::value::Path;
use document::{Array, Doc, DocWriter, Env, Error, Result, Value};
use std::sync::Arc;

/// What a find gives.
pub(super) struct Opened {
    pub(super) rows: Rows,
    /// How many documents there are at most, if that is known without asking for one more.
    pub(super) left: Option<u64>,
    /// The first document may take long: many must be read or sorted for it.
    pub(super) blocking: bool,
}

pub(super) fn open(source: &ReadSource, op: &Find) -> Result<Opened> {
    let moment = source.present.moment()?;
    let window = Window { skip: op.skip, limit: op.limit };
    if op.filter.has_text() {
        access::text::bind(moment.catalog.get(&op.ns).map(|found| &**found), &op.ns, &op.filter, op.hint.as_ref())?;
    }
    match moment.catalog.get(&op.ns) {
        Some(found) if found.view().is_some() => {
            Ok(Opened { rows: of_view(source, op, window)?, left: None, blocking: true })
        }
        _ if op.show_record_id => Err(Error::not_implemented("showRecordId")),
        Some(collection) => of_collection(source, op, collection, window),
        None => Ok(Opened { rows: empty(), left: None, blocking: false }),
    }
}

fn of_collection(source: &ReadSource, op: &Find, collection: &Arc<Collection>, window: Window) -> Result<Opened> {
    let needed = needed(op).filter(|_| !op.return_key);
    let bound = access::text::bind(Some(collection), &op.ns, &op.filter, op.hint.as_ref())?;
    let filter = bound.as_ref().unwrap_or(&op.filter);
    let query = Query { filter, ..query(op, needed.as_deref(), window, &source.env) };
    let want = if op.return_key { Want::Keys } else { Want::Documents };
    let (rows, plan) = rows::find(&source.present, collection, query, window, want)?;
    if op.return_key && !plan.ordered && op.sort.is_some() {
        return Err(Error::not_implemented("returnKey with a sort that no index gives"));
    }
    let rows = match &op.projection {
        // As in MongoDB, keys come as they are.
        Some(_) if op.return_key => rows,
        Some(projection) => projected(rows, projection.clone(), filter, &source.env),
        None => rows,
    };
    let searches = matches!(plan.source, access::plan::Source::Collection { .. }) && plan.residual.is_some();
    let blocking = (searches || !plan.ordered) && !super::is_small(collection);
    Ok(Opened { rows, left: op.limit.filter(|_| plan.ordered), blocking })
}

/// The paths that are read of the documents behind the filter; nothing means all.
pub(crate) fn needed(op: &Find) -> Option<Vec<Path>> {
    let mut paths = op.projection.as_ref()?.reads()?;
    paths.extend(op.sort.iter().flat_map(|sort| &sort.keys).map(|key| key.path.clone()));
    Some(paths)
}

pub(crate) fn query<'q>(op: &'q Find, needed: Option<&'q [Path]>, window: Window, env: &'q Env) -> Query<'q> {
    Query {
        filter: &op.filter,
        sort: op.sort.as_ref(),
        hint: op.hint.as_ref(),
        min: op.min.as_ref(),
        max: op.max.as_ref(),
        needed,
        limit: window.reach(),
        score: reads_score(op),
        env,
    }
}

fn reads_score(op: &Find) -> bool {
    op.projection.as_ref().is_some_and(|projection| projection.reads_score())
}

fn of_view(source: &ReadSource, op: &Find, window: Window) -> Result<Rows> {
    op.check_for_view()?;
    let mut pipeline = Pipeline::of_query(&op.filter, op.sort.as_ref(), window.skip, window.limit);
    if let Some(spec) = op.projection.as_ref().and_then(|projection| projection.source()) {
        pipeline = pipeline.then(parsed([stage("$project", &Value::Document(spec.borrow()))])?);
    }
    source.run(&op.ns, pipeline, op.hint.as_ref())
}

fn stage(name: &str, argument: &Value<'_>) -> Value<'static> {
    let mut writer = DocWriter::new();
    writer.append(name, argument);
    Value::Document(writer.finish())
}

fn parsed(stages: impl IntoIterator<Item = Value<'static>>) -> Result<Pipeline> {
    let stages: Array<'static> = stages.into_iter().collect();
    Pipeline::parse(&stages, &mut Names::new())
}

/// Each document projected; what the match found out about arrays is found out again where the projection asks for it.
fn projected(rows: Rows, projection: Arc<Projection>, filter: &Filter, env: &Env) -> Rows {
    let filter = projection.needs_details().then(|| filter.clone());
    let reads_score = projection.reads_score();
    let rows: Rows = Box::new(Projected { rows, projection, filter, env: env.clone() });
    if reads_score { without_scores(rows) } else { rows }
}

struct Projected {
    rows: Rows,
    projection: Arc<Projection>,
    filter: Option<Filter>,
    env: Env,
}

impl Stream for Projected {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(doc) = self.rows.next()? else { return Ok(None) };
        let mut details = Details::default();
        if let Some(filter) = &self.filter {
            filter.matches_with(&doc, &self.env, &mut details)?;
        }
        self.projection.apply(&doc, &details, &self.env).map(Some)
    }

    fn pause(&mut self) {
        self.rows.pause();
    }
}
