//! `$unionWith`: the documents of another collection follow those of this one.

use super::foreign::Foreign;
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream, Within};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::{Array, Doc};
use crate::value::Value;
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$unionWith",
    help: "Adds the documents of another collection behind these.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let (mut collection, mut stages) = (None, Array::empty());
    match spec {
        Value::String(name) => collection = Some(name.as_str().to_owned()),
        Value::Document(options) => {
            for (name, value) in options.iter() {
                let wrong = |expected: &str| {
                    let kind = value.type_name();
                    let message = format!(
                        "BSON field '$unionWith.{name}' is the wrong type '{kind}', expected type '{expected}'"
                    );
                    Err(Error::type_mismatch(message))
                };
                match (name.as_str(), &value) {
                    ("coll", Value::String(name)) => collection = Some(name.as_str().to_owned()),
                    ("coll", _) => return wrong("string"),
                    ("pipeline", Value::Array(given)) => stages = given.clone().into_owned(),
                    ("pipeline", _) => return wrong("array"),
                    (other, _) => {
                        let message = format!("BSON field '$unionWith.{other}' is an unknown field.");
                        return Err(Error::new(Code::Location(40415), message));
                    }
                }
            }
        }
        other => {
            let message = "the $unionWith stage specification must be an object or string, but found";
            return Err(Error::failed_to_parse(format!("{message} {}", other.type_name())));
        }
    }
    if collection.as_deref() == Some("") {
        return Err(Error::new(Code::InvalidNamespace, "Namespace is not a valid collection name: it is empty"));
    }
    let pipeline = parser.nested(&stages, Within::UnionWith)?;
    Parsed::one(UnionWith(Foreign::new(STAGE.name, collection, pipeline)?))
}

#[derive(Debug)]
pub(super) struct UnionWith(pub(super) Foreign);

impl Stage for UnionWith {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Union { stage: self, rows: input, run: run.clone(), in_second: false }))
    }
}

struct Union {
    stage: Arc<UnionWith>,
    rows: Rows,
    run: Run,
    in_second: bool,
}

impl Stream for Union {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        if let Some(doc) = self.rows.next()? {
            return Ok(Some(doc));
        }
        if self.in_second {
            return Ok(None);
        }
        self.in_second = true;
        self.rows = self.stage.0.open(None, &self.run, &self.run.env)?;
        self.rows.next()
    }

    fn pause(&mut self) {
        self.rows.pause();
    }
}
