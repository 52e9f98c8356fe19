//! Updates: operators, pipelines and replacements, parsed once, applied to raw documents.
//!
//! Operators become a [`tree`] of paths ([`path`]) whose leaves are [`operation`]s; [`walk`] takes the tree over a
//! document's bytes and collects [`edits`], which are spliced in with one copy. A family of operators is one file; each
//! operator is a constant [`UpdateDef`] listed in [`UPDATE_OPERATORS`].

mod array_filter;
mod edits;
mod fields;
mod names;
mod numbers;
mod operation;
mod path;
mod pull;
mod push;
mod rename;
mod replacement;
mod storable;
mod tree;
mod upsert;
mod walk;

#[cfg(test)]
mod tests;

pub use upsert::check_filter as check_upsert_filter;

use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::{Details, Filter};
use crate::pipeline::Pipeline;
use crate::pipeline::expr::Names;
use crate::raw::{Array, Doc, Text};
use crate::value::{Path, Value, order, show};
use array_filter::ArrayFilter;
use operation::Operation;
use std::sync::Arc;
use tree::{Branch, Node};
use walk::Walk;

/// A compiled update. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Update {
    kind: Arc<Kind>,
    /// As the client wrote it: for `explain` and for a backend that is a real MongoDB.
    pub source: Value<'static>,
    /// `arrayFilters`, as the client wrote them.
    pub array_filters: Vec<Doc<'static>>,
    /// The constants of a pipeline (`c` of an update statement), as the client wrote them.
    pub constants: Option<Doc<'static>>,
    /// It was made of a whole document (`$merge`): nobody chose its fields one by one.
    pub whole: bool,
}

#[derive(Debug)]
enum Kind {
    Operators {
        root: Branch,
        filters: Vec<ArrayFilter>,
        /// Whether some path and value together could nest too deep.
        deep: bool,
    },
    Pipeline(Pipeline),
    Replacement(Doc<'static>),
    Native(Arc<dyn Native>),
}

/// A pipeline that is also there as code: what a layer above writes often, without parsing or interpreting it.
pub trait Native: std::fmt::Debug + Send + Sync {
    /// The document after the update: exactly what the pipeline that it stands for gives.
    fn apply(&self, doc: &Doc<'_>, env: &Env) -> Result<Doc<'static>>;
}

/// The result of applying an update to a document.
#[derive(Clone, Debug)]
pub enum Applied {
    Unchanged,
    Changed(Doc<'static>),
}

/// One entry of the registry.
pub struct UpdateDef {
    pub name: &'static str,
    pub help: &'static str,
    form: Form,
}

/// How an operator reads `{ field: argument }`.
enum Form {
    Operation(fn(Argument<'_>, &mut Names) -> Result<Arc<dyn Operation>>),
    /// The argument is a second path.
    Rename,
}

/// What an operator was given for one field.
struct Argument<'a> {
    field: &'a str,
    value: Value<'static>,
}

/// All update operators, sorted by name.
pub const UPDATE_OPERATORS: &[&UpdateDef] = &[
    &pull::ADD_TO_SET,
    &numbers::BIT,
    &fields::CURRENT_DATE,
    &numbers::INC,
    &numbers::MAX,
    &numbers::MIN,
    &numbers::MUL,
    &pull::POP,
    &pull::PULL,
    &pull::PULL_ALL,
    &push::PUSH,
    &fields::RENAME,
    &fields::SET,
    &fields::SET_ON_INSERT,
    &fields::UNSET,
];

impl Update {
    /// `spec` is a document (operators or a replacement) or an array (a pipeline).
    pub fn parse(spec: &Value<'_>, array_filters: &[Doc<'_>], names: &mut Names) -> Result<Update> {
        // Owned first: the values in the tree then share the source's bytes.
        let source = spec.clone().into_owned();
        let kind = match &source {
            Value::Array(_) if !array_filters.is_empty() => {
                return Err(Error::failed_to_parse("arrayFilters may not be specified for pipeline-style updates"));
            }
            Value::Array(stages) => Kind::Pipeline(Pipeline::parse_update(stages, names)?),
            Value::Document(doc) if doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')) => {
                operators(doc, array_filters, names)?
            }
            Value::Document(doc) => Kind::Replacement(doc.clone()),
            _ => return Err(Error::failed_to_parse("Update argument must be either an object or an array")),
        };
        let array_filters = array_filters.iter().map(|filter| filter.clone().into_owned()).collect();
        Ok(Update { kind: Arc::new(kind), source, array_filters, constants: None, whole: false })
    }

