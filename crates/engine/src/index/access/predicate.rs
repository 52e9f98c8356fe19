//! A filter as a list of conditions, and those of them that an index on some path can use.

use super::bounds::{self, Exactness, FieldKind};
use super::interval::{Cut, Intervals};
use document::filter::{Node, Test};
use document::pipeline::expr::Expr;
use document::value::Path;
use document::{Env, Value};

/// The conditions of a filter that must all hold, and what indexes can do with them.
#[derive(Debug)]
pub struct Conditions<'n> {
    /// The conjuncts, as the filter has them.
    pub nodes: Vec<&'n Node>,
    pub predicates: Vec<Predicate<'n>>,
}

/// A condition on one path that may give index bounds.
#[derive(Debug)]
pub struct Predicate<'n> {
    /// Which of [`Conditions::nodes`] it comes from.
    pub node: usize,
    pub path: Path,
    pub test: PathTest<'n>,
    /// For a condition inside an `$elemMatch`: how many parts of the path lead to the array. Conditions of one node
    /// with the same number are about the same element.
    pub element: Option<usize>,
    /// No element without the field passes, arrays or not.
    pub needs_field: bool,
}

#[derive(Debug)]
pub enum PathTest<'n> {
    Test(&'n Test),
    /// `$nor` of one condition.
    Not(&'n Test),
    /// `$or` of conditions on one path.
    Any(Vec<&'n Test>),
    /// A comparison with a constant in an expression: it never looks into arrays.
    Compare(Comparison, Value<'static>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

impl<'n> Conditions<'n> {
    /// `env` gives the values of variables in expressions.
    pub fn of(root: &'n Node, env: &Env) -> Conditions<'n> {
        let mut nodes = Vec::new();
        root.each_required(&mut |node| nodes.push(node));
        let mut predicates = Vec::new();
        for (at, node) in nodes.iter().enumerate() {
            collect(node, at, env, &mut predicates);
        }
        for predicate in &mut predicates {
            predicate.needs_field = predicate.rejects_missing(true, env);
        }
        predicates.retain(Predicate::fits_positions);
        Conditions { nodes, predicates }
    }
}

fn collect<'n>(node: &'n Node, at: usize, env: &Env, predicates: &mut Vec<Predicate<'n>>) {
    let mut add = |path: &Path, test, element| {
        predicates.push(Predicate { node: at, path: path.clone(), test, element, needs_field: false })
    };
    match node {
        Node::Field { path, test: Test::ElemMatch(inner) } => inside_element(path, inner, at, predicates),
        Node::Field { path, test } => add(path, PathTest::Test(test), None),
        Node::Nor(nodes) => {
            if let [Node::Field { path, test }] = nodes.as_slice() {
                add(path, PathTest::Not(test), None);
            }
        }
        Node::Or(branches) => {
            if let Some((path, tests)) = one_path(branches) {
                add(path, PathTest::Any(tests), None);
            }
        }
        Node::Expr(expr) => {
            if let Some((path, comparison, value)) = constant_comparison(expr, env) {
                add(path, PathTest::Compare(comparison, value), None);
            }
        }
        Node::And(_) | Node::Whole(_) => {}
    }
}

/// The conditions of an `$elemMatch`, each on its whole path. Those in an `$elemMatch` inside it are about another element.
fn inside_element<'n>(array: &Path, inner: &'n Node, at: usize, predicates: &mut Vec<Predicate<'n>>) {
    inner.each_required_field(&mut |path, test| {
        let parts = array.parts.iter().chain(&path.parts).cloned().collect();
        let path = Path { parts };
        match test {
            Test::ElemMatch(deeper) => inside_element(&path, deeper, at, predicates),
            test => predicates.push(Predicate {
                node: at,
                path,
                test: PathTest::Test(test),
                element: Some(array.parts.len()),
                needs_field: false,
            }),
        }
    });
}

/// The one path that all branches test, each with one condition.
fn one_path<'n>(branches: &'n [Node]) -> Option<(&'n Path, Vec<&'n Test>)> {
    let mut tests = Vec::with_capacity(branches.len());
    let mut common: Option<&'n Path> = None;
    for branch in branches {
        let Node::Field { path, test } = branch else { return None };
        if *common.get_or_insert(path) != path || matches!(test, Test::ElemMatch(_)) {
            return None;
        }
        tests.push(test);
    }
    Some((common?, tests))
}

/// `{ $eq: [ "$path", constant ] }` and its like, either way round.
fn constant_comparison<'n>(expr: &'n Expr, env: &Env) -> Option<(&'n Path, Comparison, Value<'static>)> {
    let Expr::Call { name, operands, .. } = expr else { return None };
    let comparison = match *name {
        "$eq" => Comparison::Eq,
        "$lt" => Comparison::Lt,
        "$lte" => Comparison::Lte,
        "$gt" => Comparison::Gt,
        "$gte" => Comparison::Gte,
        _ => return None,
    };
    let constant = |expr: &Expr| match expr {
        Expr::Const(value) => Some(value.clone()),
        Expr::Variable { slot, path: None } => env.variables.get(*slot).cloned(),
        _ => None,
    };
    let [left, right] = operands.as_slice() else { return None };
    let (path, comparison, value) = match (left, right) {
        (Expr::Field(path), other) => (path, comparison, constant(other)?),
        (other, Expr::Field(path)) => (path, comparison.turned(), constant(other)?),
        _ => return None,
    };
    // A missing field is below null for expressions but null in an index; arrays are compared whole.
    let unusable = value.is_nullish() || matches!(value, Value::Array(_) | Value::MinKey);
    (!unusable).then_some((path, comparison, value))
}

impl Comparison {
    fn turned(self) -> Comparison {
        match self {
            Comparison::Eq => Comparison::Eq,
            Comparison::Lt => Comparison::Gt,
            Comparison::Lte => Comparison::Gte,
            Comparison::Gt => Comparison::Lt,
            Comparison::Gte => Comparison::Lte,
        }
    }
}

impl Predicate<'_> {
    /// The entries of an index field on the same path that can pass; `None` if the index is of no use.
    pub fn bounds(&self, field: FieldKind) -> Option<(Intervals, Exactness)> {
        match &self.test {
            PathTest::Test(test) => {
                let (intervals, exactness) = bounds::of_test(test, field)?;
                Some((intervals, if self.element.is_some() { Exactness::Fetch } else { exactness }))
            }
            PathTest::Not(test) => bounds::of_negated(test, field),
            PathTest::Any(tests) => {
                let (mut all, mut exactness) = (Vec::new(), Exactness::Exact);
                for test in tests {
                    let (intervals, exact) = bounds::of_test(test, field)?;
                    all.extend_from_slice(intervals.as_slice());
                    exactness = exactness.min(exact);
                }
                Some((Intervals::new(all), exactness))
            }
            PathTest::Compare(..) if field.multikey => None,
            PathTest::Compare(comparison, value) => {
                let (least, greatest) = (Cut::before(Value::MinKey), Cut::after(Value::MaxKey));
                let intervals = match comparison {
                    Comparison::Eq => Intervals::point(value.clone()),
                    Comparison::Lt => Intervals::range(least, Cut::before(value.clone())),
                    Comparison::Lte => Intervals::range(least, Cut::after(value.clone())),
                    Comparison::Gt => Intervals::range(Cut::after(value.clone()), greatest),
                    Comparison::Gte => Intervals::range(Cut::before(value.clone()), greatest),
                };
                Some((intervals, Exactness::Fetch))
            }
        }
    }

    /// A number in a path is a position for an index but, for a filter, also a field of the elements, which they may lack; and
    /// an array found by its position is indexed whole, without entries for its elements.
    fn fits_positions(&self) -> bool {
        let by_position = self.path.parts.iter().any(|part| part.index.is_some());
        let is_inside = |test: &Test| matches!(test, Test::ElemMatchValue(_));
        let looks_inside = match &self.test {
            PathTest::Test(test) => is_inside(test) || self.element.is_some(),
            PathTest::Any(tests) => tests.iter().any(|test| is_inside(test)),
            PathTest::Not(_) | PathTest::Compare(..) => self.element.is_some(),
        };
        !by_position || (self.needs_field && !looks_inside)
    }

    /// Whether no document without the field passes: then a sparse index has all that do. `multikey` says that arrays may
    /// hide a missing field from a negation.
    pub fn rejects_missing(&self, multikey: bool, env: &Env) -> bool {
        let passes = |test: &Test| test.matches_value(&Value::Missing, env).unwrap_or(true);
        let negative = |test: &Test| matches!(test, Test::Not(_));
        match &self.test {
            PathTest::Test(test) => !(passes(test) || multikey && negative(test)),
            PathTest::Not(test) => passes(test) && !multikey,
            PathTest::Any(tests) => !tests.iter().any(|test| passes(test) || multikey && negative(test)),
            PathTest::Compare(comparison, _) => {
                matches!(comparison, Comparison::Eq | Comparison::Gt | Comparison::Gte)
            }
        }
    }

    /// The test to make on an entry's own value if the bounds are only [`Exactness::Covered`].
    pub fn key_test(&self) -> Option<Test> {
        match &self.test {
            PathTest::Test(test) => Some((*test).clone()),
            _ => None,
        }
    }
}
