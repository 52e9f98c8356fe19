//! `$lookup`: an array of the documents of another collection that belong to each document, joined by equal fields, by a
//! pipeline with variables, or by both.
//!
//! The join is a filter at the head of the pipeline that the other collection runs, so its indexes are used. A pipeline that
//! depends on nothing of the document is run once.

use super::expr::{self, Expr, Scope, check_bindable};
use super::foreign::{Foreign, each_value, equal_to_any};
use super::rows::drain;
use super::{
    Parsed, Parser, Pipeline, Place, Role, Rows, Run, Stage, StageDef, Stream, Within, implied, nested, not_first,
};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::Filter;
use crate::raw::{Array, ArrayWriter, Doc};
use crate::text::carried::carry;
use crate::value::{Path, Value, show};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$lookup",
    help: "Adds an array of the documents of another collection that belong to each document.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

/// How much one array may hold.
const MAX_BYTES: usize = 100 << 20;

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let fail = |message: String| Err(Error::failed_to_parse(message));
    let Value::Document(spec) = spec else {
        return fail(format!("the $lookup stage specification must be an object, but found {}", spec.type_name()));
    };
    let options = Options::read(spec)?;
    if options.from.is_none() && options.pipeline.is_none() {
        return fail("must specify 'pipeline' when 'from' is empty".to_owned());
    }
    let Some(output) = options.output else { return fail("must specify 'as' field for a $lookup".to_owned()) };
    let join = match (options.local, options.foreign, &options.pipeline) {
        (Some(local), Some(foreign), _) => Some((local, foreign)),
        (None, None, Some(_)) => None,
        (_, _, Some(_)) => {
            return fail(
                "$lookup requires both or neither of 'localField' and 'foreignField' to be specified".to_owned(),
            );
        }
        (_, _, None) => {
            let message = "$lookup requires either 'pipeline' or both 'localField' and 'foreignField' to be specified";
            return fail(message.to_owned());
        }
    };
    if options.variables.is_some() && options.pipeline.is_none() {
        return fail("$lookup with a 'let' argument must also specify 'pipeline'".to_owned());
    }
    if options.from.as_deref() == Some("") {
        return Err(Error::new(Code::InvalidNamespace, "invalid $lookup namespace: the collection name is empty"));
    }
    let output = Path::field_path(&output)?;
    let join = match join {
        Some((local, foreign)) => Some((Path::field_path(&local)?, Path::field_path(&foreign)?)),
        None => None,
    };
    // MongoDB's read engine joins by equality alone, and puts the result at the end; elsewhere it replaces what was there.
    let joins_plainly = options.pipeline.is_none()
        && join.as_ref().is_some_and(|(local, foreign)| {
            [local, foreign, &output].into_iter().all(|path| path.parts.iter().all(|part| part.index.is_none()))
        });
    let at_end = parser.with_the_read && joins_plainly && !unwinds(parser.next.as_ref(), &output);
    parser.with_the_read &= joins_plainly;
    let variables = bound_expressions(options.variables.as_ref(), parser)?;
    let mark = parser.names.mark();
    let variables: Vec<(usize, Expr)> =
        variables.into_iter().map(|(name, expr)| (parser.names.bind(&name), expr)).collect();
    let stages = options.pipeline.unwrap_or_else(Array::empty);
    let pipeline = parser.nested_later(&stages, Within::Lookup);
    parser.names.release(mark);
    let mut from = options.from;
    let (pipeline, failing) = match pipeline? {
        Ok(pipeline) => (pipeline, None),
        Err(error) => {
            // What never runs need not be there, but it must begin as it may without a collection.
            if begins_with_documents(&stages) {
                from.get_or_insert_default();
            }
            (Pipeline::default(), Some(error))
        }
    };
    // The join would come before the search.
    if join.is_some() && pipeline.searches_text() {
        return Err(not_first());
    }
    let foreign = Foreign::new(STAGE.name, from, pipeline)?;
    let equalities = match foreign.stages().first().map(|stage| stage.role()) {
        Some(Role::Match(leading)) => implied::equalities(&leading.filter),
        _ => Vec::new(),
    };
    Parsed::one(Lookup { foreign, join, variables, equalities, failing, output, at_end })
}

