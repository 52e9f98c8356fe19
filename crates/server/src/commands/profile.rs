//! `profile`.

use super::{Command, InTransaction};
use crate::dispatch::Call;
use crate::params::{Param, required};
use crate::profiler::Settings;
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::value::Number;
use document::{Error, Result, Text, Value};
use std::sync::Arc;

const STRUCTURE: &str = "profile";

/// What MongoDB says where there is a filter.
const NOTE: &str =
    "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";

pub(crate) const COMMAND: Command = Command {
    names: &["profile"],
    help: "Sets which operations of a database are kept in its system.profile, and from when on they are slow.",
    structure: STRUCTURE,
    in_transaction: InTransaction::Refused(""),
    run: |call| Box::pin(std::future::ready(run(call))),
    ..Command::SERVER
};

fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let request = call.request;
    let level = Some(request.target.clone()).filter(|level| !matches!(level, Value::Null | Value::Undefined));
    let level = required(level, STRUCTURE, STRUCTURE)?;
    let level = Param::new(STRUCTURE, Text::borrowed(STRUCTURE), level).integer()?;
    let profiler = &call.server.profiler;
    let Settings { setting: was, mut slow, mut sample_rate } = profiler.settings(call.db());
    let (slow_was, sample_rate_was) = (slow, sample_rate);
    let mut setting = was.clone();
    let mut has_filter = was.filter.is_some();
    for param in request.params(STRUCTURE) {
        match param.name() {
            "slowms" => slow = param.integer()?,
            "sampleRate" => sample_rate = rate(&param)?,
            "filter" => {
                setting.filter = filter(&param.value)?;
                has_filter = true;
            }
            // As MongoDB, which looks at no others.
            _ => {}
        }
    }
    if let Ok(level @ 0..=2) = i32::try_from(level) {
        setting.level = level;
    }
    profiler.set_thresholds(slow, sample_rate);
    if setting.level != was.level || has_filter {
        profiler.set(call.request.db.as_str(), setting);
    }
    let reply = &mut call.reply;
    reply.append("was", was.level).append("slowms", i32::try_from(slow_was).unwrap_or(i32::MAX));
    reply.append("sampleRate", sample_rate_was);
    if let Some(filter) = &was.filter {
        reply.append("filter", Value::Document(filter.source.clone()));
    }
    if has_filter {
        reply.append_text("note", NOTE);
    }
    Ok(())
}

fn rate(param: &Param<'_>) -> Result<f64> {
    // In MongoDB's words where it is no number.
    param.integer()?;
    let rate = param.value.as_number().map_or(-1.0, Number::to_f64);
    match (0.0..=1.0).contains(&rate) {
        true => Ok(rate),
        false => Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive")),
    }
}

fn filter(value: &Value<'_>) -> Result<Option<Arc<Filter>>> {
    match value {
        Value::Document(filter) => Ok(Some(Arc::new(Filter::parse(filter, &mut Names::new())?))),
        Value::String(text) if text.as_str() == "unset" => Ok(None),
        _ => Err(Error::bad_value("Expected an object, or the string 'unset'.")),
    }
}
