//! Shapes: logical documents that are stored in another form. A shape translates between the two; it never executes.
//!
//! What clients call a collection is a view then. A [`Stack`] namespace has one or more [`Place`]s: where its documents are
//! stored. There are two while a collection is being brought into another shape: every logical document is on exactly one.

pub mod bucket;

use crate::rule::{RegistryEntry, Rule};
use bucket::Bucket;
use document::op::Namespace;
use std::sync::Arc;
use std::time::Instant;

/// All shapes but the plain one, sorted by name: what is listed is proven by all proofs and crash runs.
pub const SHAPES: &[RegistryEntry] = &[bucket::registered::ENTRY];

/// A logical collection whose documents are stored in some other form.
#[derive(Clone, Debug)]
pub struct Stack {
    pub rule: Arc<Rule>,
    /// What clients call it.
    pub logical: Namespace,
    /// Where its documents are. New ones go to the first.
    pub sides: Vec<Place>,
    /// Since when they are there, as far as this process knows.
    pub since: Instant,
    /// Whether fields of other collections are kept from its logical documents: then every write says how these change.
    pub is_source: bool,
}

impl Stack {
    /// The form that new documents take, or took before.
    pub fn bucket(&self) -> Option<&Arc<Bucket>> {
        self.sides.iter().find_map(|side| match &side.form {
            Form::Bucket(bucket) => Some(bucket),
            Form::Plain => None,
        })
    }
}

/// One place where logical documents are stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub stored: Namespace,
    pub form: Form,
}

/// In which form they are stored there.
#[derive(Clone, Debug, PartialEq)]
pub enum Form {
    /// As they are.
    Plain,
    Bucket(Arc<Bucket>),
}
