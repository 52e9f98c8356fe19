//! Query filters: parsed once to a tree of [`Node`]s, matched against raw bytes.
//!
//! A family of operators is one file; each operator is a constant [`FilterDef`] listed in [`FILTERS`].

use crate::env::Env;
use crate::error::{Error, Result};
use crate::pipeline::expr::{Expr, Names};
use crate::raw::Doc;
use crate::value::{Path, Value};
use std::sync::Arc;

/// A compiled filter and the document it came from.
#[derive(Clone, Debug)]
pub struct Filter {
    pub root: Node,
    /// As the client wrote it, for `explain`, for views and for a backend that is a real MongoDB.
    pub source: Doc<'static>,
}

#[derive(Clone, Debug)]
pub enum Node {
    /// Matches everything (an empty And) …
    And(Vec<Node>),
    /// … or nothing (an empty Or).
    Or(Vec<Node>),
    Nor(Vec<Node>),
    Field {
        path: Path,
        test: Test,
    },
    Expr(Arc<Expr>),
    /// `$jsonSchema`, `$alwaysFalse` and the like: a test of the whole document.
    Whole(Arc<dyn WholeTest>),
}

/// What a path is tested for. Negative operators are `Not` of the positive one: `$ne` is `Not(Eq)`.
#[derive(Clone, Debug)]
pub enum Test {
    Eq(Value<'static>),
    Lt(Value<'static>),
    Lte(Value<'static>),
    Gt(Value<'static>),
    Gte(Value<'static>),
    In(Arc<InSet>),
    Exists,
    All(Vec<Test>),
    Not(Box<Test>),
    /// `$elemMatch` with field conditions.
    ElemMatch(Box<Node>),
    /// `$elemMatch` with operators on the element itself.
    ElemMatchValue(Vec<Test>),
    Size(i64),
    /// `$regex`, `$mod`, `$type`, `$bits…`: a test of a value or of each element of an array.
    Leaf(Arc<dyn LeafTest>),
}

/// The values of an `$in`: sorted by [`crate::value::order`], regexes apart.
#[derive(Clone, Debug, Default)]
pub struct InSet {
    pub values: Vec<Value<'static>>,
    pub regexes: Vec<Arc<dyn LeafTest>>,
}

/// A test of one value that no index bound is made from, except a literal prefix.
pub trait LeafTest: std::fmt::Debug + Send + Sync {
    fn matches(&self, value: &Value<'_>) -> Result<bool>;
    /// `$type` looks at a whole array too, most others only at scalars and elements.
    fn wants_whole_array(&self) -> bool {
        false
    }
    /// The literal that every matching string begins with (`^abc`), for index bounds; and whether that is the whole test.
    fn prefix(&self) -> Option<(&str, bool)> {
        None
    }
}

/// A test of the whole document.
pub trait WholeTest: std::fmt::Debug + Send + Sync {
    fn matches(&self, doc: &Doc<'_>, env: &Env) -> Result<bool>;
}

/// What a match learned on the way: the array index that positional operators use.
#[derive(Clone, Debug, Default)]
pub struct Details {
    pub array_index: Option<usize>,
}

/// One entry of the registry.
pub struct FilterDef {
    pub name: &'static str,
    pub help: &'static str,
}

impl Filter {
    pub fn parse(_source: &Doc<'_>, _names: &mut Names) -> Result<Filter> {
        Err(Error::not_implemented("filter"))
    }

    /// The filter that matches everything.
    pub fn all() -> Filter {
        Filter { root: Node::And(Vec::new()), source: Doc::empty() }
    }

    pub fn matches(&self, _doc: &Doc<'_>, _env: &Env) -> Result<bool> {
        Err(Error::not_implemented("filter"))
    }

    /// As [`Filter::matches`], also telling which array element matched.
    pub fn matches_with(&self, _doc: &Doc<'_>, _env: &Env, _details: &mut Details) -> Result<bool> {
        Err(Error::not_implemented("filter"))
    }
}
