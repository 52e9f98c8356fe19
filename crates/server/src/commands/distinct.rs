//! `distinct`.

use super::Command;
use crate::dispatch::Call;
use crate::params::required;
use crate::profiler::collection;
use crate::request::Request;
use crate::{batch, namespace, statements};
use document::backend::Class;
use document::filter::Filter;
use document::op::{Distinct, ReadOp};
use document::pipeline::expr::Names;
use document::value::{Path, order};
use document::{Array, Code, Doc, Error, Result, Value};

const STRUCTURE: &str = "distinct";

pub(crate) const COMMAND: Command = Command {
    names: &["distinct"],
    help: "Returns the different values of a field.",
    structure: STRUCTURE,
    class: Class::Distinct,
    in_api_version_1: false,
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let op = parse(call.request)?;
    let answer = match collection::entries(call) {
        Some(entries) => collection::distinct(entries, &op, &call.context.env)?,
        None => batch::only(call, ReadOp::Distinct(op)).await?,
    };
    let mut values: Vec<Value<'static>> = match answer.get("values") {
        Some(Value::Array(values)) => values.iter().collect(),
        _ => Vec::new(),
    };
    values.sort_by(order::compare);
    call.reply.append("values", values.into_iter().collect::<Array<'static>>());
    if let Some(time) = batch::read_at(call) {
        call.reply.append("atClusterTime", Value::Timestamp(time));
    }
    Ok(())
}

pub(crate) fn parse(request: &Request<'_>) -> Result<Distinct> {
    let ns = namespace::to_count(request.db.as_str(), &request.target)?;
    let (mut key, mut filter, mut hint, mut collation) = (None, None, None, None);
    for param in request.params(STRUCTURE) {
        match param.name() {
            "key" => key = Some(param.text()?),
            "query" => filter = Some(param.document()?),
            "hint" => hint = statements::hint(&param.value)?,
            "collation" => collation = param.collation(request.collates)?.map(Doc::into_owned),
            _ => return Err(param.unknown()),
        }
    }
    let key = required(key, STRUCTURE, "key")?;
    if key.as_bytes().contains(&0) {
        return Err(Error::new(Code::Location(31032), "Key field cannot contain an embedded null byte"));
    }
    let key = Path::field_path(key.as_str())?;
    let filter = match filter {
        Some(filter) => Filter::parse(&filter, &mut Names::new())?,
        None => Filter::all(),
    }
    .collated(collation);
    Ok(Distinct { ns, key, filter, hint })
}
