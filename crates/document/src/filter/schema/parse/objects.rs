//! The keywords for objects: `properties`, `patternProperties`, `additionalProperties`, `required`, `minProperties`,
//! `maxProperties`, `dependencies`.

use super::{Of, Parse, mismatch, schema, unparsable};
use crate::error::{Error, Result};
use crate::filter::Regex;
use crate::filter::schema::Schema;
use crate::filter::schema::rule::{Additional, Check, Dependency};
use crate::raw::Array;
use crate::value::{Path, Value};

impl Parse<'_> {
    pub(super) fn objects(&mut self) -> Result<()> {
        let concerned = self.concerns("object");
        let mut named = Vec::new();
        if let Some(value) = self.get("properties") {
            let Value::Document(properties) = value else {
                return mismatch("$jsonSchema keyword 'properties' must be an object".to_owned());
            };
            let mut parsed = Vec::new();
            for (name, value) in properties.iter() {
                let Value::Document(inner) = value else {
                    return mismatch(format!("Nested schema for $jsonSchema property '{name}' must be an object"));
                };
                parsed.push((Path::new(name.as_str()), schema(&inner, Of::Anything)?));
                named.push(name.as_str().to_owned());
            }
            if concerned {
                self.add("properties", Check::Properties(parsed));
            }
        }
        let patterns = self.pattern_properties()?;
        if let Some(value) = self.get("additionalProperties") {
            let allowed = match value {
                Value::Bool(true) => None,
                Value::Bool(false) => Some(Additional::Forbidden),
                Value::Document(inner) => Some(Additional::Schema(schema(&inner, Of::Anything)?)),
                _ => {
                    return mismatch(
                        "$jsonSchema keyword 'additionalProperties' must be an object or a boolean".to_owned(),
                    );
                }
            };
            if let Some(allowed) = allowed.filter(|_| concerned) {
                let patterns = self.pattern_properties()?.into_iter().map(|(regex, _)| regex).collect();
                self.add("additionalProperties", Check::AdditionalProperties { named, patterns, allowed });
            }
        }
        if !patterns.is_empty() && concerned {
            self.add("patternProperties", Check::PatternProperties(patterns));
        }
        if let Some(value) = self.get("required") {
            let required = required(&value)?;
            if concerned {
                self.add("required", Check::Required(required));
            }
        }
        if let Some(limit) = self.count("minProperties")?.filter(|_| concerned) {
            self.add("minProperties", Check::MinProperties(limit));
        }
        if let Some(limit) = self.count("maxProperties")?.filter(|_| concerned) {
            self.add("maxProperties", Check::MaxProperties(limit));
        }
        self.dependencies()
    }

    fn pattern_properties(&self) -> Result<Vec<(Regex, Schema)>> {
        let properties = match self.get("patternProperties") {
            None => return Ok(Vec::new()),
            Some(Value::Document(properties)) => properties,
            Some(_) => return mismatch("$jsonSchema keyword 'patternProperties' must be an object".to_owned()),
        };
        let mut parsed = Vec::new();
        for (pattern, value) in properties.iter() {
            let Value::Document(inner) = value else {
                return mismatch(format!(
                    "$jsonSchema keyword 'patternProperties' has property '{pattern}' which is not an object"
                ));
            };
            let regex = Regex::compile(pattern.as_str(), "").map_err(|error| {
                let reason = error.message().rsplit("invalid: ").next().unwrap_or_default();
                Error::bad_value(format!("Invalid regular expression: {reason}"))
            })?;
            parsed.push((regex, schema(&inner, Of::Anything)?));
        }
        Ok(parsed)
    }

    fn dependencies(&mut self) -> Result<()> {
        let Some(value) = self.get("dependencies") else { return Ok(()) };
        let Value::Document(dependencies) = value else {
            return mismatch("$jsonSchema keyword 'dependencies' must be an object".to_owned());
        };
        let mut parsed = Vec::new();
        for (name, value) in dependencies.iter() {
            let dependency = match value {
                Value::Document(inner) => Dependency::Schema(schema(&inner, self.of)?),
                Value::Array(names) => Dependency::Properties(property_dependency(name.as_str(), &names)?),
                _ => {
                    return mismatch(format!(
                        "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object or an array"
                    ));
                }
            };
            parsed.push((Path::new(name.as_str()), dependency));
        }
        self.add("dependencies", Check::Dependencies(parsed));
        Ok(())
    }
}

fn required(value: &Value<'_>) -> Result<Vec<Path>> {
    let Value::Array(items) = value else {
        return mismatch(format!(
            "$jsonSchema keyword 'required' must be an array, but found an element of type {}",
            value.type_name()
        ));
    };
    let mut names: Vec<String> = Vec::new();
    for item in items.iter() {
        let Value::String(name) = &item else {
            return mismatch(format!(
                "$jsonSchema keyword 'required' must be an array of strings, but found an element of type: {}",
                item.type_name()
            ));
        };
        names.push(name.as_str().to_owned());
    }
    if names.is_empty() {
        return unparsable("$jsonSchema keyword 'required' cannot be an empty array".to_owned());
    }
    names.sort_unstable();
    if names.windows(2).any(|pair| pair.first() == pair.last()) {
        return unparsable("$jsonSchema keyword 'required' array cannot contain duplicate values".to_owned());
    }
    Ok(names.iter().map(|name| Path::new(name)).collect())
}

fn property_dependency(name: &str, items: &Array<'_>) -> Result<Vec<Path>> {
    let mut names: Vec<String> = Vec::new();
    for item in items.iter() {
        let Value::String(text) = &item else {
            return mismatch(format!(
                "array '{name}' in $jsonSchema keyword 'dependencies' can only contain strings, but found element of type: {}",
                item.type_name()
            ));
        };
        let text = text.as_str();
        if names.iter().any(|earlier| earlier == text) {
            return unparsable(format!(
                "array '{name}' in $jsonSchema keyword 'dependencies' contains duplicate element: {text}"
            ));
        }
        names.push(text.to_owned());
    }
    if names.is_empty() {
        return unparsable(format!("property '{name}' in $jsonSchema keyword 'dependencies' cannot be an empty array"));
    }
    Ok(names.iter().map(|name| Path::new(name)).collect())
}
