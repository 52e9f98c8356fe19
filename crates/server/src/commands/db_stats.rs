//! `dbStats`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use crate::reply::NO_CODE;
use document::op::AdminOp;
use document::{Error, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["dbStats", "dbstats"],
    help: "Counts what a database holds.",
    access: Access::Read,
    structure: "dbStats",
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::SERVER
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let scale = scale(call)?;
    let op = AdminOp::DbStats { db: call.db().to_owned(), scale };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}

/// What sizes are divided by: `scale`, 1 unless given.
fn scale(call: &Call<'_>) -> Result<i64> {
    let scale = call.request.params("").find(|param| param.name() == "scale").map(|param| param.value);
    match scale {
        None | Some(Value::Null) => Ok(1),
        Some(value) => match value.as_number().map(|number| number.to_i64_saturated()) {
            None => Err(Error::new(NO_CODE, "scale has to be a number > 0")),
            Some(scale) if scale <= 0 => Err(Error::new(NO_CODE, "scale has to be > 0")),
            Some(scale) => Ok(scale),
        },
    }
}
