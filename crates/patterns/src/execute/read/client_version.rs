//! Reads of clients that work with an older version (`shop@1`, SEMANTICS R19): what they ask is asked of the newest documents, and what
//! is found is shown to them in their version.
//!
//! What is asked about paths that no step since that version concerns is asked as it is. A find whose order stays one is a find, and its
//! documents are shown by this process; anything else is a pipeline with the steps back in front.

use crate::active::Lenses;
use crate::execute::read::find_projection::FindProjection;
use crate::execute::read::found_documents::{FoundDocuments, ShownVersion};
use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::{self, ResultForm};
use crate::execute::read::seen_documents;
use crate::execute::read::seen_joins;
use crate::rule::Lens;
use document::backend::{Backend, Cursor, Session};
use document::filter::Filter;
use document::op::{self, Aggregate, Context, Explained, Find, ReadOp, Verbosity};
use document::pipeline::Pipeline;
use document::project::Projection;
use document::{Code, Doc, Env, Error, Result};
use std::sync::Arc;

/// Opens a cursor over documents as clients of the version see them. `op` names the collection in the database itself, whose newest
/// documents `backend` gives.
pub(crate) async fn open(
    backend: &dyn Backend,
    lenses: &Lenses,
    version: i32,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
) -> Result<Box<dyn Cursor>> {
    let SeenPlan { op, seen, form } = plan(lenses, version, op, context)?;
    let cursor = backend.read(session, context, op).await?;
    let cursor = match seen {
        Some(seen) => seen.behind(cursor),
        None => cursor,
    };
    Ok(result::cursor(cursor, form))
}

/// How the read of newest documents is run that answers a client's.
pub(crate) async fn explain(
    backend: &dyn Backend,
    lenses: &Lenses,
    version: i32,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
    verbosity: Verbosity,
) -> Result<Doc<'static>> {
    let plan = plan(lenses, version, op, context)?;
    backend.explain(session, context, Explained::Read(plan.op), verbosity).await
}

/// What is asked of newest documents, and what is left to do.
struct SeenPlan {
    op: ReadOp,
    seen: Option<FoundDocuments>,
    form: ResultForm,
}

impl SeenPlan {
    fn as_it_is(op: ReadOp) -> SeenPlan {
        SeenPlan { op, seen: None, form: ResultForm::Rows }
    }
}

fn plan(lenses: &Lenses, version: i32, op: ReadOp, context: &Context) -> Result<SeenPlan> {
    let op = seen_joins::rewritten(lenses, version, op, context)?;
    if matches!(&op, ReadOp::Aggregate(op) if op.collectionless || op.pipeline.makes_documents()) {
        return Ok(SeenPlan::as_it_is(op));
    }
    let Some(lens) = lenses.at(op.ns(), version)? else { return Ok(SeenPlan::as_it_is(op)) };
    match op {
        ReadOp::Find(find) => {
            find.check_for_view()?;
            // How a collation compares is known to MongoDB alone: it must see what the client sees.
            let is_compared_here = op::is_collated(find.filter.collation.as_ref())
                && (find.projection.is_some() || lens.seen_filter(&find.filter, version).left.is_some());
            match is_kept_order(lens, version, &find) && !is_compared_here {
                true => Ok(find_plan(lens, version, find)),
                false => pipeline_plan(lens, version, &ReadOp::Find(find), context),
            }
        }
        ReadOp::Count(count) if lens.seen_filter(&count.filter, version).left.is_none() => {
            Ok(SeenPlan::as_it_is(ReadOp::Count(count)))
        }
        ReadOp::Distinct(distinct)
            if !lens.changes_since(version, &distinct.key)
                && lens.seen_filter(&distinct.filter, version).left.is_none() =>
        {
            Ok(SeenPlan::as_it_is(ReadOp::Distinct(distinct)))
        }
        ReadOp::Aggregate(aggregate) if !sees_versions(lens, version, &aggregate.pipeline) => {
            Ok(SeenPlan::as_it_is(ReadOp::Aggregate(aggregate)))
        }
        op => pipeline_plan(lens, version, &op, context),
    }
}

