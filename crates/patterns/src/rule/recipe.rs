//! What a person would write by hand to keep a field, or a collection in another form: the languages of `plan --as` print it.

use crate::rule::WhenDeleted;
use document::{Array, Doc, Value};

/// How code keeps a field.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// One more or one less for the host of the child.
    Count,
    /// Evaluated from the children: stages behind a `$match` on `by`; what to set of a row, and without one.
    Evaluate { stages: Array<'static>, set: Vec<(String, &'static str)>, empty: Doc<'static> },
    /// The same by keys that are computed, or make their documents.
    Keyed(KeyedRecipe),
    /// A copy: the stage that makes `{ copy }` of a source.
    Copy { stage: Value<'static>, frozen: bool, when_deleted: WhenDeleted },
    /// From the document itself.
    Expression { stages: Array<'static> },
    /// Why there is no code.
    Unwritten(&'static str),
}

/// How code keeps a field of the documents of computed keys.
#[derive(Clone, Debug)]
pub struct KeyedRecipe {
    /// The keys of a child as a list, an expression.
    pub keys: Value<'static>,
    /// Stages that give each child its key, or a row for each of its keys …
    pub keyed: Array<'static>,
    /// … at this path.
    pub key: String,
    /// Behind a `$match` on the key, as in [`Recipe::Evaluate`].
    pub stages: Array<'static>,
    pub set: Vec<(String, &'static str)>,
    pub empty: Doc<'static>,
    /// A document comes with its first child and goes with its last.
    pub create: bool,
}

/// How code keeps a collection in another form, in one language.
#[derive(Clone, Debug)]
pub struct ShapeCode {
    /// Functions that all collections of this form use.
    pub helpers: String,
    /// The names of the functions in `text`; the first creates what is stored.
    pub functions: Vec<String>,
    pub text: String,
}
