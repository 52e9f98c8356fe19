//! `hostInfo`.

use super::Command;
use crate::dispatch::Call;
use crate::identity;
use document::{Result, Value};

pub(crate) const COMMAND: Command = Command {
    names: &["hostInfo", "hostinfo"],
    help: "Tells about the machine that the server runs on.",
    structure: "hostInfo",
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let host = call.server.host();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let cores = Value::Int32(i32::try_from(cores).unwrap_or(i32::MAX));
    let memory = Value::Int64(memory_megabytes());
    let fields = call.reply.fields();
    fields.start_document("system");
    fields.append("currentTime", &Value::DateTime(identity::milliseconds()));
    fields.append("hostname", &Value::from(host)).append("cpuAddrSize", &Value::Int32(64));
    fields.append("memSizeMB", &memory).append("memLimitMB", &memory);
    fields.append("numCores", &cores).append("cpuArch", &Value::from(std::env::consts::ARCH));
    fields.append("numaEnabled", &Value::Bool(false)).end();
    fields.start_document("os");
    fields.append("type", &Value::from(system_name())).append("name", &Value::from(std::env::consts::OS));
    fields.append("version", &Value::from("")).end();
    fields.start_document("extra").end();
    Ok(())
}

fn system_name() -> &'static str {
    match std::env::consts::OS {
        "linux" => "Linux",
        "macos" => "Darwin",
        "windows" => "Windows",
        other => other,
    }
}

fn memory_megabytes() -> i64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes =
        text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next()?.parse().ok());
    kilobytes.map_or(0, |kilobytes: i64| kilobytes / 1024)
}
