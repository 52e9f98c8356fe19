//! `connectionStatus`.

use super::Command;
use crate::dispatch::Call;
use document::{Array, Result, Value};

const STRUCTURE: &str = "connectionStatus";

pub(crate) const COMMAND: Command = Command {
    names: &["connectionStatus"],
    help: "Tells who is logged in on the connection: nobody, there are no users.",
    structure: STRUCTURE,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let mut privileges = false;
    for param in call.request.params(STRUCTURE) {
        match param.name() {
            "showPrivileges" => privileges = param.loose_bool()?,
            _ => return Err(param.unknown()),
        }
    }
    let none = Value::Array(Array::empty());
    let fields = call.reply.fields();
    fields.start_document("authInfo");
    fields.append("authenticatedUsers", &none).append("authenticatedUserRoles", &none);
    if privileges {
        fields.append("authenticatedUserPrivileges", &none);
    }
    fields.end();
    Ok(())
}
