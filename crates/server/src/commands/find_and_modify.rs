//! `findAndModify`.

use super::Command;
use crate::dispatch::Call;
use crate::request::Request;
use crate::{bindings, namespace, statements};
use document::backend::Class;
use document::filter::Filter;
use document::op::{FindAndModify, Modify, WriteOp};
use document::pipeline::sort_spec;
use document::project::Projection;
use document::update::{Update, check_upsert_filter};
use document::{Code, Doc, Env, Error, Result, Value};
use std::sync::Arc;

const STRUCTURE: &str = "findAndModify";

pub(crate) const COMMAND: Command = Command {
    names: &["findAndModify", "findandmodify"],
    help: "Changes or removes one document and returns it as it was or as it became.",
    structure: STRUCTURE,
    class: Class::FindAndModify,
    run: |call| Box::pin(run(call)),
    ..Command::WRITE
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let op = parse(call.request, &call.context.env)?;
    let updates = matches!(op.action, Modify::Update { .. });
    let statement_id = op.statement_id;
    let op = WriteOp::FindAndModify(Box::new(op));
    // What is refused before anything is run says so itself.
    let failed = |error: Error| match error.code() {
        Code::CommandNotSupportedOnView => error,
        _ => error.context("Plan executor error during findAndModify :: caused by :: "),
    };
    let mut written = statements::write(call, &op).await.map_err(failed)?;
    if !written.errors.is_empty() {
        return Err(failed(written.errors.remove(0).error));
    }
    let fields = call.reply.fields();
    fields.start_document("lastErrorObject");
    fields.append("n", &statements::count(written.n));
    if updates {
        fields.append("updatedExisting", &Value::Bool(written.n > 0 && written.upserted.is_empty()));
        if let Some((_, id)) = written.upserted.first() {
            fields.append("upserted", id);
        }
    }
    fields.end();
    fields.append("value", &written.document.map_or(Value::Null, Value::Document));
    if !written.retried.is_empty() {
        fields.append("retriedStmtId", &Value::Int32(statement_id));
    }
    Ok(())
}

pub(crate) fn parse(request: &Request<'_>, env: &Env) -> Result<FindAndModify> {
    let ns = namespace::to_write(request.db.as_str(), &request.target)?;
    let (mut filter, mut sort, mut fields, mut variables, mut update) = (None, None, None, None, None);
    let (mut remove, mut return_new, mut upsert) = (false, false, false);
    let (mut bypass_validation, mut hint, mut statement_id, mut collation) = (false, None, 0, None);
    let mut array_filters: Option<Vec<Doc<'_>>> = None;
    for param in request.params(STRUCTURE) {
        match param.name() {
            "query" => filter = Some(param.document()?),
            "sort" => sort = Some(param.document()?),
            "fields" => fields = Some(param.document()?),
            "remove" => remove = param.loose_bool()?,
            "update" => update = Some(param.value),
            "new" => return_new = param.loose_bool()?,
            "upsert" => upsert = param.loose_bool()?,
            "bypassDocumentValidation" => bypass_validation = param.loose_bool()?,
            "arrayFilters" => array_filters = Some(param.documents()?),
            "hint" => hint = statements::hint(&param.value)?,
            "let" => variables = Some(param.document()?),
            "collation" => collation = param.collation(request.collates)?,
            "stmtId" => statement_id = i32::try_from(param.integer()?).unwrap_or(i32::MAX),
            "encryptionInformation" | "legacyRuntimeConstants" | "runtimeConstants" => {}
            _ => return Err(param.unknown()),
        }
    }
    if let Some(update) = &update
        && !matches!(update, Value::Document(_) | Value::Array(_))
    {
        return Err(Error::failed_to_parse("Update argument must be either an object or an array"));
    }
    check(remove, update.is_some(), return_new, upsert, array_filters.is_some())?;
    let mut names = bindings::bind(variables.as_ref(), env)?;
    let action = match update {
        Some(update) => Modify::Update {
            update: Update::parse(&update, &array_filters.unwrap_or_default(), &mut names)?,
            upsert,
            return_new,
        },
        None => Modify::Remove,
    };
    let filter = match filter {
        Some(filter) => Filter::parse(&filter, &mut names)?,
        None => Filter::all(),
    };
    let filter = filter.collated(collation.map(Doc::into_owned));
    if upsert {
        check_upsert_filter(&filter)?;
    }
    let sort = match sort.filter(|spec| !spec.is_empty()) {
        Some(spec) => Some(sort_spec::parse(&spec)?),
        None => None,
    };
    let projection = match fields.filter(|spec| !spec.is_empty()) {
        Some(spec) => Some(Arc::new(Projection::parse_find(&spec, &filter, &mut names)?.with_sort(sort.as_ref())?)),
        None => None,
    };
    if return_new && projection.as_ref().is_some_and(|projection: &Arc<Projection>| projection.needs_details()) {
        return Err(Error::bad_value("cannot use a positional projection and return the new document"));
    }
    Ok(FindAndModify { ns, filter, sort, action, projection, hint, bypass_validation, statement_id })
}

fn check(remove: bool, update: bool, return_new: bool, upsert: bool, array_filters: bool) -> Result<()> {
    let wrong = match (remove, update) {
        (false, false) => "Either an update or remove=true must be specified",
        (true, true) => "Cannot specify both an update and remove=true",
        (true, false) if upsert => "Cannot specify both upsert=true and remove=true ",
        (true, false) if return_new => {
            "Cannot specify both new=true and remove=true; 'remove' always returns the deleted document"
        }
        (true, false) if array_filters => "Cannot specify arrayFilters and remove=true",
        _ => return Ok(()),
    };
    Err(Error::failed_to_parse(wrong))
}
