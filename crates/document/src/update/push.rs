//! `$push` with `$each`, `$position`, `$slice` and `$sort`.

use super::operation::{Change, Operation, Site};
use super::{Argument, Form, UpdateDef};
use crate::error::{Error, Result};
use crate::pipeline::expr::Names;
use crate::value::{Path, Value, order};
use std::cmp::Ordering;
use std::sync::Arc;

pub(super) const PUSH: UpdateDef = UpdateDef {
    name: "$push",
    help: "Adds values to an array, then sorts and cuts it if told to.",
    form: Form::Operation(push),
};

#[derive(Debug)]
struct Push {
    items: Vec<Value<'static>>,
    position: Option<i64>,
    sort: Option<Sort>,
    slice: Option<i64>,
}

#[derive(Debug)]
enum Sort {
    Whole { descending: bool },
    Fields(Vec<(Path, bool)>),
}

fn push(argument: Argument<'_>, _: &mut Names) -> Result<Arc<dyn Operation>> {
    let clauses = match &argument.value {
        Value::Document(clauses) if clauses.contains("$each") => clauses,
        single => {
            return Ok(Arc::new(Push { items: vec![single.clone()], position: None, sort: None, slice: None }));
        }
    };
    let mut parsed = Push { items: Vec::new(), position: None, sort: None, slice: None };
    for (name, value) in clauses.iter() {
        match name.as_str() {
            "$each" => match &value {
                Value::Array(items) => parsed.items = items.iter().collect(),
                other => {
                    return Err(Error::bad_value(format!(
                        "The argument to $each in $push must be an array but it was of type: {}",
                        other.type_name()
                    )));
                }
            },
            "$position" => {
                parsed.position = Some(value.as_i64_exact().ok_or_else(|| {
                    Error::bad_value(format!(
                        "The value for $position must be an integer value, not of type: {}",
                        value.type_name()
                    ))
                })?);
            }
            "$slice" => {
                parsed.slice = Some(value.as_i64_exact().ok_or_else(|| {
                    Error::bad_value(format!(
                        "The value for $slice must be an integer value but was given type: {}",
                        value.type_name()
                    ))
                })?);
            }
            "$sort" => parsed.sort = Some(sort(&value)?),
            other => return Err(Error::bad_value(format!("Unrecognized clause in $push: {other}"))),
        }
    }
    Ok(Arc::new(parsed))
}

fn sort(value: &Value<'_>) -> Result<Sort> {
    let direction = |value: &Value<'_>| match value.as_i64_exact() {
        Some(1) => Some(false),
        Some(-1) => Some(true),
        _ => None,
    };
    match value {
        Value::Document(pattern) if pattern.is_empty() => {
            Err(Error::bad_value("The sort pattern is empty when it should be a set of fields."))
        }
        Value::Document(pattern) => {
            let mut fields = Vec::new();
            for (name, value) in pattern.iter() {
                let descending = direction(&value)
                    .ok_or_else(|| Error::bad_value("The sort element value must be either 1 or -1"))?;
                if name.as_str().is_empty() {
                    return Err(Error::bad_value("The sort field cannot be empty"));
                }
                let path = Path::new(name.as_str());
                if path.parts.iter().any(|part| part.name.is_empty()) {
                    return Err(Error::bad_value(format!(
                        "The sort field is a dotted field but has an empty part: {name}"
                    )));
                }
                fields.push((path, descending));
            }
            Ok(Sort::Fields(fields))
        }
        number if number.is_number() => direction(number)
            .map(|descending| Sort::Whole { descending })
            .ok_or_else(|| Error::bad_value("The $sort element value must be either 1 or -1")),
        _ => Err(Error::bad_value(
            "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded fields",
        )),
    }
}

impl Sort {
    fn compare(&self, left: &Value<'_>, right: &Value<'_>) -> Ordering {
        let directed = |order: Ordering, descending: bool| if descending { order.reverse() } else { order };
        match self {
            Sort::Whole { descending } => directed(order::compare(left, right), *descending),
            Sort::Fields(fields) => fields
                .iter()
                .map(|(path, descending)| {
                    directed(order::compare(&field(left, path), &field(right, path)), *descending)
                })
                .find(|order| order.is_ne())
                .unwrap_or(Ordering::Equal),
        }
    }
}

/// What an element sorts by: arrays on the way are not entered, what is not there is null.
fn field<'v>(element: &'v Value<'_>, path: &Path) -> Value<'v> {
    let mut value = element.borrow();
    for part in &path.parts {
        value = match value {
            Value::Document(doc) => match doc.get(&part.name) {
                Some(inner) => inner,
                None => return Value::Null,
            },
            _ => return Value::Null,
        };
    }
    value
}

impl Push {
    /// Puts the new elements among the old ones, sorts, cuts.
    fn arrange<'v>(&'v self, mut elements: Vec<Value<'v>>) -> Vec<Value<'v>> {
        let length = elements.len();
        let place = match self.position {
            None => length,
            Some(position) if position < 0 => {
                length.saturating_sub(usize::try_from(position.unsigned_abs()).unwrap_or(usize::MAX))
            }
            Some(position) => usize::try_from(position).unwrap_or(usize::MAX).min(length),
        };
        elements.splice(place..place, self.items.iter().map(Value::borrow));
        if let Some(sort) = &self.sort {
            elements.sort_by(|a, b| sort.compare(a, b));
        }
        if let Some(slice) = self.slice {
            let count = usize::try_from(slice.unsigned_abs()).unwrap_or(usize::MAX);
            if slice >= 0 {
                elements.truncate(count);
            } else {
                elements.drain(..elements.len().saturating_sub(count));
            }
        }
        elements
    }
}

impl Operation for Push {
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        let Value::Array(array) = current else {
            return Err(Error::bad_value(format!(
                "The field '{}' must be an array but is of type {} in document {}",
                site.trail.path(),
                current.type_name(),
                site.id_in_braces()
            )));
        };
        let rearranges = self.sort.is_some() || self.slice.is_some();
        if !rearranges && self.items.is_empty() {
            return Ok(Change::Keep);
        }
        if !rearranges && self.position.is_none() {
            return Ok(Change::Append(self.items.iter().map(Value::borrow).collect()));
        }
        let elements: Vec<Value<'v>> = array.iter().collect();
        let length = elements.len();
        let arranged = self.arrange(elements);
        if self.items.is_empty() && self.sort.is_none() && arranged.len() == length {
            return Ok(Change::Keep);
        }
        Ok(Change::Rewrite(Value::Array(arranged.into_iter().collect())))
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(Value::Array(self.arrange(Vec::new()).into_iter().collect())))
    }
}