fn begins_with_documents(stages: &Array<'_>) -> bool {
    matches!(stages.get(0), Some(Value::Document(first)) if first.contains("$documents"))
}

/// Whether the next stage unwinds what this one adds.
fn unwinds(next: Option<&Doc<'_>>, output: &Path) -> bool {
    let path = match next.and_then(|next| next.get("$unwind")) {
        Some(Value::Document(options)) => options.get("path"),
        other => other,
    };
    let path = path.as_ref().and_then(Value::as_str).and_then(|path| path.strip_prefix('$'));
    path.is_some_and(|path| path == output.dotted())
}

fn bound_expressions(given: Option<&Doc<'_>>, parser: &mut Parser<'_>) -> Result<Vec<(String, Expr)>> {
    let mut variables = Vec::new();
    for (name, value) in given.into_iter().flat_map(|given| given.iter()) {
        check_bindable(name.as_str())?;
        variables.push((name.as_str().to_owned(), parser.names.leniently(|names| expr::parse(&value, names))?));
    }
    Ok(variables)
}

/// The arguments by name. An empty string is as good as none.
#[derive(Default)]
struct Options {
    from: Option<String>,
    output: Option<String>,
    local: Option<String>,
    foreign: Option<String>,
    pipeline: Option<Array<'static>>,
    variables: Option<Doc<'static>>,
}

impl Options {
    fn read(spec: &Doc<'_>) -> Result<Options> {
        let fail = |message: String| Err(Error::failed_to_parse(message));
        let mut options = Options::default();
        for (name, value) in spec.iter() {
            let (name, kind) = (name.as_str(), value.type_name());
            match (name, &value) {
                ("pipeline", Value::Array(stages)) => options.pipeline = Some(stages.clone().into_owned()),
                ("pipeline", _) => {
                    return Err(Error::type_mismatch("'pipeline' option must be specified as an array"));
                }
                ("let", Value::Document(given)) => options.variables = Some(given.clone().into_owned()),
                ("let", _) => {
                    let shown = show::element(&value);
                    return fail(format!("$lookup argument 'let: {shown}' must be an object, is type {kind}"));
                }
                ("from", Value::String(text)) => options.from = Some(text.as_str().to_owned()),
                ("from", Value::Document(target)) => {
                    let part = |name| target.get(name).and_then(|part| part.as_str().map(str::to_owned));
                    let (db, collection) = (part("db").unwrap_or_default(), part("coll").unwrap_or_default());
                    return fail(format!(
                        "$lookup with syntax {{from: {{db:<>, coll:<>}},..}} is not supported for db: {db} and coll: \
                         {collection}"
                    ));
                }
                ("from", _) => return fail(format!("$lookup 'from' field must be a string, but found {kind}")),
                (name, Value::String(text)) => {
                    let given = Some(text.as_str().to_owned()).filter(|text| !text.is_empty());
                    match name {
                        "as" => options.output = given,
                        "localField" => options.local = given,
                        "foreignField" => options.foreign = given,
                        other => return fail(format!("unknown argument to $lookup: {other}")),
                    }
                }
                (name, other) => {
                    let shown = show::element(other);
                    return fail(format!("$lookup argument '{name}' must be a string, found {name}: {shown}: {kind}"));
                }
            }
        }
        Ok(options)
    }
}

#[derive(Debug)]
struct Lookup {
    foreign: Foreign,
    /// The local and the foreign field.
    join: Option<(Path, Path)>,
    variables: Vec<(usize, Expr)>,
    /// What the pipeline's leading `$expr` says must be equal, for an index to use.
    equalities: Vec<(Path, Expr)>,
    /// What is wrong with the pipeline's constants: said when a document comes.
    failing: Option<Error>,
    output: Path,
    /// Whether an existing field of that name moves to the end.
    at_end: bool,
}

