//! `$bucket`: groups by the range a value falls into.
//!
//! It is a `$group` by the lower bound of the range, then a `$sort` by it.

use super::expr::accumulator::AccumulatorExpr;
use super::expr::{self, Expr, Operator, Scope};
use super::group::{Field, Group};
use super::sort::Sort;
use super::{Parsed, Parser, Place, StageDef};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::op::{SortKey, SortSpec};
use crate::raw::{Doc, DocWriter};
use crate::value::{Path, Value, order, show};
use std::sync::Arc;

pub(super) const STAGE: StageDef = StageDef {
    name: "$bucket",
    help: "Groups documents by the range in which a value falls.",
    parse,
    place: Place::Anywhere,
    refused: false,
};

fn fail<T>(code: i32, message: impl Into<String>) -> Result<T> {
    Err(Error::new(Code::Location(code), message))
}

fn parse(spec: &Value<'_>, parser: &mut Parser<'_>) -> Result<Parsed> {
    let Value::Document(options) = spec else {
        let message = format!("Argument to $bucket stage must be an object, but found type: {}.", spec.type_name());
        return fail(40201, message);
    };
    let (mut group_by, mut boundaries, mut default, mut output) = (None, None, None, None);
    for (name, value) in options.iter() {
        let kind = value.type_name();
        match (name.as_str(), &value) {
            ("groupBy", value) => group_by = Some(parse_group_by(value, parser)?),
            ("boundaries", Value::Array(given)) => boundaries = Some(parse_boundaries(given.iter(), parser)?),
            ("boundaries", _) => {
                return fail(
                    40200,
                    format!("The $bucket 'boundaries' field must be an array, but found type: {kind}."),
                );
            }
            ("default", value) => match expr::parse(value, parser.names)? {
                Expr::Const(value) => default = Some(value),
                _ => {
                    let shown = show::element(value);
                    let message = "The $bucket 'default' field must be a constant expression, but found";
                    return fail(40195, format!("{message}: {shown}."));
                }
            },
            ("output", Value::Document(fields)) => output = Some(parse_output(fields, parser)?),
            ("output", _) => {
                return fail(40196, format!("The $bucket 'output' field must be an object, but found type: {kind}."));
            }
            (other, _) => return fail(40197, format!("Unrecognized option to $bucket: {other}.")),
        }
    }
    let (Some(group_by), Some(boundaries)) = (group_by, boundaries) else {
        return fail(40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
    };
    check_default(default.as_ref(), &boundaries)?;
    let output = match output {
        Some(output) => output,
        None => vec![count_field(parser)?],
    };
    let key = Expr::Custom(Arc::new(LowerBound { group_by, boundaries, default }));
    let ascending = SortKey { path: Path::new("_id"), descending: false };
    let sort = Sort { spec: SortSpec { keys: vec![ascending] }, limit: None };
    Ok(Parsed::Two(Arc::new(Group::new(key, output)), Arc::new(sort)))
}

fn parse_group_by(value: &Value<'_>, parser: &mut Parser<'_>) -> Result<Expr> {
    if is_expression(value) {
        return expr::parse(value, parser.names);
    }
    let message = "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found";
    fail(40202, format!("{message}: {}.", show::element(value)))
}

/// A path with a `$`, or an object whose first name is an operator.
pub(super) fn is_expression(value: &Value<'_>) -> bool {
    match value {
        Value::String(text) => text.as_str().starts_with('$'),
        Value::Document(doc) => doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')),
        _ => false,
    }
}

fn parse_boundaries<'v>(
    given: impl Iterator<Item = Value<'v>>,
    parser: &mut Parser<'_>,
) -> Result<Vec<Value<'static>>> {
    let mut boundaries: Vec<Value<'static>> = Vec::new();
    for value in given {
        let Expr::Const(constant) = expr::parse(&value, parser.names)? else {
            let message = "The $bucket 'boundaries' field must be an array of constant values, but found value";
            return fail(40191, format!("{message}: {}.", show::element(&value)));
        };
        boundaries.push(constant);
    }
    if boundaries.len() < 2 {
        let message = "The $bucket 'boundaries' field must have at least 2 values";
        return fail(40192, format!("{message}, but found {} value(s).", boundaries.len()));
    }
    for (at, (lower, upper)) in boundaries.iter().zip(boundaries.iter().skip(1)).enumerate() {
        if order::rank(lower) != order::rank(upper) {
            let (lower, upper) = (lower.type_name(), upper.type_name());
            let message = "All values in the the 'boundaries' option to $bucket must have the same type.";
            return fail(40193, format!("{message} Found conflicting types {lower} and {upper}."));
        }
        if order::compare(lower, upper).is_ge() {
            let message = "The 'boundaries' option to $bucket must be sorted, but elements";
            let (next, lower, upper) = (at + 1, show::computed(lower), show::computed(upper));
            let message =
                format!("{message} {at} and {next} are not in ascending order ({lower} is not less than {upper}).");
            return fail(40194, message);
        }
    }
    Ok(boundaries)
}

