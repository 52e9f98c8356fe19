//! `listCommands`.

use super::{Access, COMMANDS, Command};
use crate::dispatch::Call;
use document::{Array, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["listCommands"],
    help: "Lists the commands with their help.",
    structure: "listCommands",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let fields = call.reply.fields();
    fields.start_document("commands");
    for command in COMMANDS.iter().filter(|command| command.access != Access::Refused) {
        let Some(name) = command.names.first() else { continue };
        let versions: Array<'static> = command.in_api_version_1.then(|| Value::from("1")).into_iter().collect();
        fields.start_document(name);
        fields.append("help", &Value::from(command.help)).append("requiresAuth", &Value::Bool(false));
        fields.append("secondaryOk", &Value::Bool(!matches!(command.access, Access::Write | Access::Catalog)));
        fields.append("adminOnly", &Value::Bool(command.admin_only)).append("apiVersions", &Value::Array(versions));
        fields.append("deprecatedApiVersions", &Value::Array(Array::empty())).end();
    }
    fields.end();
    Ok(())
}
