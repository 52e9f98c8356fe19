//! `dataSize`.

use super::{Access, Command, InTransaction, timeseries};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::Param;
use document::op::AdminOp;
use document::{Error, Result, Text, Value};

const STRUCTURE: &str = "dataSize";

pub(crate) const COMMAND: Command = Command {
    names: &["dataSize", "datasize"],
    help: "Tells how many bytes the documents of a collection take.",
    access: Access::Read,
    structure: STRUCTURE,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let name = Param::new(STRUCTURE, Text::borrowed(STRUCTURE), call.request.target.clone()).text()?;
    let mut estimate = false;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "estimate" => estimate = param.loose_bool()?,
            "keyPattern" | "min" | "max" => {
                return Err(Error::not_implemented("dataSize of a part of a collection"));
            }
            _ => return Err(param.unknown()),
        }
    }
    let ns = namespace::parse_full(name.as_str())?;
    let op = AdminOp::CollStats { ns: ns.clone(), scale: 1 };
    let answers = call.server.backend.admin(&mut call.session, &call.context, op).await?;
    timeseries::refuse_figures(&ns, &answers)?;
    let figure = |name: &str| {
        let number = answers.first().and_then(|answer| answer.get(name)).and_then(|number| number.as_number());
        Value::Int64(number.map_or(0, |number| number.to_i64_saturated()))
    };
    let (size, count) = (figure("size"), figure("count"));
    call.reply.append("estimate", estimate).append("size", size).append("numObjects", count);
    call.reply.append("millis", 0_i64);
    Ok(())
}
