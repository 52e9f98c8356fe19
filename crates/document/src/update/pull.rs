//! `$pull`, `$pullAll`, `$pop`, `$addToSet`: what leaves an array, and what enters it only once.

use super::array_filter::refuse_expressions;
use super::operation::{Blocked, Change, Operation, Site};
use super::{Argument, Form, UpdateDef};
use crate::env::Env;
use crate::error::{Error, Result};
use crate::filter::{FILTERS, Filter, FilterPlace};
use crate::pipeline::expr::Names;
use crate::raw::{Array, ArrayWriter, Doc, DocWriter};
use crate::value::{Value, order, show};
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) const PULL: UpdateDef = UpdateDef {
    name: "$pull",
    help: "Removes the elements of an array that equal a value or match a condition.",
    form: Form::Operation(pull),
};

pub(super) const PULL_ALL: UpdateDef = UpdateDef {
    name: "$pullAll",
    help: "Removes the elements of an array that equal one of the given values.",
    form: Form::Operation(pull_all),
};

pub(super) const POP: UpdateDef =
    UpdateDef { name: "$pop", help: "Removes the first or last element of an array.", form: Form::Operation(pop) };

pub(super) const ADD_TO_SET: UpdateDef = UpdateDef {
    name: "$addToSet",
    help: "Adds values to an array unless it has them already.",
    form: Form::Operation(add_to_set),
};

/// Which elements go.
#[derive(Debug)]
enum Pull {
    Equal(Vec<Value<'static>>),
    /// Conditions on the element itself, written for a field of this name.
    Element(Filter),
    /// Conditions on the fields of documents.
    Document(Filter),
}

/// The name under which an element is shown to its conditions.
const ELEMENT: &str = "element";

fn pull(argument: Argument<'_>, names: &mut Names) -> Result<Arc<dyn Operation>> {
    let wrapped = |names: &mut Names| {
        let mut source = DocWriter::new();
        source.append(ELEMENT, &argument.value);
        Filter::parse(&source.finish(), names)?.without_text()
    };
    let pull = match &argument.value {
        Value::Document(conditions) if begins_with_field_operator(conditions) => Pull::Element(wrapped(names)?),
        // A database reference is a value.
        Value::Document(reference) if reference.contains("$ref") && reference.contains("$id") => {
            Pull::Equal(vec![argument.value.clone()])
        }
        Value::Document(conditions) => {
            refuse_expressions(conditions, "in this context")?;
            Pull::Document(Filter::parse(conditions, names)?.without_text()?)
        }
        Value::Regex { .. } => Pull::Element(wrapped(names)?),
        value => Pull::Equal(vec![value.clone()]),
    };
    Ok(Arc::new(pull))
}

fn begins_with_field_operator(conditions: &Doc<'_>) -> bool {
    let Some((name, _)) = conditions.iter().next() else { return false };
    let name = name.as_str();
    // `$not` needs a field before it; the parser of whole documents says so.
    name != "$not" && FILTERS.iter().any(|def| def.name == name && matches!(def.parse, FilterPlace::Field(_)))
}

fn pull_all(argument: Argument<'_>, _: &mut Names) -> Result<Arc<dyn Operation>> {
    match &argument.value {
        Value::Array(values) => Ok(Arc::new(Pull::Equal(values.iter().collect()))),
        other => {
            Err(Error::bad_value(format!("$pullAll requires an array argument but was given a {}", other.type_name())))
        }
    }
}

impl Pull {
    fn takes(&self, element: &Value<'_>, env: &Env) -> Result<bool> {
        match (self, element) {
            (Pull::Equal(values), _) => Ok(values.iter().any(|value| order::equal(value, element))),
            (Pull::Element(filter), _) => {
                let mut wrapped = DocWriter::new();
                wrapped.append(ELEMENT, element);
                filter.matches(&wrapped.finish(), env)
            }
            (Pull::Document(filter), Value::Document(doc)) => filter.matches(doc, env),
            (Pull::Document(_), _) => Ok(false),
        }
    }
}

impl Operation for Pull {
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        let Value::Array(array) = current else {
            return Err(Error::bad_value("Cannot apply $pull to a non-array value"));
        };
        let mut kept = ArrayWriter::new();
        let mut taken = false;
        for element in array.iter() {
            if self.takes(&element, site.env)? {
                taken = true;
            } else {
                kept.push(&element);
            }
        }
        Ok(if taken { Change::Rewrite(Value::Array(kept.finish())) } else { Change::Keep })
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(None)
    }

