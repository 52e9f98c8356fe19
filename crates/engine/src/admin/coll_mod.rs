//! `collMod`: the validator, an index's expiry or visibility, a view's definition.

use super::create::check_enumeration;
use super::{alone, apply, create_view, not_found};
use crate::catalog::{Collection, Content, Index, Validation};
use crate::engine::Engine;
use crate::transaction::commit::Change;
use document::op::{Context, Namespace};
use document::value::order;
use document::{Code, Doc, DocWriter, Error, Result, Value};
use std::sync::Arc;

pub(super) async fn run(
    engine: &Engine,
    context: &Context,
    ns: &Namespace,
    change: &Doc<'static>,
) -> Result<Vec<Doc<'static>>> {
    let _one_at_a_time = engine.inner.defining.lock().await;
    let Some(collection) = engine.catalog().get(ns).cloned() else { return Err(not_found("ns does not exist")) };
    let mut reply = DocWriter::new();
    let next = if collection.view().is_some() {
        change_view(engine, &collection, change)?
    } else {
        change_collection(&collection, change, &mut reply)?
    };
    let _gate = alone(&collection, context).await?;
    apply(engine, context, vec![Change::Put(Arc::new(next))]).await?;
    Ok(vec![reply.finish()])
}

fn unknown(path: &str) -> Error {
    Error::new(Code::Location(40415), format!("BSON field '{path}' is an unknown field."))
}

/// In MongoDB's words, which name the parameter that its own routers send along.
fn only_on_timeseries() -> Error {
    let message = "option only supported on a time-series collection: isTimeseriesNamespace";
    Error::new(Code::InvalidOptions, message)
}

fn change_view(engine: &Engine, collection: &Collection, change: &Doc<'static>) -> Result<Collection> {
    let Some(view) = collection.view() else { return Ok(collection.clone()) };
    let (mut on, mut source) = (view.on.collection.to_string(), view.source.clone());
    for (name, value) in change.iter() {
        match (name.as_str(), value) {
            ("viewOn", Value::String(name)) => on = name.as_str().to_owned(),
            ("pipeline", Value::Array(stages)) => source = stages,
            ("timeseries", _) => return Err(only_on_timeseries()),
            ("validator" | "validationLevel" | "validationAction" | "index" | "expireAfterSeconds", _) => {
                let message = format!("option not supported on a view: {name}");
                return Err(Error::new(Code::InvalidOptions, message));
            }
            _ => return Err(unknown(&format!("collMod.{name}"))),
        }
    }
    let view = create_view::compile(&engine.catalog(), &collection.ns, &on, source)?;
    let options = create_view::options(&view);
    Ok(Collection { options, content: Content::View(Arc::new(view)), ..collection.clone() })
}

fn change_collection(collection: &Collection, change: &Doc<'static>, reply: &mut DocWriter) -> Result<Collection> {
    let mut next = collection.clone();
    let mut validator = collection.options.get("validator");
    let text = |name: &str| collection.options.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let (mut level, mut action) = (text("validationLevel"), text("validationAction"));
    let mut validated = false;
    for (name, value) in change.iter() {
        match (name.as_str(), &value) {
            ("validator", Value::Document(filter)) => {
                validator = (!filter.is_empty()).then(|| value.clone());
                validated = true;
            }
            ("validator", other) => {
                return Err(Error::type_mismatch(format!(
                    "BSON field 'collMod.validator' is the wrong type '{}', expected type 'object'",
                    other.type_name()
                )));
            }
            ("validationLevel", Value::String(given)) => {
                check_enumeration("collMod", "validationLevel", Some(given.as_str()), &["off", "strict", "moderate"])?;
                level = Some(given.as_str().to_owned());
                validated = true;
            }
            ("validationAction", Value::String(given)) => {
                check_enumeration("collMod", "validationAction", Some(given.as_str()), &["error", "warn"])?;
                action = Some(given.as_str().to_owned());
                validated = true;
            }
            ("index", Value::Document(spec)) => change_index(&mut next, spec, reply)?,
            ("pipeline" | "viewOn", _) => {
                return Err(Error::new(Code::InvalidOptions, "option only supported on a view: pipeline"));
            }
            ("timeseries", _) => return Err(only_on_timeseries()),
            ("expireAfterSeconds", _) => {
                let message = "'expireAfterSeconds' option is only supported on collections clustered by _id";
                return Err(Error::new(Code::InvalidOptions, message));
            }
            ("changeStreamPreAndPostImages", _) => {
                return Err(Error::not_implemented("changeStreamPreAndPostImages"));
            }
            _ => return Err(unknown(&format!("collMod.{name}"))),
        }
    }
    if validated {
        let mut options = DocWriter::new();
        options.append("validator", &validator.unwrap_or(Value::Missing));
        options.append("validationLevel", &Value::from(level.as_deref().unwrap_or("strict")));
        options.append("validationAction", &Value::from(action.as_deref().unwrap_or("error")));
        for (name, value) in collection.options.iter() {
            if !matches!(name.as_str(), "validator" | "validationLevel" | "validationAction") {
                options.append(name.as_str(), &value);
            }
        }
        next.options = options.finish();
        next.validation = Validation::from_options(&next.options)?;
    }
    Ok(next)
}

