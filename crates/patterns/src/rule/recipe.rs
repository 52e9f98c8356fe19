//! What a person would write by hand to keep a field: the languages of `plan --as` print it.

use crate::rule::WhenDeleted;
use document::{Array, Doc, Value};

/// How code keeps a field.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// One more or one less for the host of the child.
    Count,
    /// Evaluated from the children: stages behind a `$match` on `by`; what to set of a row, and without one.
    Evaluate { stages: Array<'static>, set: Vec<(String, &'static str)>, empty: Doc<'static> },
    /// A copy: the stage that makes `{ copy }` of a source.
    Copy { stage: Value<'static>, frozen: bool, when_deleted: WhenDeleted },
    /// From the document itself.
    Expression { stages: Array<'static> },
    /// Why there is no code.
    Unwritten(&'static str),
}
