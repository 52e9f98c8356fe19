//! `$match`: lets those documents through that a filter matches.
//!
//! The conditions joined by "and" at its top are kept apart as well, so that the optimiser can move each as far ahead as
//! it may go.

use super::{Parsed, Parser, Place, Role, Rows, Run, Stage, StageDef, Stream};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::raw::{Doc, DocWriter};
use crate::text::carried;
use crate::value::{Path, Value};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$match",
    help: "Lets only the documents through that match a query.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(source) = spec else {
        return Err(Error::new(Code::Location(15959), "the match filter must be an expression in an object"));
    };
    let before = parser.names.take_reads_score();
    let filter = Filter::parse(source, parser.names).map_err(|error| not_here(source).unwrap_or(error))?;
    if parser.names.take_reads_score() {
        return Err(carried::unavailable());
    }
    if before {
        parser.names.note_score();
    }
    let mut conditions = Vec::new();
    split(source, parser, &mut conditions)?;
    Parsed::one(Match { filter, conditions })
}

/// What a query may say and a `$match` may not.
fn not_here(source: &Doc<'_>) -> Option<Error> {
    source.iter().find_map(|(name, value)| match (name.as_str(), &value) {
        ("$near" | "$nearSphere" | "$geoNear", _) => Some(Error::new(
            Code::Location(5_626_500),
            "$geoNear, $near, and $nearSphere are not allowed in this context",
        )),
        (_, Value::Document(inner)) => not_here(inner),
        _ => None,
    })
}

/// One filter for each field of the document, and of the documents in `$and`.
fn split(source: &Doc<'_>, parser: &mut Parser<'_>, conditions: &mut Vec<Filter>) -> Result<()> {
    for (name, value) in source.iter() {
        match (name.as_str(), &value) {
            ("$and", Value::Array(parts)) => {
                for part in parts.iter() {
                    if let Value::Document(part) = part {
                        split(&part, parser, conditions)?;
                    }
                }
            }
            // Says nothing about the documents.
            ("$comment", _) => {}
            (name, value) => {
                let mut writer = DocWriter::new();
                writer.append(name, value);
                conditions.push(Filter::parse(&writer.finish(), parser.names)?);
            }
        }
    }
    Ok(())
}

/// A compiled `$match`.
#[derive(Clone, Debug)]
pub struct Match {
    pub filter: Filter,
    /// The same filter in parts that all must hold.
    pub(super) conditions: Vec<Filter>,
}

impl Match {
    /// All of `conditions` in one stage.
    pub(super) fn all(conditions: Vec<Filter>) -> Match {
        let filter = conditions.iter().cloned().fold(Filter::all(), Filter::and);
        Match { filter, conditions }
    }
}

impl Stage for Match {
    fn name(&self) -> &'static str {
        "$match"
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Matching { stage: self, input, env: run.env.clone() }))
    }

    fn role(&self) -> Role<'_> {
        Role::Match(self)
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = after?;
        needed.extend(self.filter.root.reads()?);
        Some(needed)
    }

    fn keeps(&self, _path: &Path) -> bool {
        true
    }
}

struct Matching {
    stage: Arc<Match>,
    input: Rows,
    env: Env,
}

impl Stream for Matching {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let mut passed_over = 0_usize;
        while let Some(doc) = self.input.next()? {
            if self.stage.filter.matches(&doc.borrow(), &self.env)? {
                return Ok(Some(doc));
            }
            passed_over += 1;
            if passed_over.is_multiple_of(256) {
                (self.env.interrupt)()?;
            }
        }
        Ok(None)
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}
