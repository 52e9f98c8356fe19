//! `find`.

use super::Command;
use crate::batch::{self, First};
use crate::dispatch::Call;
use crate::profiler::collection;
use crate::request::Request;
use crate::{bindings, namespace, statements};
use document::backend::Class;
use document::filter::Filter;
use document::op::{Find, Hint, ReadOp, SortSpec};
use document::pipeline::sort_spec;
use document::project::Projection;
use document::value::show;
use document::{Code, Doc, Env, Error, Result, Value};
use std::sync::Arc;

const STRUCTURE: &str = "FindCommandRequest";

pub(crate) const COMMAND: Command = Command {
    names: &["find"],
    help: "Returns the documents that match a filter, sorted, projected and in batches.",
    structure: STRUCTURE,
    class: Class::Find,
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

pub(crate) struct ParsedFind {
    pub(crate) op: Find,
    first: First,
}

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.queries.add(1);
    let ParsedFind { op, first } = parse(call.request, &call.context.env)?;
    let cursor = match collection::entries(call) {
        Some(entries) => collection::find(entries, &op, &call.context.env)?,
        None => batch::open(call, ReadOp::Find(op)).await?,
    };
    batch::first(call, cursor, first).await
}

pub(crate) fn parse(request: &Request<'_>, env: &Env) -> Result<ParsedFind> {
    let ns = namespace::to_read(request.db.as_str(), &request.target)?;
    let (mut filter, mut projection, mut sort, mut variables) = (None, None, None, None);
    let (mut hint, mut min, mut max, mut collation) = (None, None, None, None);
    let (mut skip, mut limit, mut to_return) = (0, 0, false);
    let (mut tailable, mut await_data) = (false, false);
    let (mut return_key, mut show_record_id, mut allow_disk_use) = (false, false, true);
    let mut first = First { namespace: ns.to_string(), doing: batch::FINDING, ..First::default() };
    for param in request.params(STRUCTURE) {
        match param.name() {
            "filter" => filter = Some(param.owned_document()?),
            "projection" => projection = Some(param.owned_document()?),
            "sort" => sort = Some(param.owned_document()?),
            "hint" => hint = statements::hint(&param.value)?,
            "skip" => skip = param.count()?,
            "limit" => limit = param.count()?,
            "batchSize" => first.size = Some(param.count()?),
            "ntoreturn" => {
                param.count()?;
                to_return = true;
            }
            "singleBatch" => first.single = param.flag()?,
            "noCursorTimeout" => first.never_expires = param.flag()?,
            "min" => min = Some(param.owned_document()?.into_owned()),
            "max" => max = Some(param.owned_document()?.into_owned()),
            "returnKey" => return_key = param.flag()?,
            "showRecordId" => show_record_id = param.flag()?,
            "allowDiskUse" => allow_disk_use = param.flag()?,
            "tailable" => tailable = param.flag()?,
            "awaitData" => await_data = param.flag()?,
            "let" => variables = Some(param.document()?),
            "collation" => collation = param.collation(request.collates)?.map(Doc::into_owned),
            "allowPartialResults" | "oplogReplay" => {
                param.flag()?;
            }
            // Internal ones that change nothing on one node.
            "term" | "options" | "legacyRuntimeConstants" | "runtimeConstants" if !matches!(&param.value, Value::Document(doc) if !doc.is_empty()) =>
                {}
            _ => return Err(param.unknown()),
        }
    }
    if await_data && !tailable {
        return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
    }
    if tailable && filter.as_ref().is_some_and(|filter| filter.contains("$text")) {
        return Err(Error::bad_value("text and tailable cursor not allowed in same query"));
    }
    if tailable {
        return Err(Error::bad_value(format!(
            "error processing query: ns={ns}Tree: $and\nSort: {{}}\nProj: {{}}\n tailable cursor requested on non capped collection"
        )));
    }
    if to_return {
        if limit != 0 || first.size.is_some() {
            return Err(Error::bad_value("'limit' or 'batchSize' fields can not be set with 'ntoreturn' field."));
        }
        return Err(Error::new(
            Code::Location(5_746_102),
            "the ntoreturn find command parameter is not supported when FCV >= 5.1",
        ));
    }
    let mut names = bindings::bind(variables.as_ref(), env)?;
    let filter = match filter {
        Some(source) if !source.is_empty() => Filter::parse(&source, &mut names)?,
        _ => Filter::all(),
    }
    .collated(collation);
    let sort = match sort.filter(|spec| !spec.is_empty()) {
        Some(spec) if spec.contains("$natural") && spec.iter().count() > 1 => {
            return Err(Error::bad_value(format!(
                "Cannot include '$natural' in compound sort: {}",
                show::document(&spec)
            )));
        }
        Some(spec) if natural(&spec).is_some() => {
            if filter.has_text() && hint.is_none() {
                return Err(Error::bad_value("text expression not allowed with $natural sort order"));
            }
            hint = hint.or(natural(&spec));
            None
        }
        Some(spec) => Some(sort_spec::parse(&spec)?),
        None => None,
    };
    if let Some(sort) = &sort {
        sort.check_score(&filter)?;
    }
    let projection = match projection.filter(|spec: &Doc<'_>| !spec.is_empty()) {
        Some(spec) => Some(Arc::new(Projection::parse_find(&spec, &filter, &mut names)?.with_sort(sort.as_ref())?)),
        None => None,
    };
    if let Some(projection) = &projection {
        projection.check_score(&filter)?;
    }
    let limit = (limit != 0).then_some(limit);
    // A sort in memory learns only from the next batch that nothing is left; that by `_id` is never one.
    let by_id = |sort: &SortSpec| matches!(&*sort.keys, [key] if key.path.dotted() == "_id");
    first.limit = limit.filter(|_| sort.as_ref().is_none_or(by_id));
    let op =
        Find { ns, filter, sort, projection, skip, limit, hint, min, max, return_key, show_record_id, allow_disk_use };
    Ok(ParsedFind { op, first })
}

/// `{ $natural: 1 }`: the order of the collection itself.
fn natural(sort: &Doc<'_>) -> Option<Hint> {
    match sort.get("$natural") {
        Some(way) if way.is_number() && sort.iter().count() == 1 => {
            Some(Hint::Natural { descending: way.as_i64_exact().is_some_and(|way| way < 0) })
        }
        _ => None,
    }
}
