//! `buildInfo`.

use super::Command;
use crate::dispatch::Call;
use document::{Array, Result, Value};
use wire::limits::MAX_DOCUMENT;

pub(crate) const COMMAND: Command = Command {
    names: &["buildInfo", "buildinfo"],
    help: "Tells the version that the server reports, and its own.",
    structure: "buildInfo",
    by_query: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

/// Clients show it; there is no such commit of MongoDB.
pub(crate) const GIT_VERSION: &str = concat!("pleach-", env!("CARGO_PKG_VERSION"));

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let version = call.server.options.version.clone();
    let numbers = version.split('.').map(|part| part.parse::<i32>().unwrap_or_default());
    let numbers: Array<'static> = numbers.chain(std::iter::repeat(0)).take(4).map(Value::Int32).collect();
    let reply = &mut call.reply;
    reply.append_text("version", &version).append_text("gitVersion", GIT_VERSION);
    reply.append("modules", Array::empty()).append_text("allocator", "mimalloc");
    reply.append_text("javascriptEngine", "none").append_text("sysInfo", "deprecated");
    reply.append("versionArray", numbers);
    let fields = reply.fields();
    fields.start_document("openssl").append("running", &Value::from("disabled")).end();
    fields.start_document("buildEnvironment");
    fields.append("distmod", &Value::from("")).append("distarch", &Value::from(std::env::consts::ARCH));
    fields.append("target_arch", &Value::from(std::env::consts::ARCH));
    fields.append("target_os", &Value::from(std::env::consts::OS)).end();
    fields.start_document("pleach").append("version", &Value::from(env!("CARGO_PKG_VERSION"))).end();
    reply.append("bits", 64).append("debug", cfg!(debug_assertions));
    reply.append("maxBsonObjectSize", i32::try_from(MAX_DOCUMENT).unwrap_or(i32::MAX));
    Ok(())
}
