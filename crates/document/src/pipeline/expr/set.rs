//! Sets in arrays: equal values are one, order does not count. `$setUnion`, `$setIntersection`, `$setDifference`, `$setEquals`,
//! `$setIsSubset`; `$allElementsTrue` and `$anyElementTrue`.

use super::form::{call, fail, only, values};
use super::{Expr, ExprDef, Form, Names, Scope, parse_operand};
use crate::error::Result;
use crate::raw::{Array, ArrayWriter};
use crate::value::{Value, key};
use hashbrown::HashSet;
use std::collections::BTreeMap;

pub(super) const ALL_ELEMENTS_TRUE: ExprDef = ExprDef {
    name: "$allElementsTrue",
    help: "Whether all elements of an array are true.",
    form: Form::Exactly(1, |operands, scope| {
        let array = elements_of("$allElementsTrue", 17040, operands, scope)?;
        Ok(Value::Bool(array.borrow().iter().all(|item| item.is_truthy())))
    }),
};

pub(super) const ANY_ELEMENT_TRUE: ExprDef = ExprDef {
    name: "$anyElementTrue",
    help: "Whether an element of an array is true.",
    form: Form::Exactly(1, |operands, scope| {
        let array = elements_of("$anyElementTrue", 17041, operands, scope)?;
        Ok(Value::Bool(array.borrow().iter().any(|item| item.is_truthy())))
    }),
};

pub(super) const SET_DIFFERENCE: ExprDef = ExprDef {
    name: "$setDifference",
    help: "The elements of the first array that are not in the second, each once.",
    form: Form::Exactly(2, set_difference),
};

pub(super) const SET_EQUALS: ExprDef = ExprDef {
    name: "$setEquals",
    help: "Whether arrays have the same elements.",
    form: Form::Special(parse_set_equals),
};

pub(super) const SET_INTERSECTION: ExprDef = ExprDef {
    name: "$setIntersection",
    help: "The elements that all arrays have, each once.",
    form: Form::Commutative(set_intersection),
};

pub(super) const SET_IS_SUBSET: ExprDef = ExprDef {
    name: "$setIsSubset",
    help: "Whether all elements of the first array are in the second.",
    form: Form::Special(parse_set_is_subset),
};

pub(super) const SET_UNION: ExprDef =
    ExprDef { name: "$setUnion", help: "The elements of all arrays, each once.", form: Form::Commutative(set_union) };

type Keys = HashSet<Vec<u8>, foldhash::fast::RandomState>;

/// Equal values have equal keys, and the order of the keys is that of the values.
fn key_of(value: &Value<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    key::encode(value, &mut bytes);
    bytes
}

fn keys_of(array: &Array<'_>) -> Keys {
    array.borrow().iter().map(|item| key_of(&item)).collect()
}

fn elements_of<'a>(name: &str, code: i32, operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Array<'a>> {
    match only(operands, scope)? {
        Value::Array(array) => Ok(array),
        value => fail(code, format!("{name}'s argument must be an array, but is {}", value.type_name())),
    }
}

fn set_union<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut union = BTreeMap::new();
    for operand in operands {
        match operand.eval(scope)? {
            Value::Array(array) => {
                for item in array.iter() {
                    union.entry(key_of(&item)).or_insert(item);
                }
            }
            value if value.is_nullish() => return Ok(Value::Null),
            value => return one_is_no_array(17043, "$setUnion", &value),
        }
    }
    Ok(Value::Array(union.into_values().collect()))
}

fn one_is_no_array<T>(code: i32, name: &str, value: &Value<'_>) -> Result<T> {
    let found = value.type_name();
    fail(code, format!("All operands of {name} must be arrays. One argument is of type: {found}"))
}

fn set_intersection<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut common: Option<BTreeMap<Vec<u8>, Value<'a>>> = None;
    for operand in operands {
        let mut set = BTreeMap::new();
        match operand.eval(scope)? {
            Value::Array(array) => {
                for item in array.iter() {
                    set.entry(key_of(&item)).or_insert(item);
                }
            }
            value if value.is_nullish() => return Ok(Value::Null),
            value => return one_is_no_array(17047, "$setIntersection", &value),
        }
        common = Some(match common {
            None => set,
            Some(mut common) => {
                // Of equal values those of the smaller set are kept, as in MongoDB.
                if set.len() < common.len() {
                    std::mem::swap(&mut set, &mut common);
                }
                common.retain(|key, _| set.contains_key(key));
                common
            }
        });
    }
    Ok(Value::Array(common.unwrap_or_default().into_values().collect()))
}

