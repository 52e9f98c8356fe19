//! From a BSON array to a [`Pipeline`]: one field per stage, known names, positions, and limits.

use super::places::{Setters, Tidy};
use super::text_search::TextSearch;
use super::{Parsed, Pipeline, Place, Role, STAGES, StageDef};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::pipeline::expr::Names;
use crate::raw::{Array, Doc};
use crate::value::Value;
use std::sync::Arc;

const MAX_STAGES: usize = 1000;
/// How deep `$lookup`, `$unionWith` and `$facet` may nest.
const MAX_DEPTH: usize = 20;

/// MongoDB hands the head of a pipeline to its read engine: filters, then a sort, a window or a plain inclusion, then groups
/// and joins. The place of a stage in that order; it matters where that engine orders fields in its own way.
fn read_phase(name: &str, spec: &Value<'_>) -> Option<u8> {
    let included = |value: &Value<'_>| (value.is_number() || matches!(value, Value::Bool(_))) && value.is_truthy();
    match (name, spec) {
        ("$match", _) => Some(0),
        ("$sort", _) => Some(1),
        ("$skip" | "$limit", _) => Some(2),
        ("$project", Value::Document(fields)) if fields.iter().all(|(_, value)| included(&value)) => Some(2),
        ("$group" | "$lookup", _) => Some(3),
        _ => None,
    }
}

/// What a stage's parser sees besides its argument.
pub struct Parser<'n> {
    pub names: &'n mut Names,
    pub(super) within: Within,
    depth: usize,
    /// Whether all stages so far are of those that MongoDB runs together with the read of the collection, and what follows.
    pub(super) with_the_read: bool,
    pub(super) next: Option<Doc<'static>>,
}

/// Where the pipeline being parsed stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Within {
    Command,
    Facet,
    Lookup,
    UnionWith,
}

impl<'n> Parser<'n> {
    pub(super) fn new(names: &'n mut Names) -> Parser<'n> {
        Parser { names, within: Within::Command, depth: 0, with_the_read: true, next: None }
    }

    /// As [`Parser::nested`], for a pipeline that MongoDB optimises only when a document gets there: what is wrong with its
    /// constants is handed back, to be said then.
    pub fn nested_later(&mut self, stages: &Array<'_>, within: Within) -> Result<Result<Pipeline>> {
        let Parser { depth, with_the_read, .. } = *self;
        let parsed = Parser { names: self.names, within: Within::Command, depth, with_the_read, next: None }
            .nested(stages, within);
        match parsed {
            Err(error) if self.names.take_folding_failed() => Ok(Err(error)),
            parsed => parsed.map(Ok),
        }
    }

    /// Parses a pipeline inside the one being parsed.
    pub fn nested(&mut self, stages: &Array<'_>, within: Within) -> Result<Pipeline> {
        if self.depth >= MAX_DEPTH {
            return Err(Error::new(
                Code::MaxSubPipelineDepthExceeded,
                format!("Maximum number of nested sub-pipelines exceeded. Limit is {MAX_DEPTH}"),
            ));
        }
        let (depth, with_the_read) = (self.depth + 1, within == Within::UnionWith);
        pipeline(stages, &mut Parser { names: self.names, within, depth, with_the_read, next: None })
    }
}

/// What MongoDB looks at before it parses any stage: documents of one field, known names.
pub(super) fn check_shape(stages: &Array<'_>) -> Result<()> {
    documents(stages)?.iter().try_for_each(|doc| definition(doc).map(|_| ()))
}

fn documents<'a>(stages: &Array<'a>) -> Result<Vec<Doc<'a>>> {
    let document = |stage| match stage {
        Value::Document(doc) => Ok(doc),
        _ => Err(Error::type_mismatch("Each element of the 'pipeline' array must be an object")),
    };
    stages.iter().map(document).collect()
}

