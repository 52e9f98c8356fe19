//! Which paths an update names, as its author wrote it: nothing is applied.

use super::{Kind, Update};
use crate::raw::{Array, Doc};
use crate::value::Value;

impl Update {
    /// Calls `visit` with each path that an operator or a stage writes, as written: `items.$[].price`, `items.0`. A field that a
    /// `$project` takes over as it is, a replacement and `$replaceWith` name nothing.
    pub fn each_named_path(&self, visit: &mut dyn FnMut(&str)) {
        match (&*self.kind, &self.source) {
            (Kind::Replacement(_), _) => {}
            (_, Value::Document(operators)) => operator_paths(operators, visit),
            (_, Value::Array(stages)) => stage_paths(stages, visit),
            _ => {}
        }
    }

    /// Whether the whole document may become another one: a replacement, or a pipeline with a stage that makes a new document.
    pub fn replaces(&self) -> bool {
        match (&*self.kind, &self.source) {
            (Kind::Replacement(_), _) => true,
            (_, Value::Array(stages)) => stages.iter().any(|stage| match stage {
                Value::Document(stage) => {
                    stage.iter().any(|(name, _)| matches!(name.as_str(), "$project" | "$replaceRoot" | "$replaceWith"))
                }
                _ => false,
            }),
            _ => false,
        }
    }
}

fn operator_paths(operators: &Doc<'_>, visit: &mut dyn FnMut(&str)) {
    for (operator, fields) in operators.borrow().iter() {
        let Value::Document(fields) = fields else { continue };
        for (path, argument) in fields.iter() {
            visit(path.as_str());
            if operator.as_str() == "$rename"
                && let Some(target) = argument.as_str()
            {
                visit(target);
            }
        }
    }
}

fn stage_paths(stages: &Array<'_>, visit: &mut dyn FnMut(&str)) {
    for stage in stages.borrow().iter() {
        let Value::Document(stage) = stage else { continue };
        for (name, argument) in stage.iter() {
            match (name.as_str(), &argument) {
                ("$set" | "$addFields", Value::Document(fields)) => computed(fields, "", visit),
                ("$project", Value::Document(fields)) => projected(fields, "", visit),
                ("$unset", Value::Array(paths)) => {
                    paths.iter().for_each(|path| path.as_str().into_iter().for_each(&mut *visit));
                }
                ("$unset", path) => path.as_str().into_iter().for_each(&mut *visit),
                _ => {}
            }
        }
    }
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

fn is_operator(doc: &Doc<'_>) -> bool {
    doc.iter().next().is_none_or(|(name, _)| name.as_str().starts_with('$'))
}

/// The fields of `$set`: a document without operators is about the fields in it.
fn computed(fields: &Doc<'_>, above: &str, visit: &mut dyn FnMut(&str)) {
    for (name, value) in fields.iter() {
        let path = join(above, name.as_str());
        match &value {
            Value::Document(inner) if !is_operator(inner) => computed(inner, &path, visit),
            _ => visit(&path),
        }
    }
}

/// The fields of `$project` that it computes or takes away; what it only includes stays as it is.
fn projected(fields: &Doc<'_>, above: &str, visit: &mut dyn FnMut(&str)) {
    for (name, value) in fields.iter() {
        let path = join(above, name.as_str());
        match &value {
            Value::Document(inner) if !is_operator(inner) => projected(inner, &path, visit),
            value if (value.is_number() || matches!(value, Value::Bool(_))) && value.is_truthy() => {}
            _ => visit(&path),
        }
    }
}
