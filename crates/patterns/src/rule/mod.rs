//! What a declaration lowers to: rules as data. Nothing here executes.

pub mod fate;
pub mod fence;
pub mod key;
pub mod obstacle;
pub mod owned;
pub mod state;

pub use fate::Fate;
pub use obstacle::Obstacle;
pub use state::State;

use crate::shapes::bucket::Bucket;
use document::filter::Filter;
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Doc, Value};
use std::sync::Arc;
use std::time::Duration;

/// One declared rule, lowered.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `products.avgRating`: what plans, audits, errors, metrics and `drop` call it.
    pub name: Arc<str>,
    /// The pattern's name in the declaration: `extended_reference`, `computed`.
    pub kind: &'static str,
    pub host: Namespace,
    /// The dotted path of the host that the rule owns, as declared.
    pub field: Path,
    pub upkeep: Upkeep,
    pub client_writes: ClientWrites,
    /// A declaration of this rule alone, normalised: what the catalog keeps ([`crate::declare::from_catalog`] gives the rule
    /// again) and what two versions of a rule are compared by.
    pub declaration: Doc<'static>,
}

/// How a rule's field is kept true.
#[derive(Clone, Debug)]
pub enum Upkeep {
    Link(Link),
    Expression(Expression),
    /// Not one field: the whole collection is stored in another form.
    Bucket(Arc<Bucket>),
}

/// *Where host.local = source.foreign and the filter holds, fold, and keep the result in the host's field.*
#[derive(Clone, Debug)]
pub struct Link {
    pub local: Key,
    pub source: Namespace,
    pub foreign: Key,
    /// `where`: which documents of the source count.
    pub filter: Option<Filter>,
    pub fold: Fold,
    /// How late the host may be; nothing means in the same transaction.
    pub lag: Option<Duration>,
    pub when_changed: WhenChanged,
    pub when_deleted: WhenDeleted,
}

/// One side of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// A dotted path. Null and missing values never link.
    pub path: Path,
    /// `each: true`: an array of values at the end of the path links once per element. Arrays on the way that `by` and the kept
    /// field share (`items.product` by `items.productId`) link per element without it.
    pub each: bool,
}

/// How the linked source documents become the field's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Fold {
    /// A copy of some fields of the one source document: `(name in the copy, path in the source)`.
    One {
        fields: Vec<(Arc<str>, Path)>,
    },
    Tally(Tally),
}

/// Aggregates that a signed delta maintains.
#[derive(Clone, Debug, PartialEq)]
pub enum Tally {
    Count,
    Sum(Path),
    Avg(Path),
}

/// What a change of a copied field in the source does to the copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenChanged {
    #[default]
    Refresh,
    /// A frozen, point-in-time copy.
    Keep,
}

/// What deleting the source does to the hosts that refer to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenDeleted {
    #[default]
    Keep,
    Unset,
    Reject,
    Cascade,
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

/// A field computed from the document itself: `margin: { expr: … }`.
#[derive(Clone, Debug)]
pub struct Expression {
    /// As declared, for printing and for pipelines.
    pub source: Value<'static>,
    /// `[{ $set: { <field>: <expression> } }]`, compiled.
    pub set: Pipeline,
    /// The paths of the document that it reads.
    pub reads: Vec<Path>,
}
