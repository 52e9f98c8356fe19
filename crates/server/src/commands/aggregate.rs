//! `aggregate`.

use super::{Command, explain};
use crate::batch::{self, First};
use crate::dispatch::Call;
use crate::params::{Params, required};
use crate::request::Request;
use crate::{bindings, namespace, sink, sources, statements};
use document::backend::{Class, Head};
use document::op::{Aggregate, Explained, Namespace, ReadOp, Verbosity};
use document::pipeline::Pipeline;
use document::{Array, Code, Doc, Env, Error, Result, Value};

const STRUCTURE: &str = "aggregate";

pub(crate) const COMMAND: Command = Command {
    names: &["aggregate"],
    help: "Runs a pipeline of stages over a collection.",
    structure: STRUCTURE,
    class: Class::Aggregate,
    takes_write_concern: true,
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

/// The collection name of a pipeline that reads none.
const COLLECTIONLESS: &str = "$cmd.aggregate";

pub(crate) struct ParsedAggregate {
    pub(crate) op: Aggregate,
    batch_size: Option<u64>,
    explain: bool,
    bypass_validation: bool,
}

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let request = call.request;
    let user = call.owner().user;
    let (db, target) = (request.db.as_str(), request.target.as_str());
    let head = Head { name: STRUCTURE, class: Class::Aggregate, db, target, user: user.as_ref(), body: &request.body };
    call.server.backend.refuse(&head, call.client.relay.as_ref()).await?;
    let pipeline = sources::replaced(call).await?;
    let parsed = parse_with(call.request, &call.context.env, false, pipeline)?;
    if parsed.explain {
        let explained = Explained::Read(ReadOp::Aggregate(parsed.op));
        return explain::answer(call, explained, Verbosity::QueryPlanner, call.request.body.clone()).await;
    }
    let namespace = parsed.op.ns.to_string();
    if let Some(sink) = parsed.op.pipeline.sink.clone() {
        if call.transaction().is_some() {
            return Err(Error::new(
                Code::OperationNotSupportedInTransaction,
                format!("{} cannot be used in a transaction", sink.stage_name()),
            ));
        }
        sink::run(call, parsed.op, &sink, parsed.bypass_validation).await?;
        let fields = call.reply.fields();
        fields.start_document("cursor").start_array("firstBatch").end();
        fields.append("id", &Value::Int64(0)).append("ns", &Value::from(namespace)).end();
        return Ok(());
    }
    let cursor = batch::open(call, ReadOp::Aggregate(parsed.op)).await?;
    let first = First { namespace, size: parsed.batch_size, doing: batch::AGGREGATING, ..First::default() };
    batch::first(call, cursor, first).await
}

/// `explained`: the command stands inside `explain`, where a cursor is not needed.
pub(crate) fn parse(request: &Request<'_>, env: &Env, explained: bool) -> Result<ParsedAggregate> {
    parse_with(request, env, explained, None)
}

/// `replaced` is run instead of the pipeline that was sent: its documents do not come from the collection.
fn parse_with(
    request: &Request<'_>,
    env: &Env,
    explained: bool,
    replaced: Option<Array<'static>>,
) -> Result<ParsedAggregate> {
    let collectionless = replaced.is_some() || !matches!(request.target, Value::String(_));
    let ns = match &request.target {
        Value::String(_) => namespace::to_read(request.db.as_str(), &request.target)?,
        number if number.as_i64_exact() == Some(1) => Namespace::new(request.db.as_str(), COLLECTIONLESS),
        _ => {
            return Err(Error::failed_to_parse(
                "Invalid command format: the 'aggregate' field must specify a collection name or 1",
            ));
        }
    };
    let (mut stages, mut cursor, mut hint, mut variables, mut batch_size) = (None, false, None, None, None);
    let (mut explain, mut allow_disk_use, mut bypass_validation, mut collation) = (false, true, false, None);
    for param in request.params(STRUCTURE) {
        match param.name() {
            "pipeline" => match param.value {
                Value::Array(array) => stages = Some(array),
                _ => return Err(Error::type_mismatch("'pipeline' option must be specified as an array")),
            },
            "cursor" => {
                cursor = true;
                batch_size = cursor_option(&param.value)?;
            }
            "explain" => match param.value {
                Value::Bool(truth) => explain = truth,
                _ => return Err(Error::type_mismatch("explain must be a boolean")),
            },
            "allowDiskUse" => allow_disk_use = param.flag()?,
            "bypassDocumentValidation" => bypass_validation = param.loose_bool()?,
            "hint" => hint = statements::hint(&param.value)?,
            "let" => variables = Some(param.document()?),
            "collation" => collation = param.collation(request.collates)?.map(Doc::into_owned),
            "needsMerge" | "fromMongos" | "isMapReduceCommand" if param.bool()? => return Err(param.unknown()),
            "needsMerge" | "fromMongos" | "isMapReduceCommand" => {}
            "unwrappedReadPref" | "legacyRuntimeConstants" | "runtimeConstants" => {}
            _ => return Err(param.unknown()),
        }
    }
    let stages = match replaced {
        Some(stages) => stages,
        None => required(stages, STRUCTURE, "pipeline")?,
    };
    if explain && request.generic.write_concern.is_some() {
        return Err(Error::failed_to_parse("Aggregation explain does not support the'writeConcern' option"));
    }
    if !cursor && !explain && !explained {
        return Err(Error::failed_to_parse(
            "The 'cursor' option is required, except for aggregate with the explain argument",
        ));
    }
    let mut names = bindings::bind(variables.as_ref(), env)?;
    let pipeline = Pipeline::parse(&stages, &mut names)?;
    check_source(&pipeline, &stages, collectionless)?;
    let op = Aggregate { ns, collectionless, pipeline, hint, allow_disk_use, collation };
    Ok(ParsedAggregate { op, batch_size, explain, bypass_validation })
}

fn cursor_option(value: &Value<'_>) -> Result<Option<u64>> {
    let Value::Document(options) = value else {
        return Err(Error::type_mismatch("cursor field must be missing or an object"));
    };
    let mut batch_size = None;
    for param in Params::of("cursor", options) {
        match param.name() {
            "batchSize" => batch_size = Some(param.count()?),
            _ => return Err(param.unknown()),
        }
    }
    Ok(batch_size)
}

/// Without a collection the first stage must make the documents, and only then.
fn check_source(pipeline: &Pipeline, stages: &Array<'_>, collectionless: bool) -> Result<()> {
    let invalid = |message: String| Err(Error::new(Code::InvalidNamespace, message));
    let first = stages.get(0);
    let name = match &first {
        Some(Value::Document(stage)) => stage.iter().next().map(|(name, _)| name.to_string()),
        _ => None,
    };
    match (collectionless, pipeline.makes_documents(), name) {
        (true, false, Some(name)) => {
            invalid(format!("{{aggregate: 1}} is not valid for '{name}'; a collection is required."))
        }
        (true, false, None) => invalid("{aggregate: 1} is not valid for an empty pipeline.".into()),
        (false, true, Some(name)) => {
            invalid(format!("{name} must be run against the database with {{aggregate: 1}}, not a collection"))
        }
        _ => Ok(()),
    }
}
