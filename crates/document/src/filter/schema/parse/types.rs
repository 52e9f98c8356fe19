//! `type` and `bsonType`.

use super::{mismatch, unparsable};
use crate::error::{Error, Result};
use crate::filter::TypeSet;
use crate::value::Value;

/// The types of JSON Schema itself; `integer` is refused, as numbers have their own types here.
pub(super) fn json_type(alias: &str) -> Result<TypeSet> {
    match alias {
        "integer" => unparsable("$jsonSchema type 'integer' is not currently supported.".to_owned()),
        "boolean" => Ok(TypeSet::of_alias("bool").unwrap_or_default()),
        "array" | "null" | "number" | "object" | "string" => Ok(TypeSet::of_alias(alias).unwrap_or_default()),
        other => Err(Error::bad_value(format!("Unknown type name alias: {other}"))),
    }
}

pub(super) fn types(keyword: &str, value: &Value<'_>, one: impl Fn(&str) -> Result<TypeSet>) -> Result<TypeSet> {
    let items = match value {
        Value::String(alias) => return one(alias.as_str()),
        Value::Array(items) => items,
        _ => {
            return mismatch(format!("$jsonSchema keyword '{keyword}' must be either a string or an array of strings"));
        }
    };
    let mut seen: Vec<String> = Vec::new();
    let mut set = TypeSet::default();
    for item in items.iter() {
        let Value::String(alias) = &item else {
            return mismatch(format!("$jsonSchema keyword '{keyword}' array elements must be strings"));
        };
        let alias = alias.as_str();
        set = set.and(one(alias)?);
        if seen.iter().any(|earlier| earlier == alias) {
            return unparsable(format!("$jsonSchema keyword '{keyword}' has duplicate value: {alias}"));
        }
        seen.push(alias.to_owned());
    }
    if seen.is_empty() {
        return unparsable(format!("$jsonSchema keyword '{keyword}' must name at least one type"));
    }
    Ok(set)
}
