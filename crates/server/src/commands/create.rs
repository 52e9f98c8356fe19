//! `create`.

use super::{Command, InTransaction, timeseries};
use crate::dispatch::Call;
use crate::namespace;
use crate::params::not_a_choice;
use crate::profiler::COLLECTION;
use document::backend::Class;
use document::op::{AdminOp, CollectionOptions};
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Code, DocWriter, Error, Result, Value};

const STRUCTURE: &str = "create";

pub(crate) const COMMAND: Command = Command {
    names: &["create"],
    help: "Makes a collection or a view.",
    structure: STRUCTURE,
    class: Class::Create,
    in_transaction: InTransaction::Allowed,
    run: |call| Box::pin(run(call)),
    ..Command::CATALOG
};

async fn run(call: &mut Call<'_>) -> Result<()> {
    call.server.counters.commands.add(1);
    if call.request.target.as_str() == Some(COLLECTION) && call.server.profiler.uuid(call.db()).is_some() {
        let message = format!("Collection {}.{COLLECTION} already exists.", call.db());
        return Err(Error::new(Code::NamespaceExists, message));
    }
    let op = parse(call)?;
    call.server.backend.admin(&mut call.session, &call.context, op).await?;
    Ok(())
}

fn invalid(message: &str) -> Error {
    Error::new(Code::InvalidOptions, message)
}

fn parse(call: &Call<'_>) -> Result<AdminOp> {
    let request = call.request;
    let ns = namespace::to_write(request.db.as_str(), &request.target)?;
    let mut options = CollectionOptions::default();
    let mut other = DocWriter::new();
    let (mut capped, mut size, mut max) = (false, None, None);
    let (mut view_on, mut pipeline) = (None, None);
    let (mut series, mut expires, mut given) = (None, None, Vec::new());
    for param in request.params(STRUCTURE) {
        given.push(param.name().to_owned());
        match param.name() {
            "capped" => capped = param.loose_bool()?,
            "size" => size = Some(param.positive()?),
            "max" => max = Some(param.integer()?),
            "validator" => options.validator = Some(param.document()?.into_owned()),
            "validationLevel" => {
                let level = param.text()?.to_string();
                if !matches!(&*level, "off" | "strict" | "moderate") {
                    return Err(not_a_choice(STRUCTURE, "validationLevel", &level));
                }
                options.validation_level = Some(level);
            }
            "validationAction" => {
                let action = param.text()?.to_string();
                if !matches!(&*action, "error" | "warn") {
                    return Err(not_a_choice(STRUCTURE, "validationAction", &action));
                }
                options.validation_action = Some(action);
            }
            "viewOn" => view_on = Some(param.text()?.to_string()),
            "pipeline" => pipeline = Some(param.array()?),
            "collation" => param.simple_collation()?,
            "storageEngine" | "indexOptionDefaults" => {
                let name = param.name().to_owned();
                let doc = param.document()?;
                if !doc.is_empty() {
                    other.append(&name, &Value::Document(doc));
                }
            }
            // Documents are clustered by `_id` anyway.
            "clusteredIndex" => {
                other.append("clusteredIndex", &param.value);
            }
            "changeStreamPreAndPostImages" => {
                let enabled = param.document()?.get("enabled").is_some_and(|enabled| enabled.is_truthy());
                if enabled {
                    return Err(Error::not_implemented("a collection with change stream pre- and post-images"));
                }
            }
            "timeseries" => series = Some(timeseries::read(param, &ns)?),
            "encryptedFields" => return Err(Error::not_implemented("a collection with encrypted fields")),
            "expireAfterSeconds" => expires = Some(timeseries::expiry(param)?),
            "autoIndexId" if !param.loose_bool()? => {
                return Err(Error::new(
                    Code::Location(50001),
                    format!("autoIndexId:false is not allowed for collection {ns} because it can be replicated"),
                ));
            }
            "temp" => return Err(invalid("the 'temp' field is an invalid option")),
            "autoIndexId" | "idIndex" | "flags" => {}
            _ => return Err(param.unknown()),
        }
    }
    if expires.is_some() && series.is_none() {
        return Err(invalid(
            "'expireAfterSeconds' is only supported on time-series collections or when the 'clusteredIndex' option is specified",
        ));
    }
    if let Some(on) = view_on.filter(|_| series.is_none()) {
        if on.is_empty() {
            return Err(Error::bad_value("'viewOn' cannot be empty"));
        }
        if capped || options.validator.is_some_and(|validator| !validator.is_empty()) {
            return Err(invalid("option not supported on a view"));
        }
        let pipeline = match pipeline {
            Some(stages) => stages,
            None => Array::empty(),
        };
        // Checked here, so that a view that cannot be read is not made.
        let compiled = Pipeline::parse(&pipeline, &mut Names::new())?;
        if let Some(sink) = compiled.sink {
            return Err(Error::new(
                Code::OptionNotSupportedOnView,
                format!(
                    "The aggregation stage {} in location 0 of the pipeline cannot be used in the view definition",
                    sink.stage_name()
                ),
            ));
        }
        return Ok(AdminOp::CreateView { ns, on, pipeline: pipeline.into_owned() });
    }
    if pipeline.is_some() && !given.iter().any(|name| name == "viewOn") {
        return Err(invalid("'pipeline' requires 'viewOn' to also be specified"));
    }
    match (capped, size) {
        (true, None) => return Err(invalid("the 'size' field is required when 'capped' is true")),
        (true, Some(size)) => options.capped = Some((size, max)),
        (false, None) if max.is_none() => {}
        (false, _) => {
            return Err(invalid(
                "the 'capped' field needs to be true when either the 'size' or 'max' fields are present",
            ));
        }
    }
    if let Some(series) = series {
        timeseries::refuse_beside(&ns, given.iter().map(String::as_str))?;
        let mut shown = DocWriter::new();
        if let Some(expires) = expires {
            shown.append("expireAfterSeconds", &Value::Int64(expires));
        }
        other.finish().iter().for_each(|(name, value)| {
            shown.append(name.as_str(), &value);
        });
        shown.append("timeseries", &Value::Document(series));
        options.other = Some(shown.finish());
    } else if !other.is_empty() {
        options.other = Some(other.finish());
    }
    Ok(AdminOp::Create { ns, options })
}
