//! `distinct`.

use super::Command;
use crate::dispatch::Call;
use crate::params::required;
use crate::request::Request;
use crate::{batch, namespace, statements};
use document::filter::Filter;
use document::op::{Distinct, ReadOp};
use document::pipeline::expr::Names;
use document::value::Path;
use document::{Result, Value};

const STRUCTURE: &str = "distinct";

pub(crate) const COMMAND: Command = Command {
    names: &["distinct"],
    help: "Returns the different values of a field.",
    structure: STRUCTURE,
    in_api_version_1: false,
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let op = parse(call.request)?;
    let answer = batch::only(call, ReadOp::Distinct(op)).await?;
    let values = answer.get("values").unwrap_or(Value::Missing);
    call.reply.fields().append("values", &values);
    Ok(())
}

pub(crate) fn parse(request: &Request<'_>) -> Result<Distinct> {
    let ns = namespace::to_read(request.db.as_str(), &request.target)?;
    let (mut key, mut filter, mut hint) = (None, None, None);
    for param in request.params(STRUCTURE) {
        match param.name() {
            "key" => key = Some(param.text()?),
            "query" => filter = Some(param.document()?),
            "hint" => hint = statements::hint(&param.value)?,
            "collation" => param.simple_collation()?,
            _ => return Err(param.unknown()),
        }
    }
    let key = Path::field_path(required(key, STRUCTURE, "key")?.as_str())?;
    let filter = match filter {
        Some(filter) => Filter::parse(&filter, &mut Names::new())?,
        None => Filter::all(),
    };
    Ok(Distinct { ns, key, filter, hint })
}
