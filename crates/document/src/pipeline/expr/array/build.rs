//! Building an array from others or from numbers: `$concatArrays`, `$reverseArray`, `$slice`, `$range`.

use crate::error::Result;
use crate::pipeline::expr::form::{fail, only, values};
use crate::pipeline::expr::{Expr, ExprDef, Form, Scope};
use crate::raw::{Array, ArrayWriter};
use crate::value::number::Number;
use crate::value::{Value, show};

pub(in crate::pipeline::expr) const CONCAT_ARRAYS: ExprDef = ExprDef {
    name: "$concatArrays",
    help: "The elements of all arrays, one after the other.",
    form: Form::Associative(concat_arrays),
};

pub(in crate::pipeline::expr) const RANGE: ExprDef = ExprDef {
    name: "$range",
    help: "Whole numbers from a start up to an end, by steps.",
    form: Form::Between(2, 3, range),
};

pub(in crate::pipeline::expr) const REVERSE_ARRAY: ExprDef =
    ExprDef { name: "$reverseArray", help: "An array backwards.", form: Form::Exactly(1, reverse_array) };

pub(in crate::pipeline::expr) const SLICE: ExprDef = ExprDef {
    name: "$slice",
    help: "A number of elements of an array, from its start, its end or a position.",
    form: Form::Between(2, 3, slice),
};

fn concat_arrays<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut writer = ArrayWriter::new();
    for operand in operands {
        match operand.eval(scope)? {
            Value::Array(array) => {
                let array = array.borrow();
                append(&mut writer, &array);
                scope.check_size(writer.len())?;
            }
            value if value.is_nullish() => return Ok(Value::Null),
            value => return fail(28664, format!("$concatArrays only supports arrays, not {}", value.type_name())),
        }
    }
    Ok(Value::Array(writer.finish()))
}

/// Copies the elements' bytes without decoding them.
pub(in crate::pipeline::expr) fn append(writer: &mut ArrayWriter, array: &Array<'_>) {
    let mut items = array.raw_iter();
    while let Some((_, kind, bytes)) = items.next_raw() {
        writer.push_raw(kind, bytes.as_slice());
    }
}

fn reverse_array<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    match only(operands, scope)? {
        Value::Array(array) => {
            let array = array.borrow();
            let mut items: Vec<Value<'_>> = array.iter().collect();
            items.reverse();
            Ok(Value::Array(items.into_iter().collect()))
        }
        value if value.is_nullish() => Ok(Value::Null),
        value => fail(
            34435,
            format!("The argument to $reverseArray must be an array, but was of type: {}", value.type_name()),
        ),
    }
}

fn slice<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [array, first, second] = values(operands, scope)?;
    if array.is_nullish() || first.is_nullish() {
        return Ok(Value::Null);
    }
    let Value::Array(array) = array else {
        return fail(
            28724,
            format!("First argument to $slice must be an array, but is of type: {}", array.type_name()),
        );
    };
    let Some(number) = Number::of(&first) else {
        return fail(
            28725,
            format!("Second argument to $slice must be a numeric value, but is of type: {}", first.type_name()),
        );
    };
    let Some(number) = number.as_i32_exact().map(i64::from) else {
        return fail(
            28726,
            format!(
                "Second argument to $slice can't be represented as a 32-bit integer: {}",
                show::general(number.to_f64(), 6)
            ),
        );
    };
    let size = i64::try_from(array.count()).unwrap_or(i64::MAX);
    let from_end = |position: i64| if position < 0 { (size + position).max(0) } else { position.min(size) };
    let (start, end) = if operands.len() < 3 {
        if number < 0 { (from_end(number), size) } else { (0, from_end(number)) }
    } else {
        if second.is_nullish() {
            return Ok(Value::Null);
        }
        let start = from_end(number);
        (start, start.saturating_add(slice_length(&second)?).min(size))
    };
    let mut writer = ArrayWriter::new();
    let array = array.borrow();
    let mut items = array.raw_iter();
    let mut position = 0;
    while position < end
        && let Some((_, kind, bytes)) = items.next_raw()
    {
        if position >= start {
            writer.push_raw(kind, bytes.as_slice());
        }
        position += 1;
    }
    Ok(Value::Array(writer.finish()))
}

fn slice_length(value: &Value<'_>) -> Result<i64> {
    let Some(number) = Number::of(value) else {
        return fail(28727, format!("Third argument to $slice must be numeric, but is of type: {}", value.type_name()));
    };
    match number.as_i32_exact() {
        Some(length) if length > 0 => Ok(i64::from(length)),
        Some(length) => fail(28729, format!("Third argument to $slice must be positive: {length}")),
        None => fail(
            28728,
            format!(
                "Third argument to $slice can't be represented as a 32-bit integer: {}",
                show::general(number.to_f64(), 6)
            ),
        ),
    }
}

fn range<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [start, end, step] = values(operands, scope)?;
    let current =
        range_number(&start, (34443, "a numeric starting value, found value of type: "), 34444, "a starting")?;
    let end = range_number(&end, (34445, "a numeric ending value, found value of type: "), 34446, "an ending")?;
    let step = match operands.len() {
        3 => range_number(&step, (34447, "a numeric step value, found value of type:"), 34448, "a step")?,
        _ => 1,
    };
    if step == 0 {
        return fail(34449, "$range requires a non-zero step value");
    }
    let mut writer = ArrayWriter::new();
    let (mut current, end, step) = (i64::from(current), i64::from(end), i64::from(step));
    while if step > 0 { current < end } else { current > end } {
        writer.push(&Value::Int32(i32::try_from(current).unwrap_or_default()));
        scope.check_size(writer.len())?;
        current += step;
    }
    Ok(Value::Array(writer.finish()))
}

fn range_number(value: &Value<'_>, not_numeric: (i32, &str), code: i32, which: &str) -> Result<i32> {
    let Some(number) = Number::of(value) else {
        return fail(not_numeric.0, format!("$range requires {}{}", not_numeric.1, value.type_name()));
    };
    match number.as_i32_exact() {
        Some(number) => Ok(number),
        None => fail(
            code,
            format!(
                "$range requires {which} value that can be represented as a 32-bit integer, found value: {}",
                show::computed(value)
            ),
        ),
    }
}
