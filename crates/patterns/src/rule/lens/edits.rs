//! What a step does to one document, as an update: paths that are set and removed together, if a condition holds. It becomes one
//! `$set` stage whose expressions all read the document as it was, so that a field can be moved into what takes its place.

use crate::mql::{call, call_with, cond, field, list, literal, object, with};
use document::Value;
use document::value::Path;
use std::collections::BTreeMap;

/// Some changes of a document, made together or not at all.
#[derive(Clone, Debug)]
pub(crate) struct Edits {
    /// The document is left alone unless this expression is true.
    guard: Value<'static>,
    tops: BTreeMap<String, Edit>,
}

/// What becomes of one path.
#[derive(Clone, Debug, Default)]
struct Edit {
    is_removed: bool,
    value: Option<Value<'static>>,
    inside: BTreeMap<String, Edit>,
    /// Whether it goes if nothing is left in it.
    is_pruned: bool,
}

impl Edits {
    pub(crate) fn when(guard: Value<'static>) -> Edits {
        Edits { guard, tops: BTreeMap::new() }
    }

    /// The path gets the value of an expression. What is on the way and no document is replaced by one.
    pub(crate) fn set(mut self, path: &Path, value: Value<'static>) -> Edits {
        self.at(path).value = Some(value);
        self
    }

    /// The path goes. A value that is set there, or inside, comes in its place.
    pub(crate) fn unset(mut self, path: &Path) -> Edits {
        self.at(path).is_removed = true;
        self
    }

    /// The path goes, and so do the documents that hold it, if they are empty then.
    pub(crate) fn prune(mut self, path: &Path) -> Edits {
        self.at(path).is_removed = true;
        for length in 1..path.parts.len() {
            let parts = path.parts.get(..length).unwrap_or_default().to_vec();
            self.at(&Path { parts }).is_pruned = true;
        }
        self
    }

    fn at(&mut self, path: &Path) -> &mut Edit {
        let mut edit = self.tops.entry(path.first().to_owned()).or_default();
        for part in path.parts.get(1..).unwrap_or_default() {
            edit = edit.inside.entry(part.name.to_string()).or_default();
        }
        edit
    }

    /// The stage; it does nothing to documents for which `only` is not true either.
    pub(crate) fn stage(&self, only: Option<&Value<'static>>) -> Value<'static> {
        let guard = match only {
            Some(only) => call_with("$and", [only.clone(), self.guard.clone()]),
            None => self.guard.clone(),
        };
        let set = self.tops.iter().map(|(name, edit)| {
            let own = field(name);
            (name.as_str(), cond(guard.clone(), edit.expression(name), own))
        });
        call("$set", object(set.collect::<Vec<_>>()))
    }
}

impl Edit {
    /// What is at the path afterwards; `path` is where it was.
    fn expression(&self, path: &str) -> Value<'static> {
        if let Some(value) = &self.value {
            return value.clone();
        }
        if self.inside.is_empty() {
            return Value::from("$$REMOVE");
        }
        let mut base = match self.is_removed {
            true => call("$literal", object([])),
            false => cond(is_type(path, "object"), field(path), call("$literal", object([]))),
        };
        let mut added = Vec::new();
        for (name, edit) in &self.inside {
            if edit.value.is_none() && (edit.inside.is_empty() || edit.is_pruned) && !self.is_removed {
                base = call("$unsetField", object([("field", literal_name(name)), ("input", base)]));
            }
            if edit.value.is_some() || !edit.inside.is_empty() {
                added.push((name.as_str(), edit.expression(&format!("{path}.{name}"))));
            }
        }
        let whole = match added.is_empty() {
            true => base,
            false => call_with("$mergeObjects", [base, object(added)]),
        };
        if !self.is_pruned {
            return whole;
        }
        let is_empty = call_with("$eq", [Value::from("$$rest"), call("$literal", object([]))]);
        with([("rest", whole)], cond(is_empty, Value::from("$$REMOVE"), Value::from("$$rest")))
    }
}

/// A field's name where an expression may stand.
fn literal_name(name: &str) -> Value<'static> {
    match name.starts_with('$') {
        true => literal(Value::from(name)),
        false => Value::string(name.to_owned()),
    }
}

/// Whether there is something at the path.
pub(crate) fn is_present(path: &str) -> Value<'static> {
    call_with("$ne", [call("$type", field(path)), Value::from("missing")])
}

/// Whether there is nothing.
pub(crate) fn is_absent(path: &str) -> Value<'static> {
    is_type(path, "missing")
}

pub(crate) fn is_type(path: &str, name: &str) -> Value<'static> {
    call_with("$eq", [call("$type", field(path)), Value::from(name)])
}

/// The paths whose values, as far as they are there, are text.
pub(crate) fn are_text<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Value<'static> {
    let types = || [Value::from("string"), Value::from("missing")];
    let tests = paths.into_iter().map(|path| call_with("$in", [call("$type", field(&path.dotted())), list(types())]));
    call_with("$and", tests)
}
