//! `$graphLookup`: everything that can be reached from each document by following a reference, however far.
//!
//! Breadth first: each step is one read of the other collection with all values found in the step before, so its index on the
//! connecting field is used.

use super::expr::{self, Expr, Scope};
use super::foreign::{Foreign, each_value, equal_to_any};
use super::rows::drain;
use super::{Parsed, Parser, Place, Rows, Run, Stage, StageDef, Stream, nested};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::filter::{Filter, Node, Test};
use crate::raw::{Array, ArrayWriter, Doc};
use crate::value::{Path, Value, key, order, show};
use std::collections::HashSet;
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$graphLookup",
    help: "Adds an array of all documents that can be reached by following a reference.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

/// How much may be found for one document.
const MAX_BYTES: usize = 100 << 20;

fn fail<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::from_number(code), message))
}

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(options) = spec else {
        let kind = spec.type_name();
        return fail(9, format!("the $graphLookup stage specification must be an object, but found {kind}"));
    };
    let (mut from, mut start, mut output, mut connect_from, mut connect_to) = (None, None, None, None, None);
    let (mut max_depth, mut depth_field, mut restriction) = (None, None, Filter::all());
    for (name, value) in options.iter() {
        let kind = value.type_name();
        match (name.as_str(), &value) {
            ("startWith", value) => start = Some(parser.names.leniently(|names| expr::parse(value, names))?),
            ("maxDepth", value) => max_depth = Some(parse_depth(value)?),
            ("restrictSearchWithMatch", Value::Document(source)) => {
                let context = "Failed to parse 'restrictSearchWithMatch' option to $graphLookup :: caused by :: ";
                let parsed = Filter::parse(source, parser.names).and_then(Filter::without_text);
                restriction = parsed.map_err(|error| error.context(context))?;
            }
            ("restrictSearchWithMatch", _) => {
                return fail(40185, format!("restrictSearchWithMatch must be an object, found {kind}"));
            }
            ("from", Value::String(text)) => from = Some(text.as_str().to_owned()),
            ("from", Value::Document(_)) => {
                return fail(9, "$graphLookup with syntax {from: {db:<>, coll:<>},..} is not supported");
            }
            ("from", _) => return fail(9, format!("$graphLookup 'from' field must be a string, but found {kind}")),
            (name @ ("as" | "connectFromField" | "connectToField" | "depthField"), Value::String(text)) => {
                if text.as_bytes().is_empty() {
                    continue;
                }
                let path = Some(Path::field_path(text.as_str())?);
                match name {
                    "as" => output = path,
                    "connectFromField" => connect_from = path,
                    "connectToField" => connect_to = path,
                    _ => depth_field = path,
                }
            }
            (name @ ("as" | "connectFromField" | "connectToField" | "depthField"), _) => {
                return fail(40103, format!("expected string as argument for {name}, found: {kind}"));
            }
            (other, _) => return fail(40104, format!("Unknown argument to $graphLookup: {other}")),
        }
    }
    let Some(from) = from else {
        let shown = show::document(options);
        return fail(9, format!("missing 'from' option to $graphLookup stage specification: {shown}"));
    };
    let (Some(start), Some(output), Some(connect_from), Some(connect_to)) = (start, output, connect_from, connect_to)
    else {
        let needed = "'from', 'as', 'startWith', 'connectFromField', and 'connectToField'";
        return fail(40105, format!("$graphLookup requires {needed} to be specified."));
    };
    if from.is_empty() {
        return fail(73, "invalid $graphLookup namespace: the collection name is empty");
    }
    let seen = parser.names.stages_of(&from);
    let foreign = Foreign::new(STAGE.name, Some(from), seen)?;
    Parsed::one(GraphLookup { foreign, start, output, connect_from, connect_to, max_depth, depth_field, restriction })
}

fn parse_depth(value: &Value<'_>) -> Result<u64> {
    let Some(number) = value.as_number() else {
        return fail(40100, format!("maxDepth must be numeric, found type: {}", value.type_name()));
    };
    match number.as_i64_exact() {
        Some(depth) => u64::try_from(depth)
            .or_else(|_| fail(40101, format!("maxDepth requires a nonnegative argument, found: {depth}"))),
        None => {
            let cut = number.to_i64_saturated();
            fail(40102, format!("maxDepth could not be represented as a long long: {cut}"))
        }
    }
}

#[derive(Debug)]
struct GraphLookup {
    foreign: Foreign,
    start: Expr,
    output: Path,
    connect_from: Path,
    connect_to: Path,
    max_depth: Option<u64>,
    depth_field: Option<Path>,
    restriction: Filter,
}

impl Stage for GraphLookup {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(Following { stage: self, input, run: run.clone() }))
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = after?;
        needed.retain(|path| !self.output.is_prefix_of(path));
        needed.extend(self.start.reads()?);
        Some(needed)
    }

    fn keeps(&self, path: &Path) -> bool {
        nested::leaves(&self.output, path)
    }

    fn one_to_one(&self) -> bool {
        true
    }
}

struct Following {
    stage: Arc<GraphLookup>,
    input: Rows,
    run: Run,
}

impl Stream for Following {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(doc) = self.input.next()? else { return Ok(None) };
        let found = self.stage.follow(&doc, &self.run)?;
        Ok(Some(nested::with(&doc, &self.stage.output.parts, &Value::Array(found))))
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

impl GraphLookup {
    fn follow(&self, doc: &Doc<'_>, run: &Run) -> Result<Array<'static>> {
        let mut frontier: Vec<Value<'static>> = match self.start.eval(&mut Scope::new(doc.borrow(), &run.env))? {
            Value::Array(array) => array.iter().map(Value::into_owned).collect(),
            Value::Missing => Vec::new(),
            value => vec![value.into_owned()],
        };
        let (mut visited, mut found, mut depth) = (HashSet::new(), ArrayWriter::new(), 0_u64);
        while !frontier.is_empty() && self.max_depth.is_none_or(|most| depth <= most) {
            (run.env.interrupt)()?;
            let mut rows = self.foreign.open_behind(self.step(std::mem::take(&mut frontier)), run)?;
            drain(&mut *rows, &run.env, |doc| {
                let mut id = Vec::new();
                key::encode(&doc.get("_id").unwrap_or(Value::Missing), &mut id);
                if !visited.insert(id) {
                    return Ok(());
                }
                each_value(&doc, &self.connect_from.parts, &mut |value| frontier.push(value));
                found.push(&Value::Document(self.with_depth(doc, depth)));
                match found.len() <= MAX_BYTES {
                    true => Ok(()),
                    false => fail(40099, "$graphLookup reached maximum memory consumption"),
                }
            })?;
            frontier.sort_by(order::compare);
            frontier.dedup_by(|a, b| order::equal(a, b));
            depth += 1;
        }
        Ok(found.finish())
    }

    /// The filter for what is one step further. A null reference does not lead to documents without the field.
    fn step(&self, frontier: Vec<Value<'static>>) -> Filter {
        let has_null = frontier.iter().any(Value::is_nullish);
        let mut filter = equal_to_any(&self.connect_to, frontier);
        if has_null {
            filter = filter.and(Filter::from_node(Node::Field { path: self.connect_to.clone(), test: Test::Exists }));
        }
        filter.and(self.restriction.clone())
    }

    fn with_depth(&self, doc: Doc<'static>, depth: u64) -> Doc<'static> {
        match &self.depth_field {
            Some(field) => {
                let depth = Value::Int64(i64::try_from(depth).unwrap_or(i64::MAX));
                nested::with(&doc, &field.parts, &depth)
            }
            None => doc,
        }
    }
}