fn change_index(collection: &mut Collection, change: &Doc<'_>, reply: &mut DocWriter) -> Result<()> {
    let invalid = |message: &str| Error::new(Code::InvalidOptions, message);
    let (mut name, mut pattern, mut seconds, mut hidden) = (None, None, None, None);
    for (field, value) in change.iter() {
        match (field.as_str(), value) {
            ("name", Value::String(text)) => name = Some(text.as_str().to_owned()),
            ("keyPattern", Value::Document(key)) => pattern = Some(key),
            ("expireAfterSeconds", value) if value.is_number() => seconds = Some(value),
            ("hidden", value) => hidden = Some(value.is_truthy()),
            ("unique" | "prepareUnique", _) => return Err(Error::not_implemented(format!("collMod index {field}"))),
            _ => return Err(unknown(&format!("collMod.index.{field}"))),
        }
    }
    let position = match (&name, &pattern) {
        (Some(_), Some(_)) => return Err(invalid("Cannot specify both key pattern and name.")),
        (None, None) => return Err(invalid("Must specify either index name or key pattern.")),
        (Some(name), None) => collection.indexes.iter().position(|index| *index.name == **name),
        (None, Some(key)) => {
            collection.indexes.iter().position(|index| order::compare_documents(&index.key_pattern(), key).is_eq())
        }
    };
    if seconds.is_none() && hidden.is_none() {
        return Err(invalid("no expireAfterSeconds, hidden, unique, or prepareUnique field"));
    }
    let asked = name
        .unwrap_or_else(|| pattern.map(|key| document::value::show::document(&key).to_string()).unwrap_or_default());
    let Some(place) = position.and_then(|position| collection.indexes.get_mut(position)) else {
        let message = format!("cannot find index {asked} for ns {}", collection.ns);
        return Err(Error::new(Code::IndexNotFound, message));
    };
    let index = place.clone();
    if hidden.is_some() && index.id == crate::store::keys::DOCUMENTS {
        return Err(Error::bad_value("can't hide _id index"));
    }
    let mut spec = index.spec.clone();
    if let Some(seconds) = seconds {
        let seconds = Value::Int64(crate::catalog::whole(&seconds).unwrap_or_default());
        if let Some(old) = index.spec.get("expireAfterSeconds").as_ref().and_then(crate::catalog::whole) {
            reply.append("expireAfterSeconds_old", &Value::Int64(old));
        }
        reply.append("expireAfterSeconds_new", &seconds);
        let stored = i32::try_from(crate::catalog::whole(&seconds).unwrap_or_default()).map_or(seconds, Value::Int32);
        spec = with(&spec, "expireAfterSeconds", &stored);
    }
    if let Some(hidden) = hidden
        && hidden != index.hidden
    {
        reply.append("hidden_old", &Value::Bool(index.hidden));
        reply.append("hidden_new", &Value::Bool(hidden));
        spec = with(&spec, "hidden", &if hidden { Value::Bool(true) } else { Value::Missing });
    }
    *place = Arc::new(Index::with_spec(&index, spec, index.ready)?);
    Ok(())
}

/// The specification with one option changed in place, added at the end (before what only text indexes have), or (missing)
/// taken away.
fn with(spec: &Doc<'_>, option: &str, value: &Value<'_>) -> Doc<'static> {
    let mut writer = DocWriter::new();
    let mut there = false;
    for (name, old) in spec.iter() {
        if name.as_str() == "weights" && !there && !spec.contains(option) {
            there = true;
            writer.append(option, value);
        }
        if name.as_str() == option {
            there = true;
            writer.append(option, value);
        } else {
            writer.append(name.as_str(), &old);
        }
    }
    if !there {
        writer.append(option, value);
    }
    writer.finish()
}
