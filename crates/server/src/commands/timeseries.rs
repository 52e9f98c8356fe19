//! The `timeseries` option of `create` and `collMod`, checked in MongoDB's words.

use crate::identity;
use crate::params::{Param, Params, not_a_choice};
use document::op::Namespace;
use document::{Code, Doc, DocWriter, Error, Result, Text, Value};

const STRUCTURE: &str = "create.timeseries";

/// How far apart readings come, and how long a bucket is then: MongoDB 6.0 takes no other span.
const GRANULARITIES: &[(&str, i64)] = &[("seconds", 3_600), ("minutes", 86_400), ("hours", 2_592_000)];

/// What `create` takes beside it.
const BESIDE: &[&str] =
    &["collation", "comment", "expireAfterSeconds", "indexOptionDefaults", "storageEngine", "timeseries"];

/// The option as `listCollections` shows it, with what was left out.
pub(super) fn read(param: Param<'_>, ns: &Namespace) -> Result<Doc<'static>> {
    let option = param.document()?;
    let (mut time, mut meta, mut granularity, mut span) = (None, None, None, None);
    for param in Params::of(STRUCTURE, &option.borrow()) {
        match param.name() {
            "timeField" => time = Some(param.text()?.into_owned()),
            "metaField" => meta = Some(param.text()?.into_owned()),
            "granularity" => granularity = Some(param.text()?.into_owned()),
            "bucketMaxSpanSeconds" => span = Some(seconds(param)?),
            _ => return Err(param.unknown()),
        }
    }
    let Some(time) = time else {
        let message = format!("BSON field '{STRUCTURE}.timeField' is missing but a required field");
        return Err(Error::new(Code::Location(40414), message));
    };
    let granularity = granularity.unwrap_or_else(|| Text::from("seconds"));
    let Some((granularity, longest)) = GRANULARITIES.iter().find(|(name, _)| *name == granularity.as_str()) else {
        return Err(not_a_choice(STRUCTURE, "granularity", granularity.as_str()));
    };
    for (field, name) in [("timeField", Some(&time)), ("metaField", meta.as_ref())] {
        if name.is_some_and(|name| name.as_str().contains('.')) {
            return Err(invalid(format!("{ns}: '{field}' must be a top-level field and not contain a '.'")));
        }
    }
    if let Some(meta) = &meta {
        if meta.as_str() == "_id" {
            return Err(invalid("'metaField' cannot be \"_id\""));
        }
        if meta.as_str() == time.as_str() {
            return Err(invalid("'metaField' cannot be the same as 'timeField'"));
        }
    }
    if span.is_some_and(|span| span != *longest) {
        let message = format!(
            "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default of {longest} for the provided granularity"
        );
        return Err(Error::new(Code::Location(5_510_500), message));
    }
    let mut shown = DocWriter::new();
    shown.append("timeField", &Value::String(time));
    if let Some(meta) = meta {
        shown.append("metaField", &Value::String(meta));
    }
    shown.append("granularity", &Value::from(*granularity));
    shown.append("bucketMaxSpanSeconds", &Value::Int32(i32::try_from(*longest).unwrap_or(i32::MAX)));
    Ok(shown.finish())
}

/// What `collMod` takes of it.
pub(super) fn changed(param: Param<'_>) -> Result<Doc<'static>> {
    const STRUCTURE: &str = "collMod.timeseries";
    let option = param.document()?;
    let mut change = DocWriter::new();
    for param in Params::of(STRUCTURE, &option.borrow()) {
        if param.name() != "granularity" {
            return Err(param.unknown());
        }
        let granularity = param.text()?;
        if !GRANULARITIES.iter().any(|(name, _)| *name == granularity.as_str()) {
            return Err(not_a_choice(STRUCTURE, "granularity", granularity.as_str()));
        }
        change.append("granularity", &Value::String(granularity));
    }
    Ok(change.finish())
}

/// `expireAfterSeconds` beside it.
pub(super) fn expiry(param: Param<'_>) -> Result<i64> {
    let after = param.integer()?;
    if after < 0 {
        return Err(invalid("TTL index 'expireAfterSeconds' option cannot be less than 0"));
    }
    // So long ago there was no date that MongoDB's buckets could have.
    if after > identity::milliseconds() / 1_000 {
        let message = "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a lower number";
        return Err(invalid(message));
    }
    Ok(after)
}

/// What it does not go with.
pub(super) fn refuse_beside<'n>(ns: &Namespace, names: impl Iterator<Item = &'n str>) -> Result<()> {
    match names.into_iter().find(|name| !BESIDE.contains(name)) {
        Some(name) => Err(invalid(format!("{ns}: 'timeseries' is not allowed with '{name}'"))),
        None => Ok(()),
    }
}

/// Only `collStats` tells the figures of a time-series collection.
pub(crate) fn refuse_figures(ns: &Namespace, stats: &[Doc<'static>]) -> Result<()> {
    match stats.iter().any(|stats| stats.contains("timeseries")) {
        true => {
            let message = format!("Namespace {ns} is a timeseries collection");
            Err(Error::new(Code::CommandNotSupportedOnView, message))
        }
        false => Ok(()),
    }
}

fn seconds(param: Param<'_>) -> Result<i64> {
    let seconds = param.integer()?;
    match seconds < 1 {
        true => Err(Error::new(
            Code::Location(51024),
            format!("BSON field 'bucketMaxSpanSeconds' value must be >= 1, actual value '{seconds}'"),
        )),
        false => Ok(seconds),
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(Code::InvalidOptions, message.into())
}
