//! The tree a filter is parsed to, and what a planner asks of it.

use crate::env::Env;
use crate::error::Result;
use crate::pipeline::expr::Expr;
use crate::raw::{ArrayWriter, Doc, DocWriter};
use crate::text::TextNode;
use crate::value::{Path, Value, order};
use std::sync::Arc;

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
    Expr(Arc<FilterExpr>),
    /// `$jsonSchema`, `$sampleRate` and the like: a test of the whole document.
    Whole(Arc<dyn WholeTest>),
}

/// An aggregation expression that must be true, with the words that it was written in: a filter made of parts of others is sent to a
/// MongoDB.
#[derive(Clone, Debug)]
pub struct FilterExpr {
    expr: Expr,
    source: Value<'static>,
}

impl FilterExpr {
    pub(super) fn new(expr: Expr, source: Value<'static>) -> FilterExpr {
        FilterExpr { expr, source }
    }
}

impl std::ops::Deref for FilterExpr {
    type Target = Expr;

    fn deref(&self) -> &Expr {
        &self.expr
    }
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
    /// Each of them for itself: on an array, different elements may satisfy them.
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

/// The values of an `$in`: sorted by [`crate::value::order`], each once, regexes apart.
#[derive(Clone, Debug, Default)]
pub struct InSet {
    pub values: Vec<Value<'static>>,
    pub regexes: Vec<Arc<dyn LeafTest>>,
}

/// A test of one value that no index bound is made from, except a literal prefix.
pub trait LeafTest: std::fmt::Debug + Send + Sync {
    /// Called with a missing value, with each element of an array, and with the whole array.
    fn matches(&self, value: &Value<'_>) -> Result<bool>;
    /// The literal that every matching string begins with (`^abc`), for index bounds; and whether that is the whole test.
    fn prefix(&self) -> Option<(&str, bool)> {
        None
    }
    /// The place of the operator in MongoDB's order (see [`Node::sorted`]).
    fn rank(&self) -> u8;
    /// Writes the operator and its argument: `$mod: [ 4, 0 ]`.
    fn write(&self, query: &mut DocWriter);
}

/// A test of the whole document.
pub trait WholeTest: std::fmt::Debug + Send + Sync {
    fn matches(&self, doc: &Doc<'_>, env: &Env) -> Result<bool>;
    /// Writes the operator and its argument: `$jsonSchema: { … }`.
    fn write(&self, query: &mut DocWriter);
    /// Itself, if it is a `$text`, which an index answers.
    fn text(&self) -> Option<&TextNode> {
        None
    }
}

impl InSet {
    pub fn new(mut values: Vec<Value<'static>>, regexes: Vec<Arc<dyn LeafTest>>) -> InSet {
        values.sort_by(order::compare);
        values.dedup_by(|a, b| order::equal(a, b));
        InSet { values, regexes }
    }

    /// Whether one of the values equals `value`; null also stands for missing and undefined.
    pub fn contains(&self, value: &Value<'_>) -> bool {
        let wanted = if value.is_nullish() { &Value::Null } else { value };
        self.values.binary_search_by(|have| order::compare(have, wanted)).is_ok()
    }
}

impl Node {
    pub fn field(path: &str, test: Test) -> Node {
        Node::Field { path: Path::new(path), test }
    }

    pub fn equality(path: &str, value: &Value<'_>) -> Node {
        Node::field(path, Test::Eq(value.clone().into_owned()))
    }

    /// The conjunction of `nodes`, flat: one node stands for itself, inner conjunctions are opened.
    pub fn all_of(nodes: impl IntoIterator<Item = Node>) -> Node {
        let mut flat = Vec::new();
        for node in nodes {
            match node {
                Node::And(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        match flat.len() {
            1 => flat.pop().unwrap_or(Node::And(Vec::new())),
            _ => Node::And(flat),
        }
    }

    /// Puts the parts of a conjunction into MongoDB's order: by operator, then by path. It decides which array index a
    /// positional operator gets, as the last part that finds one wins.
    pub fn sorted(self) -> Node {
        match self {
            Node::And(mut nodes) => {
                nodes.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
                Node::And(nodes)
            }
            other => other,
        }
    }

    fn sort_key(&self) -> (u8, Option<&Path>) {
        match self {
            Node::And(_) => (0, None),
            Node::Or(_) => (1, None),
            Node::Field { path, test } => (test.rank(), Some(path)),
            Node::Nor(_) => (21, None),
            Node::Expr(_) | Node::Whole(_) => (u8::MAX, None),
        }
    }

    /// Calls `visit` with each node that must match for the whole to match: the parts of a conjunction, or itself.
    pub fn each_required<'n>(&'n self, visit: &mut impl FnMut(&'n Node)) {
        match self {
            Node::And(nodes) => nodes.iter().for_each(|node| node.each_required(visit)),
            other => visit(other),
        }
    }

    /// Calls `visit` with the path and test of each field that must pass for the whole to match.
    pub fn each_required_field<'n>(&'n self, visit: &mut impl FnMut(&'n Path, &'n Test)) {
        self.each_required(&mut |node| {
            if let Node::Field { path, test } = node {
                visit(path, test);
            }
        });
    }

    /// The value that the path must equal, if the filter says so plainly: `{ _id: 5 }`.
    pub fn required_equality(&self, dotted: &str) -> Option<&Value<'static>> {
        let mut found = None;
        self.each_required_field(&mut |path, test| {
            if let Test::Eq(value) = test
                && path.parts.iter().map(|part| &*part.name).eq(dotted.split('.'))
            {
                found = found.or(Some(value));
            }
        });
        found
    }

    /// Every path it reads, with repetitions; `None` if some part reads the whole document.
    pub fn reads(&self) -> Option<Vec<Path>> {
        let mut paths = Vec::new();
        self.collect_reads(&mut paths).then_some(paths)
    }

    fn collect_reads(&self, paths: &mut Vec<Path>) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().all(|node| node.collect_reads(paths)),
            Node::Field { path, .. } => {
                paths.push(path.clone());
                true
            }
            Node::Expr(expr) => match expr.reads() {
                Some(read) => {
                    paths.extend(read);
                    true
                }
                None => false,
            },
            Node::Whole(_) => false,
        }
    }