    /// The update that `program` does; `stages` (with `constants`, by name) say the same to a real MongoDB.
    pub fn native(stages: Array<'static>, constants: Option<Doc<'static>>, program: Arc<dyn Native>) -> Update {
        let kind = Arc::new(Kind::Native(program));
        Update { kind, source: Value::Array(stages), array_filters: Vec::new(), constants, whole: false }
    }

    /// Whether it is a replacement document (refused with `multi`).
    pub fn is_replacement(&self) -> bool {
        matches!(&*self.kind, Kind::Replacement(_))
    }

    /// Whether what it does may hang on how values compare, as `$pull`, `$max` or the positional `$` do.
    pub fn compares(&self) -> bool {
        const PLAIN: &[&str] =
            &["$bit", "$currentDate", "$inc", "$mul", "$pop", "$rename", "$set", "$setOnInsert", "$unset"];
        let Value::Document(source) = &self.source else { return true };
        let positional = |fields: Value<'_>| match fields {
            Value::Document(fields) => fields.iter().any(|(path, _)| path.as_str().contains(".$")),
            _ => false,
        };
        let compares = |(name, fields): (Text<'_>, Value<'_>)| !PLAIN.contains(&name.as_str()) || positional(fields);
        !self.is_replacement() && source.iter().any(compares)
    }

    /// The document after the update. `details` come from the filter's match, for the positional `$`.
    pub fn apply(&self, doc: &Doc<'_>, details: &Details, env: &Env) -> Result<Applied> {
        match &*self.kind {
            Kind::Operators { root, filters, deep } => {
                let walk = Walk::new(doc, filters, false, env).at_position(details.array_index);
                let Some(changed) = walk.run(root)? else { return Ok(Applied::Unchanged) };
                storable::check_size(&changed)?;
                if *deep {
                    storable::check_depth(&changed)?;
                }
                Ok(Applied::Changed(changed))
            }
            Kind::Pipeline(pipeline) => replacement::whole(&pipeline.transform(doc, env)?, doc),
            Kind::Replacement(new) => replacement::apply(new, doc, env),
            Kind::Native(program) => replacement::whole(&program.apply(doc, env)?, doc),
        }
    }

    /// The document that an upsert inserts: the filter's equalities, then the update, then `_id`.
    pub fn upsert(&self, filter: &Filter, env: &Env) -> Result<Doc<'static>> {
        upsert::check_filter(filter)?;
        let new = match &*self.kind {
            Kind::Operators { root, filters, .. } => {
                let base = upsert::from_filter(filter)?;
                let changed = Walk::new(&base, filters, true, env).run(root)?;
                changed.unwrap_or(base)
            }
            Kind::Pipeline(_) | Kind::Native(_) => {
                let base = upsert::from_filter(filter)?;
                let new = match &*self.kind {
                    Kind::Pipeline(pipeline) => pipeline.transform(&base, env)?,
                    Kind::Native(program) => program.apply(&base, env)?,
                    _ => base.clone(),
                };
                storable::refuse_array_id(&new)?;
                match base.get("_id") {
                    Some(id) => {
                        storable::check_same_id(&id, &new)?;
                        replacement::id_first(&new, &id)
                    }
                    None => new,
                }
            }
            Kind::Replacement(new) => {
                let id = upsert::id_from_filter(filter)?;
                let new = replacement::with_timestamps(new, env);
                storable::refuse_array_id(&new)?;
                match (new.get("_id"), &id) {
                    (Some(own), Some(id)) if !order::equal(&own, id) => {
                        storable::check_same_id(id, &new)?;
                        new
                    }
                    (_, Some(id)) => replacement::id_first(&new, id),
                    (_, None) => new,
                }
            }
        };
        let new = replacement::id_first(&new, &Value::ObjectId((env.new_id)()));
        if let Some(id) = new.get("_id") {
            storable::check_id(&id)?;
        }
        storable::check_size(&new)?;
        storable::check_depth(&new)?;
        Ok(new)
    }
}

