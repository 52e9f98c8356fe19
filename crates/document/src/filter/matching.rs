//! Matching a tree against a document, and a test against one value.

use super::{Details, Leaves, Node, Test, walk};
use crate::env::Env;
use crate::error::Result;
use crate::pipeline::expr::Scope;
use crate::raw::{Array, Doc};
use crate::value::path::Part;
use crate::value::{Value, order};
use std::cmp::Ordering;

impl Node {
    /// `details` is filled by what is required; alternatives and negations tell nothing about array elements.
    pub fn matches(&self, doc: &Doc<'_>, env: &Env, mut details: Option<&mut Details>) -> Result<bool> {
        match self {
            Node::Field { path, test } => test.matches_path(doc, &path.parts, env, details),
            Node::And(nodes) => {
                for node in nodes {
                    if !node.matches(doc, env, details.as_deref_mut())? {
                        if let Some(details) = details {
                            details.array_index = None;
                        }
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Node::Or(nodes) => any(nodes, doc, env),
            Node::Nor(nodes) => Ok(!any(nodes, doc, env)?),
            Node::Expr(expr) => Ok(expr.eval(&mut Scope::new(doc.borrow(), env))?.is_truthy()),
            Node::Whole(test) => test.matches(doc, env),
        }
    }
}

fn any(nodes: &[Node], doc: &Doc<'_>, env: &Env) -> Result<bool> {
    for node in nodes {
        if node.matches(doc, env, None)? {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Test {
    fn matches_path(
        &self,
        doc: &Doc<'_>,
        parts: &[Part],
        env: &Env,
        mut details: Option<&mut Details>,
    ) -> Result<bool> {
        match self {
            Test::Not(test) => return Ok(!test.matches_path(doc, parts, env, None)?),
            Test::All(tests) => {
                for test in tests {
                    if !test.matches_path(doc, parts, env, details.as_deref_mut())? {
                        if let Some(details) = details {
                            details.array_index = None;
                        }
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            _ => {}
        }
        walk(doc, parts, self.leaves(), &mut |value, index| {
            let Some(element) = self.finds(value, env)? else { return Ok(false) };
            if let Some(details) = details.as_deref_mut()
                && let Some(index) = index.or(element)
            {
                details.array_index = Some(index);
            }
            Ok(true)
        })
    }

    /// Tests about the array as such do not look at its elements one by one.
    fn leaves(&self) -> Leaves {
        match self {
            Test::ElemMatch(_) | Test::ElemMatchValue(_) | Test::Size(_) => Leaves::ArrayOnly,
            _ => Leaves::ElementsAndArray,
        }
    }

    /// As [`Test::matches_value`]; says which element an `$elemMatch` found.
    fn finds(&self, value: &Value<'_>, env: &Env) -> Result<Option<Option<usize>>> {
        match (self, value) {
            (Test::ElemMatch(_) | Test::ElemMatchValue(_), Value::Array(items)) => {
                Ok(self.element_of(items, env)?.map(|(index, _)| Some(index)))
            }
            _ => Ok(self.matches_value(value, env)?.then_some(None)),
        }
    }

    /// The first element of `items` that an `$elemMatch` test accepts.
    pub fn element_of<'a>(&self, items: &Array<'a>, env: &Env) -> Result<Option<(usize, Value<'a>)>> {
        for (index, item) in items.iter().enumerate() {
            let found = match (self, &item) {
                (Test::ElemMatch(node), Value::Document(inner)) => node.matches(inner, env, None)?,
                // An array is a document whose fields are its indexes.
                (Test::ElemMatch(node), Value::Array(inner)) => {
                    node.matches(&Doc::trusted(inner.as_bytes()), env, None)?
                }
                (Test::ElemMatchValue(tests), item) => all_accept(tests, item, env)?,
                _ => false,
            };
            if found {
                return Ok(Some((index, item)));
            }
        }
        Ok(None)
    }

    /// Whether this one value passes, arrays taken whole. A missing value is [`Value::Missing`].
    pub fn matches_value(&self, value: &Value<'_>, env: &Env) -> Result<bool> {
        match self {
            Test::Eq(operand) => Ok(compares(value, operand, Relation::Eq)),
            Test::Lt(operand) => Ok(compares(value, operand, Relation::Lt)),
            Test::Lte(operand) => Ok(compares(value, operand, Relation::Lte)),
            Test::Gt(operand) => Ok(compares(value, operand, Relation::Gt)),
            Test::Gte(operand) => Ok(compares(value, operand, Relation::Gte)),
            Test::In(set) => {
                if set.contains(value) {
                    return Ok(true);
                }
                for regex in &set.regexes {
                    if regex.matches(value)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Exists => Ok(!value.is_missing()),
            Test::All(tests) => all_accept(tests, value, env),
            Test::Not(test) => Ok(!test.matches_value(value, env)?),
            Test::ElemMatch(_) | Test::ElemMatchValue(_) => match value {
                Value::Array(items) => Ok(self.element_of(items, env)?.is_some()),
                _ => Ok(false),
            },
            Test::Size(size) => match value {
                Value::Array(items) => Ok(i64::try_from(items.count()).is_ok_and(|count| count == *size)),
                _ => Ok(false),
            },
            Test::Leaf(leaf) => leaf.matches(value),
        }
    }
}

fn all_accept(tests: &[Test], value: &Value<'_>, env: &Env) -> Result<bool> {
    for test in tests {
        if !test.matches_value(value, env)? {
            return Ok(false);
        }
    }
    Ok(true)
}

#[derive(Clone, Copy, PartialEq)]
enum Relation {
    Eq,
    Lt,
    Lte,
    Gt,
    Gte,
}

/// Comparisons hold only within one type of the order; null stands for missing too; MinKey and MaxKey are beside every
/// other type; NaN equals NaN and is neither above nor below anything.
fn compares(value: &Value<'_>, operand: &Value<'_>, relation: Relation) -> bool {
    use Relation::{Eq, Gt, Gte, Lt, Lte};
    if order::rank(value) != order::rank(operand) {
        return match operand {
            Value::Null => value.is_nullish() && matches!(relation, Eq | Lte | Gte),
            Value::MinKey => matches!(relation, Gt | Gte),
            Value::MaxKey => matches!(relation, Lt | Lte),
            _ => false,
        };
    }
    if is_nan(value) || is_nan(operand) {
        return matches!(relation, Eq | Lte | Gte) && is_nan(value) && is_nan(operand);
    }
    let order = order::compare(value, operand);
    match relation {
        Eq => order == Ordering::Equal,
        Lt => order == Ordering::Less,
        Lte => order != Ordering::Greater,
        Gt => order == Ordering::Greater,
        Gte => order != Ordering::Less,
    }
}

fn is_nan(value: &Value<'_>) -> bool {
    match value {
        Value::Double(number) => number.is_nan(),
        Value::Decimal(number) => number.is_nan(),
        _ => false,
    }
}