fn set_difference<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [left, right] = values(operands, scope)?;
    if left.is_nullish() || right.is_nullish() {
        return Ok(Value::Null);
    }
    let (left, right) = both_arrays("$setDifference", left, right, 17048, 17049)?;
    let mut seen = keys_of(&right);
    let mut writer = ArrayWriter::new();
    for item in left.borrow().iter() {
        if seen.insert(key_of(&item)) {
            writer.push(&item);
        }
    }
    Ok(Value::Array(writer.finish()))
}

fn both_arrays<'a>(
    name: &str,
    left: Value<'a>,
    right: Value<'a>,
    first: i32,
    second: i32,
) -> Result<(Array<'a>, Array<'a>)> {
    let refuse = |code, which, value: &Value<'_>| {
        let found = value.type_name();
        fail(code, format!("both operands of {name} must be arrays. {which} argument is of type: {found}"))
    };
    match (left, right) {
        (Value::Array(left), Value::Array(right)) => Ok((left, right)),
        (Value::Array(_), right) => refuse(second, "Second", &right),
        (left, _) => refuse(first, "First", &left),
    }
}

fn parse_set_equals(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let operands = parse_operand(argument, names)?;
    if operands.len() < 2 {
        return fail(17045, format!("$setEquals needs at least two arguments had: {}", operands.len()));
    }
    for (place, operand) in operands.iter().enumerate() {
        if let Some(constant) = operand.as_const().filter(|_| !names.is_unfolded())
            && let Err(error) = check_operand(5_887_502, place, constant)
            && names.fold_error(error)
        {
            return Ok(Expr::Const(Value::Null));
        }
    }
    // MongoDB does not evaluate it yet, even if all operands are constant.
    Ok(Expr::Call { name: "$setEquals", eval: set_equals, operands })
}

fn check_operand(code: i32, place: usize, value: &Value<'_>) -> Result<()> {
    match value {
        Value::Array(_) => Ok(()),
        other => fail(
            code,
            format!(
                "All operands of $setEquals must be arrays. {}-th argument is of type: {}",
                place + 1,
                other.type_name()
            ),
        ),
    }
}

fn set_equals<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut first: Option<Keys> = None;
    for (place, operand) in operands.iter().enumerate() {
        let value = operand.eval(scope)?;
        check_operand(17044, place, &value)?;
        let Value::Array(array) = value else { continue };
        let keys = keys_of(&array);
        match &first {
            None => first = Some(keys),
            Some(first) if *first == keys => {}
            Some(_) => return Ok(Value::Bool(false)),
        }
    }
    Ok(Value::Bool(true))
}

fn parse_set_is_subset(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let operands = parse_operand(argument, names)?;
    let [left, right] = operands.as_slice() else {
        let count = operands.len();
        return fail(16020, format!("Expression $setIsSubset takes exactly 2 arguments. {count} were passed in."));
    };
    match (left.as_const(), right.as_const().filter(|_| !names.is_unfolded())) {
        // A constant superset is checked now; MongoDB gives these errors numbers of their own.
        (None, Some(Value::Array(_))) => call("$setIsSubset", set_is_subset_of_constant, operands, names),
        (None, Some(other)) => {
            let refused = both_arrays("$setIsSubset", Value::Array(Array::empty()), other.borrow(), 0, 17311);
            match refused {
                Err(error) if !names.fold_error(error.clone()) => {
                    call("$setIsSubset", set_is_subset_of_constant, operands, names)
                }
                _ => Ok(Expr::Const(Value::Null)),
            }
        }
        _ => call("$setIsSubset", set_is_subset, operands, names),
    }
}

fn set_is_subset<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    is_subset(operands, scope, 17046)
}

fn set_is_subset_of_constant<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    is_subset(operands, scope, 17310)
}

fn is_subset<'a>(operands: &'a [Expr], scope: &mut Scope<'a>, first: i32) -> Result<Value<'a>> {
    let [left, right] = values(operands, scope)?;
    let (left, right) = both_arrays("$setIsSubset", left, right, first, 17042)?;
    let keys = keys_of(&right);
    Ok(Value::Bool(left.borrow().iter().all(|item| keys.contains(&key_of(&item)))))
}
