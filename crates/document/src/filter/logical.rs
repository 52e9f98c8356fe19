//! `$and`, `$or`, `$nor`, `$not`.

use super::parse::{FilterOperator, FilterParser};
use super::{FilterDef, FilterPlace, Node, Test};
use crate::error::{Error, Result};
use crate::value::Value;

pub(super) const AND: FilterDef = FilterDef {
    name: "$and",
    help: "Matches documents that match every one of the given filters.",
    parse: FilterPlace::Document(|argument, parser| Ok(Node::all_of(list("$and", argument, parser)?))),
};

pub(super) const OR: FilterDef = FilterDef {
    name: "$or",
    help: "Matches documents that match at least one of the given filters.",
    parse: FilterPlace::Document(|argument, parser| Ok(any_of(list("$or", argument, parser)?))),
};

pub(super) const NOR: FilterDef = FilterDef {
    name: "$nor",
    help: "Matches documents that match none of the given filters.",
    parse: FilterPlace::Document(|argument, parser| Ok(Node::Nor(list("$nor", argument, parser)?))),
};

pub(super) const NOT: FilterDef = FilterDef {
    name: "$not",
    help: "Matches documents whose field does not pass the given operators, or is missing.",
    parse: FilterPlace::Field(not),
};

fn list(name: &str, argument: &Value<'_>, parser: &mut FilterParser<'_>) -> Result<Vec<Node>> {
    let Value::Array(filters) = argument else {
        return Err(Error::bad_value(format!("{name} must be an array")));
    };
    if filters.is_empty() {
        return Err(Error::bad_value("$and/$or/$nor must be a nonempty array"));
    }
    filters
        .iter()
        .map(|filter| match filter {
            Value::Document(filter) => parser.document(&filter),
            _ => Err(Error::bad_value("$or/$and/$nor entries need to be full objects")),
        })
        .collect()
}

/// One alternative stands for itself; equalities of one path are an `$in`, which an index can serve as one.
fn any_of(mut nodes: Vec<Node>) -> Node {
    if nodes.len() == 1 {
        return nodes.pop().unwrap_or(Node::Or(Vec::new()));
    }
    let Some(Node::Field { path: first, .. }) = nodes.first() else { return Node::Or(nodes) };
    let mut values = Vec::with_capacity(nodes.len());
    for node in &nodes {
        match node {
            // In an `$in`, a regular expression would be matched, not compared.
            Node::Field { path, test: Test::Eq(value) } if path == first && !matches!(value, Value::Regex { .. }) => {
                values.push(value.clone());
            }
            _ => return Node::Or(nodes),
        }
    }
    Node::Field { path: first.clone(), test: Test::among(values) }
}

fn not(operator: &FilterOperator<'_>, parser: &mut FilterParser<'_>) -> Result<Option<Test>> {
    let negated = match &operator.argument {
        Value::Regex { pattern, options } => Test::Leaf(super::regex::from_value(pattern, options)?),
        Value::Document(operators) if operators.is_empty() => {
            return Err(Error::bad_value("$not cannot be empty"));
        }
        Value::Document(operators) => {
            let mut tests = parser.operators(operator.path, operators)?;
            match tests.len() {
                1 => tests.pop().unwrap_or(Test::Exists),
                _ => Test::All(tests),
            }
        }
        _ => return Err(Error::bad_value("$not needs a regex or a document")),
    };
    Ok(Some(Test::Not(Box::new(negated))))
}
