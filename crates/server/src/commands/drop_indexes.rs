//! `dropIndexes`.

use super::Command;
use crate::dispatch::Call;
use crate::namespace;
use crate::params::required;
use document::backend::Class;
use document::op::AdminOp;
use document::{Error, Result, Value};

const STRUCTURE: &str = "dropIndexes";

pub(crate) const COMMAND: Command = Command {
    names: &["dropIndexes", "deleteIndexes"],
    help: "Removes indexes by name or key pattern, or all but that of `_id`.",
    structure: STRUCTURE,
    class: Class::DropIndexes,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    let mut which = None;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "index" => which = Some(param.value),
            "isTimeseriesNamespace" => {}
            _ => return Err(param.unknown()),
        }
    }
    let which = required(which, STRUCTURE, "index")?;
    if !matches!(which, Value::String(_) | Value::Document(_) | Value::Array(_)) {
        return Err(Error::type_mismatch(format!(
            "BSON field 'dropIndexes.index' is the wrong type '{}', expected types '[string, object']",
            which.type_name()
        )));
    }
    let op = AdminOp::DropIndexes { ns, which: which.into_owned() };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}
