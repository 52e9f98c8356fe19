//! Strings: joining, case, length, parts, search, splitting. Bytes and code points are counted apart, as the names say.

use super::form::{fail, only, values};
use super::text::{coerce, string_of};
use super::{Expr, ExprDef, Form, Scope};
use crate::error::Result;
use crate::raw::{ArrayWriter, Text};
use crate::value::number::Number;
use crate::value::{Value, show};

pub(super) const CONCAT: ExprDef =
    ExprDef { name: "$concat", help: "Strings joined together.", form: Form::Associative(concat) };
pub(super) const INDEX_OF_BYTES: ExprDef = ExprDef {
    name: "$indexOfBytes",
    help: "Where a string occurs in another, counted in bytes; -1 if it does not.",
    form: Form::Between(2, 4, |operands, scope| index_of("$indexOfBytes", 40091, operands, scope, find_bytes)),
};
pub(super) const INDEX_OF_CP: ExprDef = ExprDef {
    name: "$indexOfCP",
    help: "Where a string occurs in another, counted in code points; -1 if it does not.",
    form: Form::Between(2, 4, |operands, scope| index_of("$indexOfCP", 40093, operands, scope, find_code_points)),
};
pub(super) const SPLIT: ExprDef =
    ExprDef { name: "$split", help: "The parts of a string between separators.", form: Form::Exactly(2, split) };
pub(super) const STR_LEN_BYTES: ExprDef = ExprDef {
    name: "$strLenBytes",
    help: "The length of a string in bytes.",
    form: Form::Exactly(1, |operands, scope| length("$strLenBytes", 34473, operands, scope, str::len)),
};
pub(super) const STR_LEN_CP: ExprDef = ExprDef {
    name: "$strLenCP",
    help: "The length of a string in code points.",
    form: Form::Exactly(1, |operands, scope| length("$strLenCP", 34471, operands, scope, |text| text.chars().count())),
};
pub(super) const STRCASECMP: ExprDef = ExprDef {
    name: "$strcasecmp",
    help: "Compares two strings without regard to the case of ASCII letters: -1, 0 or 1.",
    form: Form::Exactly(2, compare_ignoring_case),
};
pub(super) const SUBSTR: ExprDef =
    ExprDef { name: "$substr", help: "The old name of $substrBytes.", form: Form::Exactly(3, substring_bytes) };
pub(super) const SUBSTR_BYTES: ExprDef = ExprDef {
    name: "$substrBytes",
    help: "Part of a string, by byte index and number of bytes.",
    form: Form::Exactly(3, substring_bytes),
};
pub(super) const SUBSTR_CP: ExprDef = ExprDef {
    name: "$substrCP",
    help: "Part of a string, by code point index and number of code points.",
    form: Form::Exactly(3, substring_code_points),
};
pub(super) const TO_LOWER: ExprDef = ExprDef {
    name: "$toLower",
    help: "A string with its ASCII letters in lower case.",
    form: Form::Exactly(1, |operands, scope| Ok(coerce(&only(operands, scope)?)?.to_ascii_lowercase().into())),
};
pub(super) const TO_UPPER: ExprDef = ExprDef {
    name: "$toUpper",
    help: "A string with its ASCII letters in upper case.",
    form: Form::Exactly(1, |operands, scope| Ok(coerce(&only(operands, scope)?)?.to_ascii_uppercase().into())),
};

fn concat<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let mut joined = String::new();
    for operand in operands {
        match operand.eval(scope)? {
            Value::String(text) => joined.push_str(text.as_str()),
            value if value.is_nullish() => return Ok(Value::Null),
            value => return fail(16702, format!("$concat only supports strings, not {}", value.type_name())),
        }
        scope.check_size(joined.len())?;
    }
    Ok(joined.into())
}

fn compare_ignoring_case<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [left, right] = values(operands, scope)?;
    let order = coerce(&left)?.to_ascii_uppercase().cmp(&coerce(&right)?.to_ascii_uppercase());
    Ok(Value::Int32(order as i32))
}

fn length<'a>(
    name: &str,
    code: i32,
    operands: &'a [Expr],
    scope: &mut Scope<'a>,
    measure: fn(&str) -> usize,
) -> Result<Value<'a>> {
    let value = only(operands, scope)?;
    match string_of(&value) {
        Some(text) => Ok(Value::Int32(i32::try_from(measure(text)).unwrap_or(i32::MAX))),
        None => fail(code, format!("{name} requires a string argument, found: {}", value.type_name())),
    }
}

fn substring_bytes<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [text, start, length] = values(operands, scope)?;
    let text = coerce(&text)?;
    let number = |value: &Value<'_>, code, what| match Number::of(value) {
        Some(number) => Ok(number.to_i64_saturated()),
        None => {
            fail(code, format!("$substrBytes:  {what} must be a numeric type (is BSON type {})", value.type_name()))
        }
    };
    let (start, length) = (number(&start, 16034, "starting index")?, number(&length, 16035, "length")?);
    let Ok(start) = usize::try_from(start) else {
        return fail(50752, format!("$substrBytes:  starting index must be non-negative (got: {start})"));
    };
    if start >= text.len() {
        return Ok("".into());
    }
    // A negative length means the rest.
    let end = usize::try_from(length).map_or(text.len(), |length| start.saturating_add(length).min(text.len()));
    if !text.is_char_boundary(start) {
        return fail(28656, "$substrBytes:  Invalid range, starting index is a UTF-8 continuation byte.");
    }
    match text.get(start..end) {
        Some(part) => Ok(part.to_owned().into()),
        None => fail(28657, "$substrBytes:  Invalid range, ending index is in the middle of a UTF-8 character."),
    }
}

