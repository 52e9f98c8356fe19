//! What a declaration lowers to: rules as data, and the traits of what they keep. Nothing here executes.

pub mod constraint;
pub mod fate;
pub mod fence;
pub mod field;
pub mod items;
pub mod key;
pub mod key_expression;
#[cfg(test)]
mod key_tests;
pub mod lens;
pub mod life_shape;
pub mod link;
pub mod link_key;
pub mod names;
pub mod needs;
pub mod numbers;
pub mod obstacle;
pub mod order;
pub mod outlier;
pub mod owned;
pub(crate) mod owners;
pub(crate) mod partial_filter;
pub mod read;
pub mod recipe;
pub mod registry;
pub mod seek;
pub mod shape;
pub mod stack;
pub mod state;
pub mod undecided;

pub use constraint::{Constraint, Violation};
pub use fate::Fate;
pub use field::{
    Delta, Effect, Effects, Fences, Fetch, Field, HostField, Inquiry, Lookup, Question, Reads, Rows, Wanted,
};
pub use items::{Item, Items};
pub use key_expression::KeyExpression;
pub use lens::Lens;
pub use life_shape::{ChangedField, Flaw, LifeShape, Losses, Unserved};
pub use link::{Link, Refers, WhenChanged, WhenDeleted};
pub use link_key::{KeyPath, LinkKey};
pub use needs::{IndexNeed, Needs, ViewNeed};
pub use obstacle::Obstacle;
pub use outlier::Outlier;
pub use recipe::{KeyedRecipe, Recipe, ShapeCode};
pub use registry::RegistryEntry;
pub use stack::Stack;
pub use state::State;

use crate::rule::shape::Shape;
use document::Doc;
use document::op::Namespace;
use document::value::Path;
use std::sync::Arc;

/// One declared rule, lowered.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `products.avgRating`: what plans, audits, errors, metrics and `drop` call it.
    pub name: Arc<str>,
    /// The pattern's name in the declaration: `extended_reference`, `computed`.
    pub pattern: &'static str,
    pub host: Namespace,
    /// The dotted path of the host that the rule owns, as declared.
    pub field: Path,
    /// An array of the host whose items become documents of the source (`lift`); it may be the field itself.
    pub lift: Option<Path>,
    pub kind: Kind,
    pub client_writes: ClientWrites,
    /// A declaration of this rule alone, normalised: what the catalog keeps ([`crate::declare::from_catalog`] gives the rule
    /// again) and what two versions of a rule are compared by.
    pub declaration: Doc<'static>,
}

/// What a rule keeps true.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A field of each host.
    Field(Arc<dyn Field>),
    /// The form in which a whole collection is stored.
    Shape(Arc<dyn Shape>),
    /// What documents of a collection must be like.
    Constraint(Arc<dyn Constraint>),
    /// An array of each host that may overflow.
    Outlier(Arc<Outlier>),
    /// Several versions of documents in one collection.
    Lens(Arc<Lens>),
}

/// What happens to a client's write to an owned field (SEMANTICS R11).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientWrites {
    /// Operators that name it are refused; a value inside a whole document is overridden.
    #[default]
    Override,
    /// A differing value is refused too.
    Refuse,
    /// Operators are dropped silently too.
    Ignore,
}

impl Rule {
    /// The field that the rule keeps; `None` if it is about a whole collection.
    pub fn kept_field(&self) -> Option<&Arc<dyn Field>> {
        match &self.kind {
            Kind::Field(field) => Some(field),
            Kind::Shape(_) | Kind::Constraint(_) | Kind::Outlier(_) | Kind::Lens(_) => None,
        }
    }

    /// The form in which the rule stores its collection; `None` if it is stored as it is.
    pub fn shape(&self) -> Option<&Arc<dyn Shape>> {
        match &self.kind {
            Kind::Shape(shape) => Some(shape),
            Kind::Field(_) | Kind::Constraint(_) | Kind::Outlier(_) | Kind::Lens(_) => None,
        }
    }

    /// The array that may overflow; `None` if the rule keeps something else.
    pub fn outlier(&self) -> Option<&Arc<Outlier>> {
        match &self.kind {
            Kind::Outlier(outlier) => Some(outlier),
            Kind::Field(_) | Kind::Shape(_) | Kind::Constraint(_) | Kind::Lens(_) => None,
        }
    }

    /// What tells versions of the collection's documents apart; `None` if there is one.
    pub fn lens(&self) -> Option<&Arc<Lens>> {
        match &self.kind {
            Kind::Lens(lens) => Some(lens),
            Kind::Field(_) | Kind::Shape(_) | Kind::Constraint(_) | Kind::Outlier(_) => None,
        }
    }

    /// The rule with other steps between versions.
    pub(crate) fn with_lens(&self, lens: Lens) -> Rule {
        Rule { kind: Kind::Lens(Arc::new(lens)), ..self.clone() }
    }

    /// What the rule asks of documents; `None` if it keeps something in them.
    pub fn constraint(&self) -> Option<&Arc<dyn Constraint>> {
        match &self.kind {
            Kind::Constraint(constraint) => Some(constraint),
            Kind::Field(_) | Kind::Shape(_) | Kind::Outlier(_) | Kind::Lens(_) => None,
        }
    }

    /// What must be in the database beside documents.
    pub fn needs(&self) -> Needs {
        match &self.kind {
            Kind::Field(field) => field.needs(),
            Kind::Shape(shape) => shape.needs(shape.declared_place().unwrap_or(&self.host)),
            Kind::Constraint(constraint) => constraint.needs(),
            Kind::Outlier(outlier) => outlier.needs(),
            Kind::Lens(lens) => lens.needs(&self.host),
        }
    }

    /// The indexes that it needs; those on the items of an array, which one of these rules divides, on where the items are.
    pub fn needed_indexes<'r>(&self, rules: impl Iterator<Item = &'r Rule> + Clone) -> Vec<IndexNeed> {
        let of_need = |need: IndexNeed| {
            let mut arrays = rules.clone().filter_map(|rule| rule.outlier());
            match arrays.find(|outlier| outlier.items() == need.ns) {
                Some(outlier) => outlier.stored_indexes(&need),
                None => vec![need],
            }
        };
        self.needs().indexes.into_iter().flat_map(of_need).collect()
    }

    /// Whether the array whose items become documents is the field that shows the first of them.
    pub fn lifts_own_field(&self) -> bool {
        self.lift.as_ref() == Some(&self.field)
    }

    /// The link between two collections that the rule keeps a field by.
    pub fn link(&self) -> Option<&Link> {
        self.kept_field().and_then(|field| field.link())
    }

    /// The collections that the rule reads or writes: its own first.
    pub fn namespaces(&self) -> Vec<&Namespace> {
        let stored = || self.shape().and_then(|shape| shape.declared_place());
        let overflow = || self.outlier().map(|outlier| &outlier.overflow);
        let other = self.link().map(|link| &link.source).or_else(stored).or_else(overflow);
        std::iter::once(&self.host).chain(other).collect()
    }
}
