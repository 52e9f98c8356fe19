//! `collMod`.

use super::{Command, timeseries};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::not_a_choice;
use document::backend::Class;
use document::op::AdminOp;
use document::{Code, DocWriter, Error, Result, Value};

const STRUCTURE: &str = "collMod";

pub(crate) const COMMAND: Command = Command {
    names: &["collMod"],
    help: "Changes a collection's validator, an index's expiry or visibility, a view, or a time-series collection.",
    structure: STRUCTURE,
    class: Class::CollMod,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    let ns = namespace::of_command(call.db(), &call.request.target)?;
    let mut change = DocWriter::new();
    for param in call.request.params(STRUCTURE) {
        let name = param.name().to_owned();
        let value = match &*name {
            "index" | "validator" => Value::Document(param.document()?),
            "validationLevel" | "validationAction" => {
                let word = param.text()?;
                let known = match &*name {
                    "validationLevel" => matches!(word.as_str(), "off" | "strict" | "moderate"),
                    _ => matches!(word.as_str(), "error" | "warn"),
                };
                if !known {
                    return Err(not_a_choice(STRUCTURE, &name, word.as_str()));
                }
                Value::String(word)
            }
            "viewOn" => Value::String(param.text()?),
            "pipeline" => Value::Array(param.array()?),
            "changeStreamPreAndPostImages" => {
                if param.document()?.get("enabled").is_some_and(|enabled| enabled.is_truthy()) {
                    return Err(Error::not_implemented("a collection with change stream pre- and post-images"));
                }
                continue;
            }
            "timeseries" => Value::Document(timeseries::changed(param)?),
            "expireAfterSeconds" => match &param.value {
                Value::String(word) => off(word.as_str())?,
                value if value.is_number() => Value::Int64(timeseries::expiry(param)?),
                other => {
                    return Err(Error::type_mismatch(format!(
                        "BSON field 'collMod.expireAfterSeconds' is the wrong type '{}', expected types '[string, long']",
                        other.type_name()
                    )));
                }
            },
            "cappedSize" | "cappedMax" => {
                return Err(Error::not_implemented(format!("collMod with '{name}'")));
            }
            "dryRun" | "collectionUUID" => continue,
            _ => return Err(param.unknown()),
        };
        change.append(&name, &value);
    }
    let op = AdminOp::CollMod { ns, change: change.finish() };
    for answer in call.server.backend.admin(&mut call.session, &call.context, op).await? {
        call.reply.append_all(&answer);
    }
    Ok(())
}

/// The only word among numbers: nothing expires.
fn off(word: &str) -> Result<Value<'static>> {
    match word {
        "off" => Ok(Value::from("off")),
        other => Err(Error::new(
            Code::InvalidOptions,
            format!(
                "Invalid string value for the 'clusteredIndex::expireAfterSeconds' option. Got: '{other}'. Accepted value is 'off'"
            ),
        )),
    }
}