fn substring_code_points<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [text, start, length] = values(operands, scope)?;
    let text = coerce(&text)?;
    let number = |value: &Value<'_>, code, what| match Number::of(value).map(Number::as_i32_exact) {
        Some(Some(number)) => Ok(number),
        Some(None) => fail(
            code + 1,
            format!("$substrCP: {what} cannot be represented as a 32-bit integral value: {}", show::computed(value)),
        ),
        None => fail(code, format!("$substrCP: {what} must be a numeric type (is BSON type {})", value.type_name())),
    };
    let (start, length) = (number(&start, 34450, "starting index")?, number(&length, 34452, "length")?);
    let Ok(length) = usize::try_from(length) else {
        return fail(34454, "$substrCP: length must be a nonnegative integer.");
    };
    let Ok(start) = usize::try_from(start) else {
        return fail(34455, "$substrCP: the starting index must be nonnegative integer.");
    };
    Ok(text.chars().skip(start).take(length).collect::<String>().into())
}

type Find = fn(&str, &str, usize, Option<usize>) -> Option<usize>;

fn index_of<'a>(name: &str, code: i32, operands: &'a [Expr], scope: &mut Scope<'a>, find: Find) -> Result<Value<'a>> {
    // The first operand is judged before the others are looked at, as in MongoDB.
    let text = only(operands, scope)?;
    if text.is_nullish() {
        return Ok(Value::Null);
    }
    let Some(text) = string_of(&text) else {
        return fail(code, format!("{name} requires a string as the first argument, found: {}", text.type_name()));
    };
    let [token, start, end] = values(operands.get(1..).unwrap_or_default(), scope)?;
    let Some(token) = string_of(&token) else {
        return fail(
            code + 1,
            format!("{name} requires a string as the second argument, found: {}", token.type_name()),
        );
    };
    let start = if operands.len() > 2 { index(name, &start, "starting")? } else { 0 };
    let end = if operands.len() > 3 { Some(index(name, &end, "ending")?) } else { None };
    let found = find(text, token, start, end).and_then(|at| i32::try_from(at).ok()).unwrap_or(-1);
    Ok(Value::Int32(found))
}

/// The missing space after the name is MongoDB's.
fn index(name: &str, value: &Value<'_>, which: &str) -> Result<usize> {
    let Some(number) = Number::of(value).and_then(Number::as_i32_exact) else {
        return fail(
            40096,
            format!(
                "{name}requires an integral {which} index, found a value of type: {}, with value: {}",
                value.type_name(),
                show::computed(value)
            ),
        );
    };
    usize::try_from(number)
        .or_else(|_| fail(40097, format!("{name} requires a nonnegative {which} index, found: {number}")))
}

fn find_bytes(text: &str, token: &str, start: usize, end: Option<usize>) -> Option<usize> {
    let end = end.unwrap_or(text.len()).min(text.len());
    let part = text.as_bytes().get(start..end)?;
    memchr::memmem::find(part, token.as_bytes()).map(|at| start + at)
}

fn find_code_points(text: &str, token: &str, start: usize, end: Option<usize>) -> Option<usize> {
    let end = end.unwrap_or(usize::MAX);
    text.char_indices()
        .enumerate()
        .skip(start)
        .take_while(|(count, _)| *count < end)
        .find(|(count, (at, _))| {
            text.get(*at..).is_some_and(|rest| rest.starts_with(token)) && *count + token.chars().count() <= end
        })
        .map(|(count, _)| count)
        // The empty string is in the empty string too.
        .or_else(|| (text.is_empty() && token.is_empty() && start == 0).then_some(0))
}

fn split<'a>(operands: &'a [Expr], scope: &mut Scope<'a>) -> Result<Value<'a>> {
    let [text, separator] = values(operands, scope)?;
    if text.is_nullish() || separator.is_nullish() {
        return Ok(Value::Null);
    }
    let needs = |which: &str, value: &Value<'_>| {
        format!(
            "$split requires an expression that evaluates to a string as a {which} argument, found: {}",
            value.type_name()
        )
    };
    let Some(text) = string_of(&text) else { return fail(40085, needs("first", &text)) };
    let Some(separator) = string_of(&separator) else { return fail(40086, needs("second", &separator)) };
    if separator.is_empty() {
        return fail(40087, "$split requires a non-empty separator");
    }
    let mut parts = ArrayWriter::new();
    for part in text.split(separator) {
        parts.push(&Value::String(Text::borrowed(part)));
    }
    Ok(Value::Array(parts.finish()))
}
