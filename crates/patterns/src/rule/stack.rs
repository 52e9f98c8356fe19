//! The places of a logical collection that is stored in another form. There are two while it is brought into another shape: every
//! logical document is in exactly one of them.

use crate::rule::Rule;
use crate::rule::shape::{Place, Shape};
use document::op::Namespace;
use std::sync::Arc;
use std::time::Instant;

/// A logical collection whose documents are stored in some other form.
#[derive(Clone, Debug)]
pub struct Stack {
    pub rule: Arc<Rule>,
    /// What clients call it.
    pub logical: Namespace,
    /// Where its documents are. New ones go to the first.
    pub places: Vec<Place>,
    /// Since when they are there, as far as this process knows.
    pub since: Instant,
    /// Whether fields of other collections are kept from its logical documents: then every write says how these change.
    pub is_source: bool,
}

impl Stack {
    /// Whether it is only to be read: all items of an array, which are written through the array.
    pub fn is_virtual(&self) -> bool {
        self.rule.outlier().is_some()
    }

    /// The form that new documents take, or took before.
    pub fn shape(&self) -> Option<&Arc<dyn Shape>> {
        let shapes = self.places.iter().map(|place| &place.shape);
        shapes.clone().find(|shape| !shape.is_plain()).or_else(|| shapes.clone().next())
    }

    /// The only place, if there is one.
    pub fn only_place(&self) -> Option<&Place> {
        match self.places.as_slice() {
            [place] => Some(place),
            _ => None,
        }
    }

    pub fn place(&self, stored: &Namespace) -> Option<&Place> {
        self.places.iter().find(|place| place.stored == *stored)
    }
}
