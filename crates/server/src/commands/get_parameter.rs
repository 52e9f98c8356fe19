//! `getParameter`.

use super::Command;
use crate::dispatch::Call;
use crate::reply::NO_CODE;
use crate::state::Server;
use document::{Array, DocWriter, Error, Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["getParameter"],
    help: "Tells how the server is set up.",
    structure: "getParameter",
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let parameters = parameters(call.server);
    let all = match &call.request.target {
        Value::String(star) => star.as_str() == "*",
        Value::Document(options) => options.get("allParameters").is_some_and(|all| all.is_truthy()),
        _ => false,
    };
    let asked: Vec<String> = call.request.params("").map(|param| param.name().to_owned()).collect();
    let mut found = false;
    for (name, value) in &parameters {
        if all || asked.iter().any(|asked| asked == name) {
            found = true;
            call.reply.fields().append(name, value);
        }
    }
    if found { Ok(()) } else { Err(Error::new(NO_CODE, "no option found to get")) }
}

fn parameters(server: &Server) -> Vec<(&'static str, Value<'static>)> {
    let options = &server.options;
    let seconds = |duration: std::time::Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    let release: Vec<&str> = options.version.split('.').take(2).collect();
    let mut compatibility = DocWriter::new();
    compatibility.append("version", &Value::from(release.join(".")));
    vec![
        ("authenticationMechanisms", Value::Array(Array::empty())),
        ("cursorTimeoutMillis", Value::Int64(seconds(options.cursor_timeout) * 1000)),
        ("enableTestCommands", Value::Bool(false)),
        ("featureCompatibilityVersion", Value::Document(compatibility.finish())),
        ("localLogicalSessionTimeoutMinutes", Value::Int64(seconds(options.session_timeout) / 60)),
        ("logLevel", Value::Int32(0)),
        ("maxBSONDepth", Value::Int32(i32::try_from(document::raw::MAX_DEPTH).unwrap_or(i32::MAX))),
        ("notablescan", Value::Bool(false)),
        ("quiet", Value::Bool(false)),
        ("transactionLifetimeLimitSeconds", Value::Int64(seconds(options.transaction_lifetime))),
        ("ttlMonitorEnabled", Value::Bool(true)),
    ]
}