    fn when_blocked(&self) -> Blocked {
        Blocked::CannotTraverse
    }
}

#[derive(Debug)]
enum Pop {
    First,
    Last,
}

fn pop(argument: Argument<'_>, _: &mut Names) -> Result<Arc<dyn Operation>> {
    let shown = || format!("{}: {}", argument.field, show::element(&argument.value));
    let Some(number) = argument.value.as_number() else {
        return Err(Error::failed_to_parse(format!("Expected a number in: {}", shown())));
    };
    match number.as_i64_exact() {
        Some(1) => Ok(Arc::new(Pop::Last)),
        Some(-1) => Ok(Arc::new(Pop::First)),
        Some(other) => Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {other}"))),
        None if number.to_i64_truncated().is_some() => {
            Err(Error::failed_to_parse(format!("Expected an integer: {}", shown())))
        }
        None => Err(Error::failed_to_parse(format!("Cannot represent as a 64-bit integer: {}", shown()))),
    }
}

impl Operation for Pop {
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        let Value::Array(array) = current else {
            return Err(Error::type_mismatch(format!(
                "Path '{}' contains an element of non-array type '{}'",
                site.trail.path(),
                current.type_name()
            )));
        };
        if array.is_empty() {
            return Ok(Change::Keep);
        }
        let rest: Array<'static> = match self {
            Pop::First => array.iter().skip(1).collect(),
            Pop::Last => array.iter().take(array.count().saturating_sub(1)).collect(),
        };
        Ok(Change::Rewrite(Value::Array(rest)))
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(None)
    }

    fn when_blocked(&self) -> Blocked {
        Blocked::CannotTraverse
    }
}

/// The values to add, each once.
#[derive(Debug)]
struct AddToSet(Vec<Value<'static>>);

fn add_to_set(argument: Argument<'_>, _: &mut Names) -> Result<Arc<dyn Operation>> {
    let each = match &argument.value {
        Value::Document(doc) => match doc.iter().next() {
            Some((name, each)) if name.as_str() == "$each" => Some((doc, each)),
            _ => None,
        },
        _ => None,
    };
    let Some((clauses, each)) = each else { return Ok(Arc::new(AddToSet(vec![argument.value]))) };
    let Value::Array(values) = &each else {
        return Err(Error::type_mismatch(format!(
            "The argument to $each in $addToSet must be an array but it was of type {}",
            each.type_name()
        )));
    };
    if clauses.iter().count() > 1 {
        return Err(Error::bad_value(format!(
            "Found unexpected fields after $each in $addToSet: {}",
            show::document(clauses)
        )));
    }
    let mut once: Vec<Value<'static>> = Vec::new();
    for value in values.iter() {
        if !once.iter().any(|other| order::equal(other, &value)) {
            once.push(value);
        }
    }
    Ok(Arc::new(AddToSet(once)))
}

impl Operation for AddToSet {
    fn update<'v>(&'v self, current: &Value<'v>, site: &Site<'_>) -> Result<Change<'v>> {
        let Value::Array(array) = current else {
            return Err(Error::bad_value(format!(
                "Cannot apply $addToSet to non-array field. Field named '{}' has non-array type {}",
                site.trail.name,
                current.type_name()
            )));
        };
        let mut missing: SmallVec<[&'v Value<'static>; 4]> = self.0.iter().collect();
        for element in array.iter() {
            missing.retain(|value| !order::equal(value, &element));
            if missing.is_empty() {
                return Ok(Change::Keep);
            }
        }
        if missing.is_empty() {
            return Ok(Change::Keep);
        }
        Ok(Change::Append(missing.into_iter().map(Value::borrow).collect()))
    }

    fn create(&self, _site: &Site<'_>) -> Result<Option<Value<'_>>> {
        Ok(Some(Value::Array(self.0.iter().map(Value::borrow).collect())))
    }
}
