//! `$project`, `$addFields` (also called `$set`) and `$unset`: the fields of each document, by the one projection.

use super::map::map;
use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, Transform};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Details;
use crate::project::Projection;
use crate::raw::Doc;
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const PROJECT: StageDef = StageDef {
    name: "$project",
    help: "Includes, leaves out or computes fields.",
    parse: parse_project,
    place: Place::Anywhere,
    refused: false,
};

pub(super) const ADD_FIELDS: StageDef = StageDef {
    name: "$addFields",
    help: "Adds computed fields to the documents.",
    parse: |spec, parser| parse_add_fields(ADD_FIELDS.name, spec, parser),
    place: Place::Anywhere,
    refused: false,
};

pub(super) const SET: StageDef = StageDef {
    name: "$set",
    help: "Adds computed fields to the documents; another name of $addFields.",
    parse: |spec, parser| parse_add_fields(SET.name, spec, parser),
    place: Place::Anywhere,
    refused: false,
};

pub(super) const UNSET: StageDef = StageDef {
    name: "$unset",
    help: "Removes fields from the documents.",
    parse: parse_unset,
    place: Place::Anywhere,
    refused: false,
};

fn parse_project(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(spec) = spec else {
        return Err(Error::new(Code::Location(15969), "$project specification must be an object"));
    };
    finish(PROJECT.name, Projection::parse_stage(spec, parser.names), parser)
}

fn parse_add_fields(name: &'static str, spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(spec) = spec else {
        let message = format!("{name} specification stage must be an object, got {}", spec.type_name());
        return Err(Error::new(Code::Location(40272), message));
    };
    finish(name, Projection::parse_add_fields(spec, parser.names), parser)
}

fn parse_unset(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let refuse = |code, message| Err(Error::new(Code::Location(code), message));
    let paths: Vec<Value<'_>> = match spec {
        Value::String(_) => vec![spec.borrow()],
        Value::Array(paths) if paths.is_empty() => {
            return refuse(31119, "$unset specification must be a string or an array with at least one field");
        }
        Value::Array(paths) => paths.iter().collect(),
        _ => return refuse(31002, "$unset specification must be a string or an array"),
    };
    let Some(paths) = paths.iter().map(Value::as_str).collect::<Option<Vec<_>>>() else {
        return refuse(31120, "$unset specification must be a string or an array containing only string values");
    };
    finish(UNSET.name, Projection::parse_unset(&paths, parser.names), parser)
}

fn finish(name: &'static str, parsed: Result<Projection>, parser: &Parser<'_>) -> Result<Parsed> {
    match parsed {
        Ok(projection) => Parsed::one(Project { name, projection }),
        Err(error) if parser.names.folding_failed() => Err(error),
        Err(error) => Err(error.context(&format!("Invalid {name} :: caused by :: "))),
    }
}

#[derive(Debug)]
struct Project {
    /// MongoDB runs `$unset` as a `$project`, but calls it by its own name.
    name: &'static str,
    projection: Projection,
}

impl Stage for Project {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(map(self, input, run))
    }

    fn role(&self) -> Role<'_> {
        Role::Transform(self)
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        self.projection.reads()
    }

    fn keeps(&self, path: &Path) -> bool {
        self.projection.keeps(path)
    }
}

impl Transform for Project {
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>> {
        self.projection.apply(doc, &Details::default(), env)
    }
}
