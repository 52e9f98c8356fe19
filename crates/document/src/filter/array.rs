//! `$all`, `$elemMatch`, `$size`.

use super::parse::{FilterOperator, FilterParser, References, find, is_operator_document};
use super::{FilterDef, FilterPlace, InSet, Test};
use crate::error::{Error, Result};
use crate::raw::{Array, Doc};
use crate::value::Value;
use std::sync::Arc;

pub(super) const ALL: FilterDef = FilterDef {
    name: "$all",
    help: "Matches arrays that contain every one of the given values.",
    parse: FilterPlace::Field(all),
};

pub(super) const ELEM_MATCH: FilterDef = FilterDef {
    name: "$elemMatch",
    help: "Matches arrays with an element that passes all the given conditions.",
    parse: FilterPlace::Field(|operator, parser| Ok(Some(elem_match(&operator.argument, parser)?))),
};

pub(super) const SIZE: FilterDef = FilterDef {
    name: "$size",
    help: "Matches arrays with exactly so many elements.",
    parse: FilterPlace::Field(|operator, _| Ok(Some(Test::Size(size(&operator.argument)?)))),
};

fn all(operator: &FilterOperator<'_>, parser: &mut FilterParser<'_>) -> Result<Option<Test>> {
    let Value::Array(items) = &operator.argument else { return Err(Error::bad_value("$all needs an array")) };
    if items.get(0).is_some_and(|first| elem_match_argument(&first).is_some()) {
        return Ok(Some(Test::All(all_elem_match(items, parser)?)));
    }
    let mut tests = Vec::new();
    for item in items.iter() {
        tests.push(match &item {
            Value::Regex { pattern, options } => Test::Leaf(super::regex::from_value(pattern, options)?),
            Value::Document(doc) if starts_with_field_operator(doc) => {
                return Err(Error::bad_value("no $ expressions in $all"));
            }
            _ => super::compare::equality(&item)?,
        });
    }
    // Nothing contains all of nothing, says MongoDB.
    Ok(Some(if tests.is_empty() { Test::In(Arc::new(InSet::default())) } else { Test::All(tests) }))
}

fn all_elem_match(items: &Array<'_>, parser: &mut FilterParser<'_>) -> Result<Vec<Test>> {
    items
        .iter()
        .map(|item| match elem_match_argument(&item) {
            Some(argument) => elem_match(&argument, parser),
            None => Err(Error::bad_value("$all/$elemMatch has to be consistent")),
        })
        .collect()
}

fn elem_match_argument<'a>(item: &Value<'a>) -> Option<Value<'a>> {
    match item {
        Value::Document(doc) => doc.iter().next().filter(|(name, _)| name.as_str() == "$elemMatch").map(|(_, v)| v),
        _ => None,
    }
}

fn starts_with_field_operator(doc: &Doc<'_>) -> bool {
    doc.iter()
        .next()
        .is_some_and(|(name, _)| find(name.as_str()).is_some_and(|def| matches!(def.parse, FilterPlace::Field(_))))
}

fn elem_match(argument: &Value<'_>, parser: &mut FilterParser<'_>) -> Result<Test> {
    let Value::Document(conditions) = argument else { return Err(Error::bad_value("$elemMatch needs an Object")) };
    if is_operator_document(conditions, References::Partial) && !starts_with_document_operator(conditions) {
        return Ok(Test::ElemMatchValue(parser.operators("", conditions)?));
    }
    let outer = std::mem::replace(&mut parser.inside_element, true);
    let node = parser.document(conditions);
    parser.inside_element = outer;
    Ok(Test::ElemMatch(Box::new(node?)))
}

/// `$and` and its like take whole documents: then the elements are matched as documents.
fn starts_with_document_operator(doc: &Doc<'_>) -> bool {
    doc.iter()
        .next()
        .is_some_and(|(name, _)| find(name.as_str()).is_some_and(|def| matches!(def.parse, FilterPlace::Document(_))))
}

fn size(argument: &Value<'_>) -> Result<i64> {
    super::number::non_negative_int("$size", argument)
        .map(i64::from)
        .map_err(|message| Error::bad_value(format!("Failed to parse $size. {message}")))
}
