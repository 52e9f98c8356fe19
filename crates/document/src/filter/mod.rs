//! Query filters: parsed once to a tree of [`Node`]s, matched against raw bytes.
//!
//! A family of operators is one file; each operator is a constant [`FilterDef`] listed in [`FILTERS`]. What a parser
//! makes of a document is in [`parse`], how paths are walked in [`walk`], how a tree is matched in [`matching`].

mod array;
mod bits;
mod compare;
mod element;
mod evaluation;
mod failure;
mod logical;
mod matching;
mod node;
mod number;
mod parse;
mod reads;
mod refused;
mod regex;
mod remainder;
mod schema;
mod text;
mod types;
mod walk;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

pub use failure::failure_details;
pub use node::{FilterExpr, InSet, LeafTest, Node, Test, WholeTest};
pub use parse::{FilterOperator, FilterParser};
pub use regex::{Finder, Regex, RegexMatch};
pub use types::TypeSet;
pub use walk::{Leaves, walk};

use crate::env::Env;
use crate::error::Result;
use crate::pipeline::expr::Names;
use crate::raw::Doc;

/// A compiled filter and the document it came from.
#[derive(Clone, Debug)]
pub struct Filter {
    pub root: Node,
    /// As the client wrote it, for `explain`, for views and for a backend that is a real MongoDB.
    pub source: Doc<'static>,
    /// How a real MongoDB is to compare text. Matching here knows only the simple way: a caller that needs another one is refused
    /// before, or asks the server.
    pub collation: Option<Doc<'static>>,
}

/// What a match learned on the way: the array index that positional operators use.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub array_index: Option<usize>,
    /// The score of a text search; matching itself does not fill it.
    pub text_score: Option<f64>,
}

/// One entry of the registry.
pub struct FilterDef {
    pub name: &'static str,
    pub help: &'static str,
    pub parse: FilterPlace,
}

/// Where an operator may stand, and how its argument is read there.
#[derive(Clone, Copy)]
pub enum FilterPlace {
    /// In the place of a field name: `{ $or: … }`.
    Document(fn(&crate::Value<'_>, &mut FilterParser<'_>) -> Result<Node>),
    /// Under a field: `{ a: { $gt: … } }`. `None` if a neighbour takes care of it (`$options`).
    Field(fn(&FilterOperator<'_>, &mut FilterParser<'_>) -> Result<Option<Test>>),
}

/// All filter operators, sorted by name.
pub const FILTERS: &[&FilterDef] = &[
    &array::ALL,
    &evaluation::ALWAYS_FALSE,
    &evaluation::ALWAYS_TRUE,
    &logical::AND,
    &bits::ALL_CLEAR,
    &bits::ALL_SET,
    &bits::ANY_CLEAR,
    &bits::ANY_SET,
    &evaluation::COMMENT,
    &array::ELEM_MATCH,
    &compare::EQ,
    &element::EXISTS,
    &evaluation::EXPR,
    &refused::GEO_INTERSECTS,
    &refused::GEO_NEAR,
    &refused::GEO_WITHIN,
    &compare::GT,
    &compare::GTE,
    &compare::IN,
    &schema::JSON_SCHEMA,
    &compare::LT,
    &compare::LTE,
    &remainder::MOD,
    &compare::NE,
    &refused::NEAR,
    &refused::NEAR_SPHERE,
    &compare::NIN,
    &logical::NOR,
    &logical::NOT,
    &regex::OPTIONS,
    &logical::OR,
    &regex::REGEX,
    &evaluation::SAMPLE_RATE,
    &array::SIZE,
    &text::TEXT,
    &element::TYPE,
    &refused::WHERE,
    &refused::WITHIN,
];

impl Filter {
    pub fn parse(source: &Doc<'_>, names: &mut Names) -> Result<Filter> {
        // Owned first: the values in the tree then share the source's bytes.
        let source = source.clone().into_owned();
        let root = FilterParser::new(names).document(&source)?.sorted();
        Ok(Filter { root, source, collation: None })
    }

    /// The filter that matches everything.
    pub fn all() -> Filter {
        Filter { root: Node::And(Vec::new()), source: Doc::empty(), collation: None }
    }

    /// The filter `{ path: { $eq: value } }`, whatever the value is.
    pub fn equality(path: &str, value: &crate::Value<'_>) -> Filter {
        Filter::from_node(Node::equality(path, value))
    }

    /// The documents whose value at that path is one of these.
    pub fn among(path: &str, values: Vec<crate::Value<'static>>) -> Filter {
        Filter::from_node(Node::field(path, Test::among(values)))
    }

    /// A filter made by a program; `source` is the node written as a query.
    pub fn from_node(root: Node) -> Filter {
        let source = root.to_query();
        Filter { root, source, collation: None }
    }

    /// The same filter, to be matched as the collation says.
    pub fn collated(self, collation: Option<Doc<'static>>) -> Filter {
        Filter { collation, ..self }
    }

    /// Both filters at once; of their collations the first.
    pub fn and(self, other: Filter) -> Filter {
        let collation = self.collation.clone().or_else(|| other.collation.clone());
        if self.is_all() {
            return other.collated(collation);
        }
        if other.is_all() {
            return self.collated(collation);
        }
        let mut source = crate::DocWriter::new();
        let both: crate::Array<'static> =
            [&self.source, &other.source].into_iter().map(|s| crate::Value::Document(s.borrow())).collect();
        source.append("$and", &crate::Value::Array(both));
        Filter { root: Node::all_of([self.root, other.root]).sorted(), source: source.finish(), collation }
    }

    /// Whether it plainly matches everything.
    pub fn is_all(&self) -> bool {
        matches!(&self.root, Node::And(nodes) if nodes.is_empty())
    }

    /// Whether it plainly matches nothing.
    pub fn is_none(&self) -> bool {
        let is_all = |node: &Node| matches!(node, Node::And(nodes) if nodes.is_empty());
        match &self.root {
            Node::Or(nodes) => nodes.is_empty(),
            Node::Nor(nodes) => nodes.iter().any(is_all),
            _ => false,
        }
    }

    pub fn matches(&self, doc: &Doc<'_>, env: &Env) -> Result<bool> {
        self.root.matches(&doc.borrow(), env, None)
    }

    /// As [`Filter::matches`], also telling which array element matched.
    pub fn matches_with(&self, doc: &Doc<'_>, env: &Env, details: &mut Details) -> Result<bool> {
        self.root.matches(&doc.borrow(), env, Some(details))
    }
}
