//! What an update operator does at one place of a document, and what it may know about that place.

use crate::env::Env;
use crate::error::Result;
use crate::raw::Doc;
use crate::value::{Value, show};
use smallvec::SmallVec;
use std::fmt::Debug;

/// An operator with its argument, compiled.
pub(super) trait Operation: Debug + Send + Sync {
    /// What becomes of a value that is there.
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>>;

    /// The value where there is none yet; `None` if the operator creates nothing.
    fn create(&self, site: &Site<'_>) -> Result<Option<Value<'_>>>;

    /// What it means that the path cannot be followed: a scalar stands in the way.
    fn when_blocked(&self) -> Blocked {
        Blocked::CannotCreate
    }

    /// `$setOnInsert`: does nothing to a document that exists.
    fn only_on_insert(&self) -> bool {
        false
    }
}

pub(super) enum Change<'v> {
    Keep,
    /// Takes the field away; an array element becomes null.
    Remove,
    /// No change if the bytes are the same.
    Set(Value<'v>),
    /// A change even if the bytes are the same.
    Rewrite(Value<'v>),
    /// Further elements at the end of an array.
    Append(SmallVec<[Value<'v>; 2]>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Blocked {
    CannotCreate,
    CannotTraverse,
    Ignored,
}

/// One step from the root to a place; linked, so that walking allocates nothing.
#[derive(Clone, Copy)]
pub(super) struct Trail<'t> {
    pub(super) parent: Option<&'t Trail<'t>>,
    pub(super) name: &'t str,
    /// Whether the parent is an array.
    pub(super) in_array: bool,
}

impl Trail<'_> {
    pub(super) fn path(&self) -> String {
        match self.parent {
            Some(parent) => format!("{}.{}", parent.path(), self.name),
            None => self.name.to_owned(),
        }
    }

    pub(super) fn first(&self) -> &str {
        self.parent.map_or(self.name, Trail::first)
    }

    /// The name of the outermost array on the way.
    pub(super) fn array_on_the_way(&self) -> Option<&str> {
        let above = self.parent.and_then(Trail::array_on_the_way);
        above.or_else(|| self.parent.filter(|_| self.in_array).map(|parent| parent.name))
    }
}

/// Where an operator is at work.
pub(super) struct Site<'s> {
    pub(super) env: &'s Env,
    /// The document before the update.
    pub(super) document: &'s Doc<'s>,
    pub(super) trail: &'s Trail<'s>,
}

impl Site<'_> {
    /// The document's `_id` for messages: `_id: 1`.
    pub(super) fn id(&self) -> String {
        id_text(self.document)
    }

    /// The same in braces; MongoDB has words for a document without one.
    pub(super) fn id_in_braces(&self) -> String {
        match self.document.contains("_id") {
            true => format!("{{{}}}", self.id()),
            false => "{no id}".to_owned(),
        }
    }
}

pub(super) fn id_text(document: &Doc<'_>) -> String {
    match document.borrow().get("_id") {
        Some(id) => format!("_id: {}", show::element(&id)),
        None => "EOO".to_owned(),
    }
}