/// The accumulators of `output`.
pub(super) fn parse_output(fields: &Doc<'_>, parser: &mut Parser<'_>) -> Result<Vec<Field>> {
    let mut output = Vec::new();
    for (name, value) in fields.iter() {
        output.push(Field::new(name.as_str(), AccumulatorExpr::parse(name.as_str(), &value, parser.names)?));
    }
    Ok(output)
}

/// `count: { $sum: 1 }`: what there is without `output`.
pub(super) fn count_field(parser: &mut Parser<'_>) -> Result<Field> {
    let mut one = DocWriter::new();
    one.append("$sum", &Value::Int32(1));
    Ok(Field::new("count", AccumulatorExpr::parse("count", &Value::Document(one.finish()), parser.names)?))
}

fn check_default(default: Option<&Value<'_>>, boundaries: &[Value<'_>]) -> Result<()> {
    let (Some(default), Some(lowest), Some(highest)) = (default, boundaries.first(), boundaries.last()) else {
        return Ok(());
    };
    if order::compare(default, lowest).is_lt() || order::compare(default, highest).is_ge() {
        return Ok(());
    }
    let message = "The $bucket 'default' field must be less than the lowest boundary or greater than or equal to the \
                   highest boundary.";
    fail(40199, message)
}

/// The lower bound of the range in which a value falls.
#[derive(Debug)]
struct LowerBound {
    group_by: Expr,
    boundaries: Vec<Value<'static>>,
    default: Option<Value<'static>>,
}

impl Operator for LowerBound {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let value = self.group_by.eval(scope)?;
        let above = self.boundaries.partition_point(|boundary| order::compare(boundary, &value).is_le());
        let found = above.checked_sub(1).filter(|_| above < self.boundaries.len());
        match found.and_then(|at| self.boundaries.get(at)).or(self.default.as_ref()) {
            Some(bound) => Ok(bound.borrow()),
            None => {
                let message = "$switch could not find a matching branch for an input, and no default was specified.";
                fail(4_934_200, message)
            }
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.group_by);
    }
}

#[cfg(test)]
mod tests {
    use crate::pipeline::testing::{check, check_error, documents};
    use bson::{Bson, bson};

    #[test]
    fn values_fall_into_ranges() {
        let input = || {
            documents(
                bson!([{ "_id": 1, "a": 1 }, { "_id": 2, "a": 5 }, { "_id": 3 }, { "_id": 4, "a": "x" }, { "_id": 5, "a": 2.5 }]),
            )
        };
        check(
            input(),
            bson!([{ "$bucket": { "groupBy": "$a", "boundaries": [0, 2, 10], "default": "o" } }]),
            bson!([{ "_id": 0, "count": 1 }, { "_id": 2, "count": 2 }, { "_id": "o", "count": 2 }]),
        );
        check(
            input(),
            bson!([{ "$bucket": { "groupBy": "$a", "boundaries": [0, 2, 10], "default": null, "output": { "x": { "$push": "$_id" } } } }]),
            bson!([{ "_id": null, "x": [3, 4] }, { "_id": 0, "x": [1] }, { "_id": 2, "x": [2, 5] }]),
        );
    }

    #[test]
    fn errors_are_mongodbs() {
        let bucket = |spec: Bson, code, message: &str| check_error(bson!([{ "$bucket": spec }]), code, message);
        bucket(bson!(1), 40201, "Argument to $bucket stage must be an object, but found type: int.");
        bucket(bson!({}), 40198, "$bucket requires 'groupBy' and 'boundaries' to be specified.");
        bucket(
            bson!({ "groupBy": "a" }),
            40202,
            "The $bucket 'groupBy' field must be defined as a $-prefixed path or an expression, but found: \"a\".",
        );
        bucket(
            bson!({ "boundaries": [0] }),
            40192,
            "The $bucket 'boundaries' field must have at least 2 values, but found 1 value(s).",
        );
        bucket(
            bson!({ "boundaries": [0, "$a"] }),
            40191,
            "The $bucket 'boundaries' field must be an array of constant values, but found value: \"$a\".",
        );
        bucket(
            bson!({ "boundaries": [2, 0] }),
            40194,
            "The 'boundaries' option to $bucket must be sorted, but elements 0 and 1 are not in ascending order (2 is not less than 0).",
        );
        bucket(
            bson!({ "groupBy": "$a", "boundaries": [5, 9] }),
            4_934_200,
            "$switch could not find a matching branch for an input, and no default was specified.",
        );
    }
}