impl Stage for Lookup {
    fn name(&self) -> &'static str {
        STAGE.name
    }

    fn start(self: Arc<Self>, input: Rows, run: &Run) -> Result<Rows> {
        Ok(Box::new(LookingUp { stage: self, input, run: run.clone(), constant: None }))
    }

    fn needs(&self, after: Option<Vec<Path>>) -> Option<Vec<Path>> {
        let mut needed = after?;
        needed.retain(|path| !self.output.is_prefix_of(path));
        needed.extend(self.join.iter().map(|(local, _)| local.clone()));
        for (_, expr) in &self.variables {
            needed.extend(expr.reads()?);
        }
        Some(needed)
    }

    fn keeps(&self, path: &Path) -> bool {
        nested::leaves(&self.output, path)
    }

    fn one_to_one(&self) -> bool {
        true
    }
}

struct LookingUp {
    stage: Arc<Lookup>,
    input: Rows,
    run: Run,
    /// The result, if it is the same for every document.
    constant: Option<Array<'static>>,
}

impl Stream for LookingUp {
    fn next(&mut self) -> Result<Option<Doc<'static>>> {
        let Some(doc) = self.input.next()? else { return Ok(None) };
        (self.run.env.interrupt)()?;
        let is_constant = self.stage.join.is_none() && self.stage.variables.is_empty();
        let found = match &self.constant {
            Some(found) => found.clone(),
            None => self.stage.find(&doc, &self.run)?,
        };
        let set = if self.stage.at_end { nested::at_end } else { nested::with };
        let result = set(&doc, &self.stage.output.parts, &Value::Array(found.borrow()));
        if is_constant {
            self.constant = Some(found);
        }
        Ok(Some(carry(&doc, result)))
    }

    fn pause(&mut self) {
        self.input.pause();
    }
}

impl Lookup {
    fn find(&self, doc: &Doc<'_>, run: &Run) -> Result<Array<'static>> {
        let bound = self.bind(doc, &run.env)?;
        if let Some(error) = &self.failing {
            return Err(error.clone());
        }
        let env = bound.as_ref().unwrap_or(&run.env);
        let mut rows = self.foreign.open(self.filter(doc, env)?, run, env)?;
        let mut found = ArrayWriter::new();
        drain(&mut *rows, env, |doc| {
            found.push(&Value::Document(doc));
            if found.len() <= MAX_BYTES {
                return Ok(());
            }
            Err(Error::new(
                Code::Location(4568),
                format!(
                    "Total size of documents in {} matching pipeline's $lookup stage exceeds {MAX_BYTES} bytes",
                    self.foreign.collection()
                ),
            ))
        })?;
        Ok(found.finish())
    }

    /// The surroundings with the variables' values for this document.
    fn bind(&self, doc: &Doc<'_>, env: &Env) -> Result<Option<Env>> {
        if self.variables.is_empty() {
            return Ok(None);
        }
        let mut bound = env.clone();
        for (slot, expr) in &self.variables {
            let value = expr.eval(&mut Scope::new(doc.borrow(), env))?.into_owned();
            if bound.variables.len() <= *slot {
                bound.variables.resize(slot + 1, Value::Missing);
            }
            if let Some(place) = bound.variables.get_mut(*slot) {
                *place = value;
            }
        }
        Ok(Some(bound))
    }

    /// What the documents looked for must equal.
    fn filter(&self, doc: &Doc<'_>, env: &Env) -> Result<Option<Filter>> {
        let mut filter = implied::filter(&self.equalities, env)?;
        if let Some((local, foreign)) = &self.join {
            let mut values = Vec::new();
            each_value(doc, &local.parts, &mut |value| values.push(value.into_owned()));
            filter = equal_to_any(foreign, values).and(filter);
        }
        Ok(Some(filter).filter(|filter| !filter.is_all()))
    }
}