/// Whether newest documents are asked the whole of it, in its own words.
pub(crate) fn is_passed_on(lens: &Lens, version: i32, op: &ReadOp) -> bool {
    let is_same = |filter: &Filter| lens.seen_filter(filter, version).left.is_none();
    match op {
        ReadOp::Find(find) => {
            is_same(&find.filter)
                && is_kept_order(lens, version, find)
                && !op::is_collated(find.filter.collation.as_ref())
        }
        ReadOp::Count(count) => is_same(&count.filter),
        ReadOp::Distinct(distinct) => !lens.changes_since(version, &distinct.key) && is_same(&distinct.filter),
        ReadOp::Aggregate(aggregate) => !sees_versions(lens, version, &aggregate.pipeline),
    }
}

fn sees_versions(lens: &Lens, version: i32, pipeline: &Pipeline) -> bool {
    pipeline.needs().is_none_or(|paths| paths.iter().any(|path| lens.changes_since(version, path)))
}

fn is_kept_order(lens: &Lens, version: i32, find: &Find) -> bool {
    find.sort.iter().flat_map(|sort| &sort.keys).all(|key| !lens.changes_since(version, &key.path))
}

fn find_plan(lens: &Arc<Lens>, version: i32, find: Find) -> SeenPlan {
    let filter = lens.seen_filter(&find.filter, version);
    let is_exact = filter.left.is_none();
    let projection = find.projection.as_ref().map(|shown| FindProjection::new(shown.clone(), &find.filter));
    let (skip, limit) = if is_exact { (0, None) } else { (find.skip, find.limit) };
    let version = ShownVersion::Older(lens.clone(), version);
    let seen = FoundDocuments { version, filter: filter.left, skip, limit, projection, seen: None };
    let mut asked = Find { filter: filter.asked, projection: None, ..find };
    if !is_exact {
        (asked.skip, asked.limit) = (0, None);
    }
    SeenPlan { op: ReadOp::Find(asked), seen: Some(seen), form: ResultForm::Rows }
}

/// One pipeline: what can be asked of newest documents, the steps back, and then what was asked.
fn pipeline_plan(lens: &Arc<Lens>, version: i32, op: &ReadOp, context: &Context) -> Result<SeenPlan> {
    let collation = op.collation().cloned();
    let mut parsed = ParsedRead::of(op, context)?;
    if let (Some(_), ReadOp::Distinct(distinct)) = (&collation, op) {
        parsed.make_collated_distinct(distinct)?;
    }
    let request = &parsed.request;
    let leading = request.filter();
    if leading.has_text() {
        let message =
            "$text does not go together with an order or a stage on fields that versions of documents have changed";
        return Err(Error::new(Code::NotImplemented, message));
    }
    let asked = Pipeline::of_query(&lens.seen_filter(&leading, version).asked, None, 0, None);
    let shown = asked.then(seen_documents::stage(lens, version)).then(request.pipeline.clone());
    let (pipeline, form) = match (parsed.only_in_find, &request.projection) {
        (Some(projection), _) => (shown, ResultForm::Project(projection)),
        (None, Some(projection)) => (shown.then(projection.clone()), parsed.form),
        (None, None) => (shown, parsed.form),
    };
    let op = ReadOp::Aggregate(Aggregate {
        ns: op.ns().clone(),
        collectionless: false,
        pipeline,
        hint: request.hint.clone(),
        allow_disk_use: request.allow_disk_use,
        collation,
    });
    Ok(SeenPlan { op, seen: None, form })
}

/// What a client's findAndModify shows of a document.
pub(crate) fn projected(
    projection: Option<&Arc<Projection>>,
    filter: &Filter,
    seen: &Doc<'static>,
    env: &Env,
) -> Result<Doc<'static>> {
    match projection {
        Some(projection) => FindProjection::new(projection.clone(), filter).apply(seen, env),
        None => Ok(seen.clone()),
    }
}
