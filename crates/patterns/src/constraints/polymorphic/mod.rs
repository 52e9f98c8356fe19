//! Documents of several kinds in one collection: a discriminator says which kind a document is of, and each kind has required fields,
//! a JSON Schema and indexes of its own.
//!
//! Before: `{ title: "Emma", isbn: "9" }` beside `{ title: "Radio", brand: "Acme" }`, and code that guesses which is which.
//! After: `{ type: "book", … }` and `{ type: "electronics", … }`; a book without an `isbn` is refused with 121.

mod contradictions;
mod open;
pub(crate) mod registered;
mod validator;
mod violations;

#[cfg(test)]
mod tests;

use crate::mql;
use crate::rule::needs::Direction;
use crate::rule::{Constraint, IndexNeed, Needs, Violation};
use document::filter::Filter;
use document::op::Namespace;
use document::value::Path;
use document::{Doc, Env, Result, Value};
use std::sync::Arc;

pub(crate) use open::{declared_names, opened};

/// What is declared, with the common parts of kinds put into each kind.
#[derive(Clone, Debug)]
pub struct Polymorphic {
    pub rule: Arc<str>,
    pub host: Namespace,
    pub discriminator: Path,
    pub kinds: Vec<DocumentKind>,
    pub unknown: UnknownKinds,
    /// Indexes of all documents, whatever their kind.
    pub indexes: Vec<KindIndex>,
    /// The weights of the fields of a text index; none if empty.
    pub text: Vec<(Path, i32)>,
}

#[derive(Clone, Debug)]
pub struct DocumentKind {
    /// The value of the discriminator.
    pub name: String,
    pub required: Vec<Path>,
    /// A JSON Schema as MongoDB has it.
    pub schema: Option<Doc<'static>>,
    /// Of documents of this kind alone.
    pub indexes: Vec<KindIndex>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct KindIndex {
    pub keys: Vec<(Path, Direction)>,
    pub unique: bool,
}

/// What becomes of documents whose discriminator names no declared kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownKinds {
    #[default]
    Reject,
    Accept,
}

impl Polymorphic {
    fn kind(&self, name: &str) -> Option<&DocumentKind> {
        self.kinds.iter().find(|kind| kind.name == name)
    }

    /// `book, electronics, clothing`
    fn names(&self) -> String {
        self.kinds.iter().map(|kind| &*kind.name).collect::<Vec<_>>().join(", ")
    }

    fn index(&self, index: &KindIndex, kind: Option<&DocumentKind>) -> IndexNeed {
        let of_kind =
            |kind: &DocumentKind| mql::document([(&*self.discriminator.dotted(), Value::string(kind.name.clone()))]);
        IndexNeed {
            keys: index.keys.clone(),
            unique: index.unique,
            partial: kind.map(of_kind),
            ..IndexNeed::lookup(&self.host, [])
        }
    }
}

impl Constraint for Polymorphic {
    fn describe(&self) -> String {
        let others = match self.unknown {
            UnknownKinds::Reject => "",
            UnknownKinds::Accept => " and others",
        };
        format!("kinds {}{others}, told apart by {}", self.names(), self.discriminator)
    }

    fn needs(&self) -> Needs {
        let shared = self.indexes.iter().map(|index| self.index(index, None));
        let own = self.kinds.iter().flat_map(|kind| kind.indexes.iter().map(|index| self.index(index, Some(kind))));
        let text = (!self.text.is_empty()).then(|| IndexNeed::text(&self.host, self.text.clone()));
        Needs { indexes: shared.chain(own).chain(text).collect(), ..Needs::default() }
    }

    fn validator(&self, kept: &[Path]) -> Doc<'static> {
        validator::of(self, kept)
    }

    fn violations(&self, document: &Doc<'_>, kept: &[Path], env: &Env) -> Result<Vec<Violation>> {
        violations::of(self, document, kept, env)
    }

    fn is_about(&self, changes: &dyn Fn(&Path) -> bool) -> bool {
        let of_kind = |kind: &DocumentKind| kind.schema.is_some() || kind.required.iter().any(changes);
        changes(&self.discriminator) || self.kinds.iter().any(of_kind)
    }

    fn decisive(&self) -> Vec<Path> {
        vec![self.discriminator.clone()]
    }

    fn notes(&self, filter: &Filter) -> Vec<String> {
        contradictions::of(self, filter)
    }
}