fn operators(spec: &Doc<'static>, array_filters: &[Doc<'_>], names: &mut Names) -> Result<Kind> {
    let mut filters = array_filter::parse(array_filters, names)?;
    let mut root = Branch::default();
    let mut longest = 0;
    for (name, fields) in spec.iter() {
        let name = name.as_str();
        let Some(def) = UPDATE_OPERATORS.iter().find(|def| def.name == name) else {
            return Err(Error::failed_to_parse(format!(
                "Unknown modifier: {name}. Expected a valid update modifier or pipeline-style update specified as an array"
            )));
        };
        let Value::Document(fields) = &fields else {
            return Err(Error::failed_to_parse(format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{name}: {}}}",
                fields.type_name(),
                show::element(&fields)
            )));
        };
        for (field, value) in fields.iter() {
            let argument = Argument { field: field.as_str(), value };
            longest = longest.max(match &def.form {
                Form::Operation(parse) => operation(&mut root, argument, *parse, &mut filters, names)?,
                Form::Rename => rename(&mut root, &argument, &mut filters)?,
            });
        }
    }
    array_filter::refuse_unused(&filters, spec)?;
    let deep = longest + storable::depth(&Value::Document(spec.borrow())) > storable::MAX_DEPTH;
    Ok(Kind::Operators { root, filters, deep })
}

/// Adds one operator at its path; says how long the path is.
fn operation(
    root: &mut Branch,
    argument: Argument<'_>,
    parse: fn(Argument<'_>, &mut Names) -> Result<Arc<dyn Operation>>,
    filters: &mut [ArrayFilter],
    names: &mut Names,
) -> Result<usize> {
    let field = argument.field;
    let parts = path::parse(field)?;
    let leaf = Node::Operation(parse(argument, names)?);
    root.insert(field, &path::steps(&parts, filters), leaf)?;
    Ok(parts.len())
}

/// The source is reserved before the target is looked at: so errors come in MongoDB's order.
fn rename(root: &mut Branch, argument: &Argument<'_>, filters: &mut [ArrayFilter]) -> Result<usize> {
    let source = argument.field;
    let shown = || format!("{source}: {}", show::element(&argument.value));
    let Some(target) = argument.value.as_str() else {
        return Err(Error::bad_value(format!("The 'to' field for $rename must be a string: {}", shown())));
    };
    if target.contains('\0') {
        return Err(Error::bad_value("The 'to' field for $rename cannot contain an embedded null byte"));
    }
    let source_parts = path::parse(source)?;
    root.insert(source, &path::steps(&source_parts, filters), Node::Reserved)?;
    let target_parts = path::parse(target)?;
    let (from, to) = (Path::new(source), Path::new(target));
    if from == to {
        return Err(Error::bad_value(format!("The source and target field for $rename must differ: {}", shown())));
    }
    if from.is_prefix_of(&to) || to.is_prefix_of(&from) {
        return Err(Error::bad_value(format!(
            "The source and target field for $rename must not be on the same path: {}",
            shown()
        )));
    }
    for (which, path, parts) in [("source", source, &source_parts), ("destination", target, &target_parts)] {
        if parts.iter().any(|part| path::is_dynamic(part)) {
            return Err(Error::bad_value(format!("The {which} field for $rename may not be dynamic: {path}")));
        }
    }
    root.insert(target, &path::steps(&target_parts, filters), Node::Rename(Arc::new(from)))?;
    // What moves may be deep already.
    Ok(if target_parts.len() > source_parts.len() { storable::MAX_DEPTH } else { 0 })
}
