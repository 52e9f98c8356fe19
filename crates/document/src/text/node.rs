//! `$text` in a filter: first as it was written, then bound to the index that answers it.

use super::{Search, TextQuery, TextSpec};
use crate::code::Code;
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::{Filter, Node, WholeTest};
use crate::raw::{Doc, DocWriter};
use std::sync::Arc;

/// A `$text`.
#[derive(Clone, Debug)]
pub struct TextNode {
    pub search: Search,
    bound: Option<Bound>,
}

#[derive(Clone, Debug)]
struct Bound {
    spec: Arc<TextSpec>,
    query: Arc<TextQuery>,
}

impl TextNode {
    pub(crate) fn new(search: Search) -> TextNode {
        TextNode { search, bound: None }
    }

    /// What it asks for, if it is bound.
    pub fn query(&self) -> Option<(&Arc<TextQuery>, &Arc<TextSpec>)> {
        self.bound.as_ref().map(|bound| (&bound.query, &bound.spec))
    }

    /// The language as `explain` names it.
    pub fn language(&self) -> &str {
        let of_index = || self.bound.as_ref().map_or("", |bound| bound.query.language.name());
        self.search.language.as_deref().unwrap_or_else(of_index)
    }
}

impl WholeTest for TextNode {
    fn matches(&self, doc: &Doc<'_>, _: &Env) -> Result<bool> {
        match &self.bound {
            Some(bound) => bound.query.matches(&bound.spec, doc),
            None => Err(index_required("")),
        }
    }

    fn write(&self, query: &mut DocWriter) {
        let language = self.bound.as_ref().map(|bound| bound.query.language.name());
        self.search.write(language, query);
    }

    fn text(&self) -> Option<&TextNode> {
        Some(self)
    }
}

/// The error of a search without an index; `why` is behind it.
pub fn index_required(why: &str) -> Error {
    Error::new(Code::IndexNotFound, format!("text index required for $text query{why}"))
}

impl Node {
    /// The `$text` that this node is.
    pub fn text(&self) -> Option<&TextNode> {
        match self {
            Node::Whole(test) => test.text(),
            _ => None,
        }
    }

    /// Whether it has a `$text` in it.
    pub fn has_text(&self) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(Node::has_text),
            Node::Whole(test) => test.text().is_some(),
            Node::Field { .. } | Node::Expr(_) => false,
        }
    }

    fn count_text(&self, negated: bool) -> Result<usize> {
        let sum = |nodes: &[Node], negated| nodes.iter().map(|node| node.count_text(negated)).sum::<Result<usize>>();
        match self {
            Node::And(nodes) | Node::Or(nodes) => sum(nodes, negated),
            Node::Nor(nodes) => sum(nodes, true),
            node => match (node.text(), negated) {
                (None, _) => Ok(0),
                (Some(_), false) => Ok(1),
                (Some(_), true) => Err(Error::bad_value("text expression not allowed in nor")),
            },
        }
    }

    fn bound_to(&self, spec: &Arc<TextSpec>) -> Result<Node> {
        let each = |nodes: &[Node]| nodes.iter().map(|node| node.bound_to(spec)).collect::<Result<Vec<Node>>>();
        Ok(match self {
            Node::And(nodes) => Node::And(each(nodes)?),
            Node::Or(nodes) => Node::Or(each(nodes)?),
            Node::Nor(nodes) => Node::Nor(each(nodes)?),
            node => match node.text() {
                None => node.clone(),
                Some(text) => {
                    let query = Arc::new(TextQuery::new(&text.search, spec)?);
                    let bound = Some(Bound { spec: spec.clone(), query });
                    Node::Whole(Arc::new(TextNode { search: text.search.clone(), bound }))
                }
            },
        })
    }
}

impl Filter {
    /// Whether it searches by `$text`.
    pub fn has_text(&self) -> bool {
        self.root.has_text()
    }

    /// The filter where no index can answer it: `$text` is refused.
    pub fn without_text(self) -> Result<Filter> {
        self.check_no_text().map(|()| self)
    }

    pub(crate) fn check_no_text(&self) -> Result<()> {
        if self.has_text() { Err(Error::bad_value("$text is not allowed in this context")) } else { Ok(()) }
    }

    /// The filter with its `$text` bound to an index: there may be one of them, and not in a `$nor`.
    pub fn bound_to(&self, spec: &Arc<TextSpec>) -> Result<Filter> {
        let root = self.root.bound_to(spec)?;
        match root.count_text(false)? {
            0 | 1 => Ok(Filter { root, ..self.clone() }),
            _ => Err(Error::bad_value("Too many text expressions")),
        }
    }
}