/// Parses `stages` as written, without optimising.
pub(super) fn pipeline(stages: &Array<'_>, parser: &mut Parser<'_>) -> Result<Pipeline> {
    let docs = documents(stages)?;
    if docs.len() > MAX_STAGES {
        return Err(Error::failed_to_parse(format!("Pipeline length must be no longer than {MAX_STAGES} stages")));
    }
    let mut result = Pipeline::default();
    let mut defs = Vec::with_capacity(docs.len());
    let (mut failed_to_fold, mut refused, mut phase) = (None, None, 0);
    let mut search = TextSearch::enter(parser);
    parser.names.enter_pipeline(Setters::of(&docs));
    for (at, doc) in docs.iter().enumerate() {
        let (def, spec) = definition(doc)?;
        defs.push(def);
        parser.names.enter_stage(at);
        parser.next = docs.get(at + 1).map(|next| next.clone().into_owned());
        let parsed = match (def.parse)(&spec, parser) {
            Ok(parsed) => parsed,
            // MongoDB evaluates constants only when all stages are parsed, so what is wrong with those comes first.
            Err(error) if parser.names.take_folding_failed() => {
                failed_to_fold.get_or_insert(error);
                continue;
            }
            // Nor is it said that a stage is missing before MongoDB's own complaints.
            Err(error) if error.code() == Code::NotImplemented && def.refused => {
                refused.get_or_insert(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        search.look_at(at, &parsed, parser)?;
        match read_phase(def.name, &spec) {
            Some(next) if next >= phase => phase = next,
            _ => parser.with_the_read = false,
        }
        match parsed {
            Parsed::One(stage) => result.stages.push(stage),
            Parsed::Two(first, second) => result.stages.extend([first, second]),
            Parsed::Sink(sink) => result.sink = Some(sink),
        }
    }
    if parser.names.leave_pipeline() {
        result.stages.push(Arc::new(Tidy));
    }
    check_places(&defs, parser.within)?;
    result.reads_score = search.leave(parser)?;
    if let Some(error) = refused {
        return Err(error);
    }
    match failed_to_fold {
        Some(error) => {
            if parser.depth > 0 {
                parser.names.note_folding_failed();
            }
            Err(error.context("Failed to optimize pipeline :: caused by :: "))
        }
        None => Ok(result),
    }
}

/// Parses the pipeline of an update: only stages that turn one document into one. Constants are evaluated when it runs:
/// what is wrong with them is an error only if a document gets there.
pub(super) fn update(stages: &Array<'_>, names: &mut Names) -> Result<Pipeline> {
    let parsed = names.unfolded(|names| pipeline(stages, &mut Parser::new(names)))?;
    if let Some(stage) = parsed.stages.iter().find(|stage| !matches!(stage.role(), Role::Transform(_))) {
        return Err(not_in_update(stage.name()));
    }
    match &parsed.sink {
        Some(sink) => Err(not_in_update(sink.stage_name())),
        None => Ok(parsed),
    }
}

pub(super) fn not_in_update(name: &str) -> Error {
    Error::new(Code::InvalidOptions, format!("{name} is not allowed to be used within an update"))
}

/// The one field of a stage: what it is, and its argument.
fn definition<'a>(doc: &Doc<'a>) -> Result<(&'static StageDef, Value<'a>)> {
    let mut fields = doc.iter();
    let (Some((name, spec)), None) = (fields.next(), fields.next()) else {
        return Err(Error::new(
            Code::Location(40323),
            "A pipeline stage specification object must contain exactly one field.",
        ));
    };
    let def = find(name.as_str()).ok_or_else(|| unrecognized(name.as_str()))?;
    Ok((def, spec))
}

fn find(name: &str) -> Option<&'static StageDef> {
    let at = STAGES.binary_search_by(|def| def.name.cmp(name)).ok()?;
    STAGES.get(at).copied()
}

pub(super) fn unrecognized(name: &str) -> Error {
    Error::new(Code::Location(40324), format!("Unrecognized pipeline stage name: '{name}'"))
}

fn check_places(defs: &[&StageDef], within: Within) -> Result<()> {
    for (at, def) in defs.iter().enumerate() {
        let (name, refuse) = (def.name, |code, message| Err(Error::new(Code::Location(code), message)));
        match (def.place, within) {
            (Place::First | Place::Last | Place::NotInFacet, Within::Facet) => {
                return refuse(40600, format!("{name} is not allowed to be used within a $facet stage"));
            }
            (Place::Last, Within::Lookup) => {
                return refuse(51047, format!("{name} is not allowed within a $lookup's sub-pipeline"));
            }
            (Place::Last, Within::UnionWith) => {
                return refuse(31441, format!("{name} is not allowed within a $unionWith's sub-pipeline"));
            }
            (Place::First, _) if at > 0 => {
                return refuse(40602, format!("{name} is only valid as the first stage in a pipeline"));
            }
            (Place::Last, _) if at + 1 < defs.len() => {
                return refuse(40601, format!("{name} can only be the final stage in the pipeline"));
            }
            _ => {}
        }
    }
    Ok(())
}
