//! Reads of collections whose documents have several versions (SEMANTICS R19): every document is seen in the newest one.
//!
//! What is asked about paths that no version changes is asked of the stored documents as it is. A filter on others is asked of each
//! version, and again of what was found. A find whose order no version changes stays one, and its documents are brought up in this
//! process; anything else is a pipeline that brings them up where they are stored.

use crate::active::Lenses;
use crate::active::known_views::ClientViews;
use crate::execute::read::find_projection::FindProjection;
use crate::execute::read::found_documents::{FoundDocuments, ShownVersion};
use crate::execute::read::newest_documents;
use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::{self, ResultForm};
use crate::execute::read::versioned_order::{self, OrderedFinds};
use crate::execute::read::{versioned_joins, versioned_limits, versioned_text};
use crate::mql::{call, object};
use crate::rule::Lens;
use document::backend::{Backend, Cursor, Facts, Session};
use document::filter::Filter;
use document::op::{Aggregate, Context, Find, Namespace, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::{self, Names, Scope};
use document::{Doc, Result, Value};
use std::sync::Arc;

/// Opens a cursor over newest documents. Other collections are read as they are, but for those that the pipeline joins.
pub(crate) async fn open(
    backend: &dyn Backend,
    lenses: &Lenses,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
) -> Result<Box<dyn Cursor>> {
    if lenses.is_empty() {
        return backend.read(session, context, op).await;
    }
    open_among(backend, lenses, &ClientViews::new(), session, context, op).await
}

/// The same for a read that may join views of clients.
pub(super) async fn open_among(
    backend: &dyn Backend,
    lenses: &Lenses,
    views: &ClientViews,
    session: &mut Session,
    context: &Context,
    op: ReadOp,
) -> Result<Box<dyn Cursor>> {
    let op = versioned_joins::rewritten(lenses, views, op, context, backend.facts())?;
    let Some(lens) = lens_of(lenses, &op) else { return backend.read(session, context, op).await };
    let ns = op.ns().clone();
    let mut plan = plan(lens, op, context, backend.facts())?;
    if let Some(found) = plan.found().filter(|_| lens.migrate.on_read && session.transaction.is_none()) {
        found.seen = Some((ns, lenses.seen.clone()));
    }
    match plan {
        LensPlan::Ordered(finds) => finds.open(backend, session, context).await,
        LensPlan::Found(find, found) => Ok(found.behind(backend.read(session, context, ReadOp::Find(find)).await?)),
        LensPlan::Rows(op, form) => Ok(result::cursor(backend.read(session, context, op).await?, form)),
    }
}

/// The names that a command's `let` makes known.
pub(crate) fn variables(context: &Context) -> Result<Names> {
    let mut names = Names::new();
    for (name, value) in context.sent.variables.iter().flat_map(Doc::iter) {
        let value = expr::parse(&value, &mut names)?;
        let value = value.eval(&mut Scope::new(Doc::empty(), &context.env))?.into_owned();
        names.bind_constant(name.as_str(), value);
    }
    Ok(names)
}

/// What the backend is asked, and what is left to do.
#[expect(clippy::large_enum_variant, reason = "one is made for each read; a box would save nothing")]
pub(super) enum LensPlan {
    /// The rows are the answer.
    Rows(ReadOp, ResultForm),
    /// Stored documents are found, and brought up in this process.
    Found(Find, FoundDocuments),
    /// So are pages of several finds, which are put together.
    Ordered(OrderedFinds),
}

impl LensPlan {
    fn found(&mut self) -> Option<&mut FoundDocuments> {
        match self {
            LensPlan::Rows(..) => None,
            LensPlan::Found(_, found) => Some(found),
            LensPlan::Ordered(finds) => Some(finds.found()),
        }
    }

    /// All that is asked of the backend; the last is about documents of the newest version, if it is not about all.
    pub(super) fn into_ops(self) -> Vec<ReadOp> {
        match self {
            LensPlan::Rows(op, _) => vec![op],
            LensPlan::Found(find, _) => vec![ReadOp::Find(find)],
            LensPlan::Ordered(finds) => finds.finds.into_iter().map(ReadOp::Find).collect(),
        }
    }
}

pub(super) fn lens_of<'l>(lenses: &'l Lenses, op: &ReadOp) -> Option<&'l Arc<Lens>> {
    let makes_documents = match op {
        ReadOp::Aggregate(op) => op.collectionless || op.pipeline.makes_documents(),
        ReadOp::Find(_) | ReadOp::Count(_) | ReadOp::Distinct(_) => false,
    };
    lenses.of(op.ns()).filter(|_| !makes_documents)
}

pub(super) fn plan(lens: &Arc<Lens>, op: ReadOp, context: &Context, facts: Facts) -> Result<LensPlan> {
    if let ReadOp::Find(find) = &op {
        versioned_limits::check(lens, find)?;
    }
    if versioned_text::is_search(&op) {
        return versioned_text::plan(lens, op, context);
    }
    if !sees_versions(lens, &op) {
        return Ok(LensPlan::Rows(op, ResultForm::Rows));
    }
    // How a collation compares is known to MongoDB alone: it must see newest documents.
    let is_compared_here = |find: &Find| reads_changed(lens, &find.filter) || find.projection.is_some();
    match op {
        ReadOp::Find(find) if op_is_collated(&find) && is_compared_here(&find) => {
            pipeline_plan(lens, &ReadOp::Find(find), context, facts)
        }
        ReadOp::Find(find) if is_kept_order(lens, &find) => Ok(find_plan(lens, find)),
        ReadOp::Find(find) => match versioned_order::plan(lens, &find, || found_by(lens, &find)) {
            Some(finds) => Ok(LensPlan::Ordered(finds)),
            None => pipeline_plan(lens, &ReadOp::Find(find), context, facts),
        },
        op => pipeline_plan(lens, &op, context, facts),
    }
}

