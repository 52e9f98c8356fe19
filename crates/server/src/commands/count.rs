//! `count`.

use super::{Command, InTransaction};
use crate::dispatch::Call;
use crate::profiler::collection;
use crate::request::Request;
use crate::{batch, namespace, statements};
use document::backend::Class;
use document::filter::Filter;
use document::op::{Count, ReadOp};
use document::pipeline::expr::Names;
use document::value::show;
use document::{Doc, Error, Result, Value};

const STRUCTURE: &str = "count";

pub(crate) const COMMAND: Command = Command {
    names: &["count"],
    help: "Counts the documents that match a query.",
    structure: STRUCTURE,
    class: Class::Count,
    in_transaction: InTransaction::Refused(
        "Please see http://dochub.mongodb.org/core/transaction-count for a recommended alternative.",
    ),
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let op = parse(call.request)?;
    let answer = match collection::entries(call) {
        Some(entries) => collection::count(entries, &op, &call.context.env)?,
        None => batch::only(call, ReadOp::Count(op)).await?,
    };
    let number = answer.get("n").and_then(|number| number.as_i64_exact()).unwrap_or_default();
    call.reply.append("n", statements::count(number.unsigned_abs()));
    Ok(())
}

pub(crate) fn parse(request: &Request<'_>) -> Result<Count> {
    let ns = namespace::to_count(request.db.as_str(), &request.target)?;
    let (mut filter, mut skip, mut limit, mut hint, mut collation) = (None, 0, None, None, None);
    for param in request.params(STRUCTURE) {
        match param.name() {
            "query" => filter = Some(param.document()?),
            "skip" => skip = param.count()?,
            // A negative limit is its absolute value.
            "limit" => limit = Some(whole(&param.value)?.unsigned_abs()),
            "hint" => hint = statements::hint(&param.value)?,
            "collation" => collation = param.collation(request.collates)?.map(Doc::into_owned),
            "fields" | "queryOptions" | "encryptionInformation" => {}
            _ => return Err(param.unknown()),
        }
    }
    let filter = match filter {
        Some(filter) => Filter::parse(&filter, &mut Names::new())?,
        None => Filter::all(),
    }
    .collated(collation);
    Ok(Count { ns, filter, skip, limit: limit.filter(|limit| *limit != 0), hint })
}

fn whole(value: &Value<'_>) -> Result<i64> {
    match (value.is_number(), value.as_i64_exact()) {
        (true, Some(number)) => Ok(number),
        (true, None) => Err(Error::failed_to_parse(format!("Expected an integer: limit: {}", show::element(value)))),
        (false, _) => Err(Error::bad_value("limit value is not a valid number")),
    }
}
