//! A fold's value in a host, and the state beside it.

use crate::fields::set_paths::{Entry, put};
use document::pipeline::expr::field_of_document;
use document::update::Native;
use document::value::Path;
use document::{Doc, Env, Result, Value};
use smallvec::SmallVec;

/// A host's value and, if there is one, its state.
#[derive(Clone, Debug)]
pub struct Evaluated {
    pub value: Value<'static>,
    pub state: Option<Doc<'static>>,
}

/// The paths that the field owns.
#[derive(Clone, Debug)]
pub(super) struct Owned {
    pub(super) field: Path,
    pub(super) state: Option<Path>,
}

impl Owned {
    pub(super) fn place(&self, host: &Doc<'_>, evaluated: &Evaluated) -> Doc<'static> {
        let mut entries: SmallVec<[Entry<'_>; 2]> = SmallVec::new();
        entries.push((&self.field.parts, evaluated.value.borrow()));
        if let (Some(path), Some(state)) = (&self.state, &evaluated.state) {
            entries.push((&path.parts, Value::Document(state.borrow())));
        }
        put(host, &entries)
    }

    pub(super) fn stored(&self, host: &Doc<'_>) -> Evaluated {
        let value = field_of_document(host, &self.field.parts).into_owned();
        let state = self.state.as_ref().map(|path| field_of_document(host, &path.parts));
        Evaluated { value, state: document_of(state) }
    }
}

pub(super) fn document_of(value: Option<Value<'_>>) -> Option<Doc<'static>> {
    match value {
        Some(Value::Document(state)) => Some(state.into_owned()),
        _ => None,
    }
}

/// [`crate::rule::Field::correction`] as code.
#[derive(Debug)]
pub(super) struct Placing {
    pub(super) owned: Owned,
    pub(super) evaluated: Evaluated,
}

impl Native for Placing {
    fn apply(&self, doc: &Doc<'_>, _env: &Env) -> Result<Doc<'static>> {
        Ok(self.owned.place(doc, &self.evaluated))
    }
}