fn op_is_collated(find: &Find) -> bool {
    document::op::is_collated(find.filter.collation.as_ref())
}

/// Whether the answer depends on what versions change.
fn sees_versions(lens: &Lens, op: &ReadOp) -> bool {
    match op {
        ReadOp::Find(_) => true,
        ReadOp::Count(op) => reads_changed(lens, &op.filter),
        ReadOp::Distinct(op) => lens.changes(&op.key) || reads_changed(lens, &op.filter),
        ReadOp::Aggregate(op) => op.pipeline.needs().is_none_or(|paths| paths.iter().any(|path| lens.changes(path))),
    }
}

/// Whether a filter reads what versions change. A search for text reads an index of stored documents.
pub(super) fn reads_changed(lens: &Lens, filter: &Filter) -> bool {
    if filter.has_text() {
        return versioned_text::beside(filter).is_none_or(|rest| reads_changed(lens, &rest));
    }
    filter.reads().is_none_or(|paths| paths.iter().any(|path| lens.changes(path)))
}

pub(super) fn is_kept_order(lens: &Lens, find: &Find) -> bool {
    find.sort.iter().flat_map(|sort| &sort.keys).all(|key| !lens.changes(&key.path))
}

/// What is left to do with the documents of a find.
fn found_by(lens: &Arc<Lens>, find: &Find) -> FoundDocuments {
    let is_exact = !reads_changed(lens, &find.filter);
    let projection = find.projection.as_ref().map(|shown| FindProjection::new(shown.clone(), &find.filter));
    let (skip, limit) = if is_exact { (0, None) } else { (find.skip, find.limit) };
    let filter = (!is_exact).then(|| find.filter.clone());
    FoundDocuments { version: ShownVersion::Newest(lens.clone()), filter, skip, limit, projection, seen: None }
}

/// A find of stored documents.
pub(super) fn find_plan(lens: &Arc<Lens>, find: Find) -> LensPlan {
    let found = found_by(lens, &find);
    let mut stored = Find { projection: None, ..find };
    if let Some(asked) = &found.filter {
        stored.filter = lens.push(asked);
        (stored.skip, stored.limit) = (0, None);
    }
    LensPlan::Found(stored, found)
}

/// The documents of older versions that match, by their `_id`s, as a collation compares them.
pub(crate) fn old_matching(lens: &Lens, ns: &Namespace, filter: &Filter) -> ReadOp {
    let stored = lens.push_to_old(filter);
    let asked =
        [call("$match", Value::Document(filter.source.clone())), call("$project", object([("_id", Value::Int32(1))]))];
    let first = call("$match", Value::Document(stored.source));
    let source = [first].into_iter().chain(lens.view().iter()).chain(asked).collect();
    ReadOp::Aggregate(Aggregate {
        ns: ns.clone(),
        collectionless: false,
        pipeline: Pipeline { source: Some(source), ..Pipeline::default() },
        hint: None,
        allow_disk_use: true,
        collation: filter.collation.clone(),
    })
}

/// One pipeline: the pushed filter, what brings documents up, and then what was asked.
fn pipeline_plan(lens: &Arc<Lens>, op: &ReadOp, context: &Context, facts: Facts) -> Result<LensPlan> {
    let collation = op.collation().cloned();
    let mut parsed = ParsedRead::of(op, context)?;
    if let (Some(_), ReadOp::Distinct(distinct)) = (&collation, op) {
        parsed.make_collated_distinct(distinct)?;
    }
    let request = &parsed.request;
    let pushed = lens.push(&request.filter());
    let pipeline = match facts.runs_our_code {
        true => Pipeline::of_query(&pushed, None, 0, None).then(newest_documents::stage(lens)).then(request.native()),
        false => {
            let matching = (!pushed.is_all()).then(|| call("$match", Value::Document(pushed.source)));
            let projection = request.projection.as_ref().and_then(|projection| projection.source.clone());
            let asked = request.source();
            let stages = matching.into_iter().chain(lens.view().iter()).chain(asked.iter());
            let source = stages.chain(projection.iter().flat_map(|stages| stages.iter())).collect();
            Pipeline { source: Some(source), ..Pipeline::default() }
        }
    };
    let form = match parsed.only_in_find {
        Some(projection) if !facts.runs_our_code => ResultForm::Project(projection),
        _ => parsed.form,
    };
    let op = ReadOp::Aggregate(Aggregate {
        ns: op.ns().clone(),
        collectionless: false,
        pipeline,
        hint: parsed.request.hint.clone(),
        allow_disk_use: parsed.request.allow_disk_use,
        collation,
    });
    Ok(LensPlan::Rows(op, form))
}
