//! What documents of a collection must be like (SEMANTICS R36): validators and indexes that the database itself enforces, also against
//! writers that bypass Pleach. Nothing runs with a write.

use crate::rule::Needs;
use document::filter::Filter;
use document::value::Path;
use document::{Doc, Env, Result, Value};
use std::fmt::Debug;

/// A constraint is data: it says what has to be there, and what is wrong with a document.
pub trait Constraint: Debug + Send + Sync {
    /// What it asks for, in a few words: `kinds book, film by type`.
    fn describe(&self) -> String;

    /// What it needs in the database beside its validator: indexes.
    fn needs(&self) -> Needs;

    /// What every document must match. `kept` are the fields that rules keep in these documents: they are always allowed to be there.
    fn validator(&self, kept: &[Path]) -> Doc<'static>;

    /// What is wrong with a document that the validator refuses.
    fn violations(&self, document: &Doc<'_>, kept: &[Path], env: &Env) -> Result<Vec<Violation>>;

    /// Whether it says something about a path of which `changes` is true.
    fn is_about(&self, _changes: &dyn Fn(&Path) -> bool) -> bool {
        true
    }

    /// The paths by which documents are told apart: clients write them, and no rule keeps them.
    fn decisive(&self) -> Vec<Path> {
        Vec::new()
    }

    /// What a person should know who reads by this filter: that it contradicts itself, for one.
    fn notes(&self, _filter: &Filter) -> Vec<String> {
        Vec::new()
    }
}

/// One reason why a document is not as it must be.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// The kind that the document says it is of; missing if it says none.
    pub kind: Value<'static>,
    /// The field that is missing or wrong.
    pub field: String,
    /// `is missing`, `bsonType: type did not match`.
    pub problem: String,
}