    /// Whether it asks for arrays as such, by `$elemMatch` or `$size`.
    pub(crate) fn tests_arrays(&self) -> bool {
        match self {
            Node::And(nodes) | Node::Or(nodes) | Node::Nor(nodes) => nodes.iter().any(Node::tests_arrays),
            Node::Field { test, .. } => test.tests_arrays(),
            Node::Expr(_) | Node::Whole(_) => false,
        }
    }

    /// The node written as a query document.
    pub fn to_query(&self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        self.write(&mut writer);
        writer.finish()
    }

    fn write(&self, writer: &mut DocWriter) {
        let list = |nodes: &[Node]| -> Value<'static> {
            Value::Array(nodes.iter().map(|node| Value::Document(node.to_query())).collect())
        };
        match self {
            Node::And(nodes) if nodes.is_empty() => {}
            Node::Or(nodes) if nodes.is_empty() => {
                writer.append("$alwaysFalse", &Value::Int32(1));
            }
            Node::And(nodes) => {
                writer.append("$and", &list(nodes));
            }
            Node::Or(nodes) => {
                writer.append("$or", &list(nodes));
            }
            Node::Nor(nodes) => {
                writer.append("$nor", &list(nodes));
            }
            Node::Field { path, test } => {
                writer.append(&path.dotted(), &Value::Document(test.to_query()));
            }
            Node::Expr(expr) => {
                writer.append("$expr", &expr.source);
            }
            Node::Whole(test) => test.write(writer),
        }
    }
}

impl Test {
    /// Equality with one of these values.
    pub fn among(values: Vec<Value<'static>>) -> Test {
        Test::In(Arc::new(InSet::new(values, Vec::new())))
    }

    fn tests_arrays(&self) -> bool {
        match self {
            Test::ElemMatch(_) | Test::ElemMatchValue(_) | Test::Size(_) => true,
            Test::All(tests) => tests.iter().any(Test::tests_arrays),
            Test::Not(test) => test.tests_arrays(),
            _ => false,
        }
    }

    /// The place of the operator in MongoDB's order.
    fn rank(&self) -> u8 {
        match self {
            Test::All(_) => 0,
            Test::ElemMatch(_) => 2,
            Test::ElemMatchValue(_) => 3,
            Test::Size(_) => 4,
            Test::Eq(_) => 5,
            // MongoDB makes an equality of it.
            Test::In(set) if set.values.len() == 1 && set.regexes.is_empty() => 5,
            Test::Lte(_) => 6,
            Test::Lt(_) => 7,
            Test::Gt(_) => 8,
            Test::Gte(_) => 9,
            Test::Exists => 12,
            Test::In(_) => 13,
            Test::Not(_) => 20,
            Test::Leaf(leaf) => leaf.rank(),
        }
    }

    /// The test written as an operator document: `{ $gt: 5 }`.
    pub fn to_query(&self) -> Doc<'static> {
        let mut writer = DocWriter::new();
        self.write(&mut writer);
        writer.finish()
    }

    fn write(&self, writer: &mut DocWriter) {
        match self {
            Test::Eq(value) => writer.append("$eq", value),
            Test::Lt(value) => writer.append("$lt", value),
            Test::Lte(value) => writer.append("$lte", value),
            Test::Gt(value) => writer.append("$gt", value),
            Test::Gte(value) => writer.append("$gte", value),
            Test::In(set) => {
                let mut values = ArrayWriter::new();
                for value in &set.values {
                    values.push(value);
                }
                for regex in &set.regexes {
                    let mut query = DocWriter::new();
                    regex.write(&mut query);
                    let query = query.finish();
                    values.push(&Value::Regex {
                        pattern: text(query.get("$regex")),
                        options: text(query.get("$options")),
                    });
                }
                writer.append("$in", &Value::Array(values.finish()))
            }
            Test::Exists => writer.append("$exists", &Value::Bool(true)),
            // Side by side; a name may come twice, which both sides read as two conditions.
            Test::All(tests) => {
                for test in tests {
                    test.write(writer);
                }
                writer
            }
            Test::Not(test) => writer.append("$not", &Value::Document(test.to_query())),
            Test::ElemMatch(node) => writer.append("$elemMatch", &Value::Document(node.to_query())),
            Test::ElemMatchValue(tests) => {
                writer.append("$elemMatch", &Value::Document(Test::All(tests.clone()).to_query()))
            }
            Test::Size(count) => writer.append("$size", &Value::Int64(*count)),
            Test::Leaf(leaf) => {
                leaf.write(writer);
                writer
            }
        };
    }
}

fn text(value: Option<Value<'static>>) -> crate::Text<'static> {
    match value {
        Some(Value::String(text)) => text,
        _ => crate::Text::from(String::new()),
    }
}
