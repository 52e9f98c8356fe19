//! Looking into an array: `$arrayElemAt`, `$first`, `$last`, `$size`, `$isArray`, `$in`, `$indexOfArray`.

use crate::code::Code;
use crate::error::{Error, Result};
use crate::pipeline::expr::form::{fail, only, values};
use crate::pipeline::expr::{Expr, ExprDef, Form, Names, Scope};
use crate::raw::Array;
use crate::value::number::Number;
use crate::value::{Value, order, show};

pub(in crate::pipeline::expr) const ARRAY_ELEM_AT: ExprDef = ExprDef {
    name: "$arrayElemAt",
    help: "The element at a position; a negative one counts from the end.",
    form: Form::Exactly(2, array_elem_at),
};

pub(in crate::pipeline::expr) const FIRST: ExprDef = ExprDef {
    name: "$first",
    help: "The first element of an array.",
    form: Form::Exactly(1, |operands, scope| end_of("$first", 0, operands, scope)),
};

pub(in crate::pipeline::expr) const IN: ExprDef =
    ExprDef { name: "$in", help: "Whether a value is an element of an array.", form: Form::Exactly(2, in_array) };

pub(in crate::pipeline::expr) const INDEX_OF_ARRAY: ExprDef = ExprDef {
    name: "$indexOfArray",
    help: "The first position of a value in an array or part of it; -1 if it is not there.",
    form: Form::Special(parse_index_of_array),
};

pub(in crate::pipeline::expr) const IS_ARRAY: ExprDef = ExprDef {
    name: "$isArray",
    help: "Whether a value is an array.",
    form: Form::Exactly(1, |operands, scope| Ok(Value::Bool(matches!(only(operands, scope)?, Value::Array(_))))),
};

pub(in crate::pipeline::expr) const LAST: ExprDef = ExprDef {
    name: "$last",
    help: "The last element of an array.",
    form: Form::Exactly(1, |operands, scope| end_of("$last", -1, operands, scope)),
};

pub(in crate::pipeline::expr) const SIZE: ExprDef =
    ExprDef { name: "$size", help: "The number of elements of an array.", form: Form::Exactly(1, size) };

/// The element at `index`, counted from the end if negative; missing if there is none.
fn at<'a>(array: &Array<'a>, index: i64) -> Value<'a> {
    let index = match index {
        0.. => index,
        _ => index.saturating_add_unsigned(array.count() as u64),
    };
    usize::try_from(index).ok().and_then(|index| array.get(index)).unwrap_or(Value::Missing)
}

fn array_elem_at<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [array, index] = values(operands, scope)?;
    if array.is_nullish() || index.is_nullish() {
        return Ok(Value::Null);
    }
    let Value::Array(array) = &array else {
        return fail(28689, format!("$arrayElemAt's first argument must be an array, but is {}", array.type_name()));
    };
    let Some(number) = Number::of(&index) else {
        return fail(
            28690,
            format!("$arrayElemAt's second argument must be a numeric value, but is {}", index.type_name()),
        );
    };
    match number.as_i32_exact() {
        Some(index) => Ok(at(array, i64::from(index))),
        None => fail(
            28691,
            format!(
                "$arrayElemAt's second argument must be representable as a 32-bit integer: {}",
                show::general(number.to_f64(), 6)
            ),
        ),
    }
}

fn end_of<'a>(name: &str, index: i64, operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::Array(array) => Ok(at(&array, index)),
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(28689, format!("{name}'s argument must be an array, but is {}", value.type_name())),
    }
}

fn size<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::Array(array) => Ok(Value::Int32(i32::try_from(array.count()).unwrap_or(i32::MAX))),
        value => fail(17124, format!("The argument to $size must be an array, but was of type: {}", value.type_name())),
    }
}

fn in_array<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [value, array] = values(operands, scope)?;
    let Value::Array(array) = array else {
        return fail(40081, format!("$in requires an array as a second argument, found: {}", array.type_name()));
    };
    Ok(Value::Bool(array.borrow().iter().any(|item| order::equal(&item, &value))))
}

/// As any operator, but a constant array is looked at when parsing; MongoDB gives that error a number of its own.
fn parse_index_of_array(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let expr = Form::Between(2, 4, index_of_array).parse("$indexOfArray", argument, names)?;
    if let Expr::Call { operands, .. } = &expr
        && let Some(first) = operands.first().and_then(Expr::as_const)
        && !names.is_unfolded()
        && !matches!(first, Value::Array(_))
    {
        let found = first.type_name();
        let message = format!("First operand of $indexOfArray must be an array. First argument is of type: {found}");
        if first.is_nullish() || names.fold_error(Error::new(Code::Location(50809), message)) {
            return Ok(Expr::Const(Value::Null));
        }
    }
    Ok(expr)
}

fn index_of_array<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    // What the first operand is decides before the others are evaluated.
    let array = match only(operands, scope)? {
        Value::Array(array) => array,
        value if value.is_nullish() => return Ok(Value::Null),
        value => {
            let found = value.type_name();
            return fail(40090, format!("$indexOfArray requires an array as a first argument, found: {found}"));
        }
    };
    let [sought, start, end] = values(operands.get(1..).unwrap_or_default(), scope)?;
    let start = if operands.len() > 2 { bound("starting", &start)? } else { 0 };
    let end = if operands.len() > 3 { bound("ending", &end)? } else { usize::MAX };
    let found = array
        .borrow()
        .iter()
        .take(end)
        .enumerate()
        .skip(start)
        .find(|(_, item)| order::equal(item, &sought))
        .and_then(|(position, _)| i32::try_from(position).ok());
    Ok(Value::Int32(found.unwrap_or(-1)))
}

fn bound(which: &str, value: &Value<'_>) -> Result<usize> {
    let Some(number) = Number::of(value).and_then(Number::as_i32_exact) else {
        return fail(
            40096,
            format!(
                "$indexOfArrayrequires an integral {which} index, found a value of type: {}, with value: {}",
                value.type_name(),
                show::computed(value)
            ),
        );
    };
    match usize::try_from(number) {
        Ok(index) => Ok(index),
        Err(_) => fail(40097, format!("$indexOfArray requires a nonnegative {which} index, found: {number}")),
    }
}
