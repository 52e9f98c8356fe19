//! `$jsonSchema`: draft 4 as MongoDB takes it, with `bsonType`. A schema is parsed to [`Rule`]s in MongoDB's order, which
//! is also the order in which a failure is explained.

mod equality;
mod explain;
mod parse;
mod rule;

#[cfg(test)]
mod tests;

pub(super) use explain::explain;
pub(super) use parse::parse;
use rule::Rule;

use super::{FilterDef, FilterPlace, Node, WholeTest};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::value::Value;
use std::sync::Arc;

pub(super) const JSON_SCHEMA: FilterDef = FilterDef {
    name: "$jsonSchema",
    help: "Matches documents that satisfy a JSON Schema.",
    parse: FilterPlace::Document(|argument, _| match argument {
        Value::Document(source) => {
            let source = source.clone().into_owned();
            Ok(Node::Whole(Arc::new(JsonSchema { schema: parse(&source)?, source })))
        }
        _ => Err(Error::type_mismatch("$jsonSchema must be an object")),
    }),
};

/// A compiled schema.
#[derive(Debug, Default)]
pub(super) struct Schema {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) rules: Vec<Rule>,
}

impl Schema {
    pub(super) fn accepts(&self, value: &Value<'_>) -> Result<bool> {
        for rule in &self.rules {
            if !rule.check.accepts(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[derive(Debug)]
struct JsonSchema {
    schema: Schema,
    source: Doc<'static>,
}

impl WholeTest for JsonSchema {
    fn matches(&self, doc: &Doc<'_>, _: &Env) -> Result<bool> {
        self.schema.accepts(&Value::Document(doc.borrow()))
    }

    fn write(&self, query: &mut DocWriter) {
        query.append("$jsonSchema", &Value::Document(self.source.borrow()));
    }
}
