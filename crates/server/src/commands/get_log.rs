//! `getLog`.

use super::Command;
use crate::dispatch::Call;
use crate::params::Param;
use document::{Array, Code, Error, Result, Text, Value};

const STRUCTURE: &str = "getLog";

pub(crate) const COMMAND: Command = Command {
    names: &["getLog"],
    help: "Returns the warnings of the start; other log lines are on standard error.",
    structure: STRUCTURE,
    admin_only: true,
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let which = Param::new(STRUCTURE, Text::borrowed(STRUCTURE), call.request.target.clone()).text()?;
    let lines: &[String] = match which.as_str() {
        "*" => {
            let names: Array<'static> = ["global", "startupWarnings"].into_iter().map(Value::from).collect();
            call.reply.append("names", names);
            return Ok(());
        }
        "global" => &[],
        "startupWarnings" => &call.server.options.warnings,
        other => return Err(Error::new(Code::OperationFailed, format!("No log named '{other}'"))),
    };
    let count = i32::try_from(lines.len()).unwrap_or(i32::MAX);
    let lines: Array<'static> = lines.iter().map(|line| Value::from(log_line(line))).collect();
    call.reply.append("totalLinesWritten", count).append("log", lines);
    Ok(())
}

/// A line in the form that shells take apart: JSON with the message in `msg`.
fn log_line(message: &str) -> String {
    let mut text = String::new();
    for letter in message.chars() {
        match letter {
            '"' | '\\' => text.extend(['\\', letter]),
            control if control.is_control() => text.push(' '),
            other => text.push(other),
        }
    }
    format!(
        "{{\"t\":{{\"$date\":\"1970-01-01T00:00:00.000+00:00\"}},\"s\":\"W\",\"c\":\"CONTROL\",\"id\":0,\"ctx\":\"main\",\"msg\":\"{text}\",\"tags\":[\"startupWarnings\"]}}\n"
    )
}
