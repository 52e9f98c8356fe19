//! `$count`: one document with the number of documents, none if there are none.

use super::rows::drain;
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$count",
    help: "Counts the documents into one field of one document.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, _parser: &mut Parser<'_>) -> Result<Parsed> {
    let refuse = |code, message| Err(Error::new(Code::Location(code), message));
    match spec.as_str() {
        None => refuse(40156, "the count field must be a non-empty string"),
        Some("") => refuse(40157, "the count field must be a non-empty string"),
        Some(field) if field.starts_with('$') => refuse(40158, "the count field cannot be a $-prefixed path"),
        Some(field) if field.contains('\0') => refuse(40159, "the count field cannot contain a null byte"),
        Some(field) if field.contains('.') => refuse(40160, "the count field cannot contain '.'"),
        Some("_id") => refuse(15948, "a group's _id may only be specified once"),
        Some(field) => Parsed::one(Count(field.to_owned())),
    }
}

#[derive(Debug)]
struct Count(String);

impl Stage for Count {
    /// MongoDB makes a `$group` and a `$project` of it, and its errors say so.
    fn name(&self) -> &'static str {
        "$group"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Counting { stage: self, input: Some(input), env: run.env.clone() }))
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        Some(Vec::new())
    }
}

struct Counting {
    stage: Arc<Count>,
    input: Option<Rows>,
    env: Env,
}

impl Stream for Counting {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(mut input) = self.input.take() else { return Ok(None) };
        let mut count = 0_i64;
        drain(&mut *input, &self.env, |_| {
            count += 1;
            Ok(())
        })?;
        if count == 0 {
            return Ok(None);
        }
        let number = i32::try_from(count).map_or(Value::Int64(count), Value::Int32);
        let mut writer = DocWriter::new();
        writer.append(&self.stage.0, &number);
        Ok(Some(writer.finish()))
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}
