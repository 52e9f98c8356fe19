//! `$facet`: several pipelines over the same documents; one document with the results of each in an array.
//!
//! The input is read once and kept while the pipelines run one after the other; documents are shared, not copied.

use super::rows::drain;
use super::{Parsed, Parser, Pipeline, Place, Rows, Run, Stage, StageDef, Stream, Within, from_documents};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::raw::{Doc, DocWriter};
use crate::value::path::check_field_name;
use crate::value::{Path, Value, show};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$facet",
    help: "Runs several pipelines over the same documents and gives one document with all results.",
    parse,
    place: Place::NotInFacet,
    refused: false,
};

/// How large the one document may become.
const MAX_BYTES: usize = 100 << 20;

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let fail = |code, message: String| Err(Error::new(Code::Location(code), message));
    let Value::Document(facets) = spec else { return fail(40169, malformed(spec)) };
    if facets.is_empty() {
        return fail(40169, malformed(spec));
    }
    let mut given = Vec::new();
    for (name, stages) in facets.iter() {
        check_field_name(name.as_str())?;
        let Value::Array(stages) = stages else {
            return fail(40170, format!("arguments to $facet must be arrays, {name} is type {}", stages.type_name()));
        };
        if let Some((at, other)) = stages.iter().enumerate().find(|(_, stage)| !matches!(stage, Value::Document(_))) {
            return fail(
                40171,
                format!(
                    "elements of arrays in $facet spec must be non-empty objects, {name} argument contained an element \
                     of type {}: {at}: {}",
                    other.type_name(),
                    show::element(&other)
                ),
            );
        }
        given.push((name, stages));
    }
    let mut facets = Vec::with_capacity(given.len());
    for (name, stages) in given {
        let pipeline = parser.nested(&stages, Within::Facet)?.optimised();
        facets.push((name.as_str().to_owned(), pipeline));
    }
    Parsed::one(Facet(facets))
}

fn malformed(spec: &Value<'_>) -> String {
    format!("the $facet specification must be a non-empty object, but found: $facet: {}", show::element(spec))
}

#[derive(Debug)]
struct Facet(Vec<(String, Pipeline)>);

impl Stage for Facet {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Faceting { stage: self, input: Some(input), run: run.clone() }))
    }

    fn needs(&self, _after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = Vec::new();
        for (_, pipeline) in &self.0 {
            needed.extend(pipeline.needs()?);
        }
        Some(needed)
    }
}

struct Faceting {
    stage: Arc<Facet>,
    input: Option<Rows>,
    run: Run,
}

impl Stream for Faceting {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(mut input) = self.input.take() else { return Ok(None) };
        let documents = gather(&mut *input, &self.run.env)?;
        drop(input);
        let mut writer = DocWriter::new();
        for (name, pipeline) in &self.stage.0 {
            writer.start_array(name);
            let mut rows = pipeline.start(from_documents(documents.clone()), &self.run)?;
            let mut count = 0;
            drain(&mut *rows, &self.run.env, |doc| {
                crate::raw::with_index(count, |index| {
                    writer.append(index, &Value::Document(doc));
                });
                count += 1;
                check_size(writer.len())
            })?;
            writer.end();
        }
        Ok(Some(writer.finish()))
    }

    fn pause(&mut self) {
        if let Some(input) = &mut self.input {
            input.pause();
        }
    }
}

fn gather(input: &mut dyn Stream, env: &Env) -> Result<Vec<Doc<'static>>> {
    let (mut documents, mut bytes) = (Vec::new(), 0);
    drain(input, env, |doc| {
        bytes += doc.as_bytes().len() + size_of::<Doc<'static>>();
        documents.push(doc);
        if bytes <= env.memory_limit {
            return Ok(());
        }
        let message = format!("Exceeded memory limit for $facet: its input is more than {} bytes", env.memory_limit);
        Err(Error::new(Code::QueryExceededMemoryLimitNoDiskUseAllowed, message))
    })?;
    Ok(documents)
}

fn check_size(bytes: usize) -> Result<()> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    let message =
        format!("document constructed by $facet is {bytes} bytes, which exceeds the limit of {MAX_BYTES} bytes");
    Err(Error::new(Code::Location(4_031_700), message))
}
