//! Reads of collections whose documents have several versions (SEMANTICS R19): every document is seen in the newest one.
//!
//! What is asked about paths that no version changes is asked of the stored documents as it is. A filter on others is asked of each
//! version, and again of what was found. A find whose order no version changes stays one, and its documents are brought up in this
//! process; anything else is a pipeline that brings them up where they are stored.

use crate::active::Lenses;
use crate::execute::read::find_projection::FindProjection;
use crate::execute::read::newest_documents::{self, FoundDocuments};
use crate::execute::read::request::ParsedRead;
use crate::execute::read::result::{self, ResultForm};
use crate::execute::read::versioned_joins;
use crate::mql::call;
use crate::rule::Lens;
use document::backend::{Backend, Cursor, Facts, Session};
use document::filter::Filter;
use document::op::{Aggregate, Context, Find, ReadOp};
use document::pipeline::Pipeline;
use document::pipeline::expr::{self, Names, Scope};
use document::{Code, Doc, Error, Result, Value};
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
    let op = versioned_joins::rewritten(lenses, op, context)?;
    let Some(lens) = lens_of(lenses, &op) else { return backend.read(session, context, op).await };
    let ns = op.ns().clone();
    let LensPlan { op, mut found, form } = plan(lens, op, context, backend.facts())?;
    if let Some(found) = found.as_mut().filter(|_| lens.migrate.on_read && session.transaction.is_none()) {
        found.seen = Some((ns, lenses.seen.clone()));
    }
    let cursor = backend.read(session, context, op).await?;
    let cursor = match found {
        Some(found) => found.behind(cursor),
        None => cursor,
    };
    Ok(result::cursor(cursor, form))
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
pub(super) struct LensPlan {
    pub(super) op: ReadOp,
    found: Option<FoundDocuments>,
    form: ResultForm,
}

pub(super) fn lens_of<'l>(lenses: &'l Lenses, op: &ReadOp) -> Option<&'l Arc<Lens>> {
    let makes_documents = match op {
        ReadOp::Aggregate(op) => op.collectionless || op.pipeline.makes_documents(),
        ReadOp::Find(_) | ReadOp::Count(_) | ReadOp::Distinct(_) => false,
    };
    lenses.of(op.ns()).filter(|_| !makes_documents)
}

pub(super) fn plan(lens: &Arc<Lens>, op: ReadOp, context: &Context, facts: Facts) -> Result<LensPlan> {
    if !sees_versions(lens, &op) {
        return Ok(LensPlan { op, found: None, form: ResultForm::Rows });
    }
    match op {
        ReadOp::Find(find) if is_kept_order(lens, &find) => Ok(find_plan(lens, find)),
        op => pipeline_plan(lens, &op, context, facts),
    }
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

fn reads_changed(lens: &Lens, filter: &Filter) -> bool {
    filter.reads().is_none_or(|paths| paths.iter().any(|path| lens.changes(path)))
}

fn is_kept_order(lens: &Lens, find: &Find) -> bool {
    find.sort.iter().flat_map(|sort| &sort.keys).all(|key| !lens.changes(&key.path))
}

/// A find of stored documents.
fn find_plan(lens: &Arc<Lens>, find: Find) -> LensPlan {
    let is_exact = !reads_changed(lens, &find.filter);
    let projection = find.projection.as_ref().map(|shown| FindProjection::new(shown.clone(), &find.filter));
    let (skip, limit) = if is_exact { (0, None) } else { (find.skip, find.limit) };
    let filter = (!is_exact).then(|| find.filter.clone());
    let found = FoundDocuments { lens: lens.clone(), filter, skip, limit, projection, seen: None };
    let mut stored = Find { filter: lens.push(&find.filter), projection: None, ..find };
    if !is_exact {
        (stored.skip, stored.limit) = (0, None);
    }
    LensPlan { op: ReadOp::Find(stored), found: Some(found), form: ResultForm::Rows }
}

/// One pipeline: the pushed filter, what brings documents up, and then what was asked.
fn pipeline_plan(lens: &Arc<Lens>, op: &ReadOp, context: &Context, facts: Facts) -> Result<LensPlan> {
    let collation = match op {
        ReadOp::Find(op) => &op.filter.collation,
        ReadOp::Count(op) => &op.filter.collation,
        ReadOp::Distinct(op) => &op.filter.collation,
        ReadOp::Aggregate(_) => &None,
    };
    if collation.is_some() {
        let message = "a collation does not go together with fields that versions of documents have changed";
        return Err(Error::new(Code::NotImplemented, message));
    }
    let parsed = ParsedRead::of(op, context)?;
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
    });
    Ok(LensPlan { op, found: None, form })
}
