//! `explain`.

use super::{Command, InTransaction, aggregate, build_info, count, distinct, find, find_and_modify};
use crate::dispatch::Call;
use crate::params::{Param, not_a_choice};
use crate::parsed::Parsed;
use crate::request::Request;
use crate::state::host_name;
use document::backend::Class;
use document::op::{DeleteStatement, Explained, ReadOp, UpdateStatement, Verbosity, WriteOp};
use document::{Code, Doc, DocWriter, Env, Error, Result, Text, Value};

const STRUCTURE: &str = "explain";

pub(crate) const COMMAND: Command = Command {
    names: &["explain"],
    help: "Tells how a command would be run, and what it would cost.",
    structure: STRUCTURE,
    class: Class::Explain,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let request = call.request;
    let inner = Param::new(STRUCTURE, Text::borrowed(STRUCTURE), request.target.clone()).document()?;
    let mut verbosity = Verbosity::AllPlansExecution;
    for param in request.params(STRUCTURE) {
        match param.name() {
            "verbosity" => verbosity = parse_verbosity(param.text()?.as_str())?,
            _ => return Err(param.unknown()),
        }
    }
    let explained = Request::parse_in(request.db.clone(), inner.clone(), request.frame())?;
    let explained = explained.collating(request.collates);
    let op = parse(&explained, &call.context.env)?;
    // Those of the command inside, not of `explain`.
    call.context.sent.variables = match inner.get("let") {
        Some(Value::Document(variables)) => Some(variables.into_owned()),
        _ => None,
    };
    answer(call, op, verbosity, inner).await
}

fn parse_verbosity(word: &str) -> Result<Verbosity> {
    match word {
        "queryPlanner" => Ok(Verbosity::QueryPlanner),
        "executionStats" => Ok(Verbosity::ExecutionStats),
        "allPlansExecution" => Ok(Verbosity::AllPlansExecution),
        other => Err(not_a_choice(STRUCTURE, "verbosity", other)),
    }
}

fn parse(request: &Request<'_>, env: &Env) -> Result<Explained> {
    let name = request.name.as_str();
    Ok(match name {
        "find" => Explained::Read(ReadOp::Find(find::parse(request, env)?.op)),
        "aggregate" => Explained::Read(ReadOp::Aggregate(aggregate::parse(request, env, true)?.op)),
        "count" => Explained::Read(ReadOp::Count(count::parse(request)?)),
        "distinct" => Explained::Read(ReadOp::Distinct(distinct::parse(request)?)),
        "update" => Explained::Write(Parsed::<UpdateStatement>::new(request, env, false)?.into_explained()?),
        "delete" => Explained::Write(Parsed::<DeleteStatement>::new(request, env, false)?.into_explained()?),
        "findAndModify" | "findandmodify" => {
            Explained::Write(WriteOp::FindAndModify(Box::new(find_and_modify::parse(request, env)?)))
        }
        known if find(known).is_some() => {
            return Err(Error::new(Code::IllegalOperation, format!("Cannot explain cmd: {known}")));
        }
        unknown => {
            return Err(Error::new(Code::CommandNotFound, format!("Explain failed due to unknown command: {unknown}")));
        }
    })
}

/// Runs the explanation and writes it, with the command and the server it is about.
pub(crate) async fn answer(call: &mut Call<'_>, op: Explained, verbosity: Verbosity, command: Doc<'_>) -> Result<()> {
    let plan = call.server.backend.explain(&mut call.session, &call.context, op, verbosity).await?;
    let mut shown = DocWriter::with_capacity(command.as_bytes().len() + 32);
    for (name, value) in command.iter().filter(|(name, _)| is_own(name.as_str())) {
        shown.append(name.as_str(), &value);
    }
    shown.append("$db", &Value::from(call.db()));
    let (address, version) = (call.server.address, call.server.options.version.clone());
    call.reply.append_all(&plan);
    let fields = call.reply.fields();
    fields.append("command", &Value::Document(shown.finish()));
    fields.start_document("serverInfo");
    fields.append("host", &Value::from(host_name())).append("port", &Value::Int32(i32::from(address.port())));
    fields.append("version", &Value::from(version)).append("gitVersion", &Value::from(build_info::GIT_VERSION));
    fields.end();
    fields.start_document("serverParameters");
    let memory = Value::Int32(i32::try_from(call.server.options.stage_memory).unwrap_or(i32::MAX));
    for name in [
        "internalQueryFacetBufferSizeBytes",
        "internalQueryFacetMaxOutputDocSizeBytes",
        "internalLookupStageIntermediateDocumentMaxSizeBytes",
        "internalDocumentSourceGroupMaxMemoryBytes",
        "internalQueryMaxBlockingSortMemoryUsageBytes",
    ] {
        fields.append(name, &memory);
    }
    fields.append("internalQueryProhibitBlockingMergeOnMongoS", &Value::Int32(0));
    fields.append("internalQueryMaxAddToSetBytes", &memory);
    fields.append("internalDocumentSourceSetWindowFieldsMaxMemoryBytes", &memory);
    fields.end();
    Ok(())
}

/// A parameter of the command itself, not of the session or the transport.
fn is_own(name: &str) -> bool {
    !name.starts_with('$') && !matches!(name, "lsid" | "txnNumber" | "autocommit" | "startTransaction")
}
