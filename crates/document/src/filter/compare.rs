//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in`, `$nin`, and equality without an operator.

use super::parse::{FilterOperator, FilterParser, References, is_operator_document};
use super::{FilterDef, FilterPlace, InSet, Test};
use crate::error::{Error, Result};
use crate::value::Value;
use std::sync::Arc;

pub(super) const EQ: FilterDef = FilterDef {
    name: "$eq",
    help: "Matches values equal to the given one.",
    parse: FilterPlace::Field(|operator, _| Ok(Some(equality(&operator.argument)?))),
};

pub(super) const NE: FilterDef = FilterDef {
    name: "$ne",
    help: "Matches documents whose field is not equal to the given value, or is missing.",
    parse: FilterPlace::Field(|operator, _| match &operator.argument {
        Value::Regex { .. } => Err(Error::bad_value("Can't have regex as arg to $ne.")),
        argument => Ok(Some(Test::Not(Box::new(equality(argument)?)))),
    }),
};

pub(super) const GT: FilterDef = FilterDef {
    name: "$gt",
    help: "Matches values of the same type above the given one.",
    parse: FilterPlace::Field(|operator, _| bound(operator, Test::Gt)),
};

pub(super) const GTE: FilterDef = FilterDef {
    name: "$gte",
    help: "Matches values of the same type equal to the given one or above it.",
    parse: FilterPlace::Field(|operator, _| bound(operator, Test::Gte)),
};

pub(super) const LT: FilterDef = FilterDef {
    name: "$lt",
    help: "Matches values of the same type below the given one.",
    parse: FilterPlace::Field(|operator, _| bound(operator, Test::Lt)),
};

pub(super) const LTE: FilterDef = FilterDef {
    name: "$lte",
    help: "Matches values of the same type equal to the given one or below it.",
    parse: FilterPlace::Field(|operator, _| bound(operator, Test::Lte)),
};

pub(super) const IN: FilterDef = FilterDef {
    name: "$in",
    help: "Matches values equal to one of the given ones or matched by one of the given regular expressions.",
    parse: FilterPlace::Field(|operator, parser| Ok(Some(membership(operator, parser)?))),
};

pub(super) const NIN: FilterDef = FilterDef {
    name: "$nin",
    help: "Matches documents whose field is none of the given values, or is missing.",
    parse: FilterPlace::Field(|operator, parser| Ok(Some(Test::Not(Box::new(membership(operator, parser)?))))),
};

/// Equality with a value, a document or an array, taken whole.
pub(super) fn equality(value: &Value<'_>) -> Result<Test> {
    Ok(Test::Eq(comparable(value)?))
}

fn comparable(value: &Value<'_>) -> Result<Value<'static>> {
    match value {
        Value::Undefined => Err(Error::bad_value("cannot compare to undefined")),
        value => Ok(value.clone().into_owned()),
    }
}

fn bound(operator: &FilterOperator<'_>, test: fn(Value<'static>) -> Test) -> Result<Option<Test>> {
    if matches!(operator.argument, Value::Regex { .. }) {
        return Err(Error::bad_value(format!("Can't have RegEx as arg to predicate over field '{}'.", operator.path)));
    }
    Ok(Some(test(comparable(&operator.argument)?)))
}

fn membership(operator: &FilterOperator<'_>, _: &mut FilterParser<'_>) -> Result<Test> {
    let Value::Array(items) = &operator.argument else {
        return Err(Error::bad_value(format!("{} needs an array", operator.name)));
    };
    let (mut values, mut regexes) = (Vec::new(), Vec::new());
    for item in items.iter() {
        match &item {
            Value::Document(doc) if is_operator_document(doc, References::Whole) => {
                return Err(Error::bad_value("cannot nest $ under $in"));
            }
            Value::Regex { pattern, options } => regexes.push(super::regex::from_value(pattern, options)?),
            Value::Undefined => return Err(Error::bad_value("InMatchExpression equality cannot be undefined")),
            _ => values.push(item.into_owned()),
        }
    }
    Ok(Test::In(Arc::new(InSet::new(values, regexes))))
}
