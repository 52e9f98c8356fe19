//! `listDatabases`.

use super::{Access, Command, InTransaction};
use crate::dispatch::Call;
use document::filter::Filter;
use document::op::AdminOp;
use document::pipeline::expr::Names;
use document::{Array, Result, Value};

const STRUCTURE: &str = "listDatabases";

pub(crate) const COMMAND: Command = Command {
    names: &["listDatabases"],
    help: "Lists the databases and their sizes.",
    access: Access::Read,
    structure: STRUCTURE,
    admin_only: true,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(run(call)),
    ..Command::READ
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let (mut filter, mut name_only) = (Filter::all(), false);
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "filter" => filter = Filter::parse(&param.document()?, &mut Names::new())?,
            "nameOnly" => name_only = param.loose_bool()?,
            "authorizedDatabases" => {}
            _ => return Err(param.unknown()),
        }
    }
    let op = AdminOp::ListDatabases { filter, name_only };
    let databases = call.server.backend.admin(&mut call.session, &call.context, op).await?;
    let size = |database: &document::Doc<'static>| {
        database.get("sizeOnDisk").and_then(|size| size.as_i64_exact()).unwrap_or_default()
    };
    let total: i64 = databases.iter().map(size).sum();
    call.reply.append("databases", databases.into_iter().map(Value::Document).collect::<Array<'static>>());
    if !name_only {
        call.reply.append("totalSize", total).append("totalSizeMb", total / (1024 * 1024));
    }
    Ok(())
}
