//! `dropDatabase`.

use super::Command;
use crate::dispatch::Call;
use crate::params::Param;
use document::backend::Class;
use document::op::AdminOp;
use document::{Code, Error, Result, Text};

const STRUCTURE: &str = "dropDatabase";

pub(crate) const COMMAND: Command = Command {
    names: &["dropDatabase"],
    help: "Removes all collections of a database.",
    structure: STRUCTURE,
    class: Class::DropDatabase,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let request = call.request;
    let number = Param::new(STRUCTURE, Text::borrowed(STRUCTURE), request.target.clone()).integer()?;
    if let Some(param) = request.params(STRUCTURE).next() {
        return Err(param.unknown());
    }
    let db = request.db.to_string();
    if matches!(&*db, "admin" | "config" | "local") {
        return Err(Error::new(Code::IllegalOperation, format!("Dropping the '{db}' database is prohibited.")));
    }
    if number != 1 {
        return Err(Error::new(Code::Location(5_255_100), "Have to pass 1 as 'drop' parameter"));
    }
    let op = AdminOp::DropDatabase { db: db.clone() };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    call.server.workload.database_dropped(&db);
    call.server.profiler.drop_database(&db);
    Ok(())
}
