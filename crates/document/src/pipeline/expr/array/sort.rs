//! `$sortArray`: by whole elements, or by fields of elements that are documents.

use crate::error::Result;
use crate::op::{SortKey, SortSpec};
use crate::pipeline::expr::form::{Arguments, fail};
use crate::pipeline::expr::{Expr, ExprDef, Form, Names, Operator, Scope, parse};
use crate::pipeline::sort_spec;
use crate::raw::Doc;
use crate::value::path::Part;
use crate::value::{Path, Value, order};
use std::sync::Arc;

pub(in crate::pipeline::expr) const SORT_ARRAY: ExprDef = ExprDef {
    name: "$sortArray",
    help: "An array sorted by its elements or by fields of them.",
    form: Form::Special(parse_sort_array),
};

#[derive(Debug)]
struct SortArray {
    input: Expr,
    by: By,
}

#[derive(Debug)]
enum By {
    Whole { descending: bool },
    Fields(SortSpec),
}

fn parse_sort_array(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let no_object = (2_942_500, "requires an object as an argument, found: ");
    let arguments = Arguments::named("$sortArray", argument, no_object, &["input", "sortBy"], 2_942_501)?;
    let input = arguments.required("input", 2_942_502, "$sortArray requires 'input' to be specified")?;
    let by = arguments.required("sortBy", 2_942_503, "$sortArray requires 'sortBy' to be specified")?;
    let by = match &by {
        Value::Document(pattern) => By::Fields(parse_pattern(pattern)?),
        number if number.is_number() => match direction(number) {
            Some(descending) => By::Whole { descending },
            None => return fail(2_942_506, "The $sort element value must be either 1 or -1"),
        },
        _ => {
            return fail(
                2_942_507,
                "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
            );
        }
    };
    Ok(Expr::Custom(Arc::new(SortArray { input: parse(&input, names)?, by })))
}

/// Whether it is descending; nothing unless it is 1 or -1.
fn direction(value: &Value<'_>) -> Option<bool> {
    match value.as_i64_exact() {
        Some(1) => Some(false),
        Some(-1) => Some(true),
        _ => None,
    }
}

fn parse_pattern(pattern: &Doc<'_>) -> Result<SortSpec> {
    let refuse = |reason: String| fail(2_942_505, format!("BadValue: {reason}"));
    if pattern.is_empty() {
        return refuse("The sort pattern is empty when it should be a set of fields.".to_owned());
    }
    let mut keys = Vec::new();
    for (name, value) in pattern.iter() {
        let Some(descending) = direction(&value) else {
            return refuse("The sort element value must be either 1 or -1".to_owned());
        };
        if name.as_bytes().is_empty() {
            return refuse("The sort field cannot be empty".to_owned());
        }
        if name.as_str().split('.').any(str::is_empty) {
            return refuse(format!("The sort field is a dotted field but has an empty part: {name}"));
        }
        keys.push(SortKey { path: Path::new(name.as_str()), descending });
    }
    Ok(SortSpec { keys })
}

/// Unlike a `$sort` of documents, arrays are compared whole; numbers in a path are positions in them.
fn key_value<'a>(value: &Value<'a>, parts: &[Part]) -> Value<'a> {
    let Some((first, rest)) = parts.split_first() else { return value.clone() };
    let found = match value {
        Value::Document(doc) => doc.get(&first.name),
        Value::Array(array) => first.index.and_then(|index| array.get(index)),
        _ => None,
    };
    found.map_or(Value::Null, |value| key_value(&value, rest))
}

impl Operator for SortArray {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let array = match self.input.eval(scope)? {
            Value::Array(array) => array,
            value if value.is_nullish() => return Ok(Value::Null),
            value => {
                return fail(
                    2_942_504,
                    format!(
                        "The input argument to $sortArray must be an array, but was of type: {}",
                        value.type_name()
                    ),
                );
            }
        };
        let array = array.borrow();
        let mut items: Vec<Value<'_>> = array.iter().collect();
        match &self.by {
            By::Whole { descending: false } => items.sort_by(order::compare),
            By::Whole { descending: true } => items.sort_by(|a, b| order::compare(b, a)),
            By::Fields(pattern) => {
                let key = |item: &Value<'_>| -> Vec<Value<'static>> {
                    pattern.keys.iter().map(|key| key_value(item, &key.path.parts).into_owned()).collect()
                };
                let mut keyed: Vec<_> = items.into_iter().map(|item| (key(&item), item)).collect();
                keyed.sort_by(|(a, _), (b, _)| sort_spec::compare(pattern, a, b));
                items = keyed.into_iter().map(|(_, item)| item).collect();
            }
        }
        Ok(Value::Array(items.into_iter().collect()))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
    }
}
