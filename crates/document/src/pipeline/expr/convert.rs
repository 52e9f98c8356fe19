//! Conversion between types: `$convert`, its short forms `$toInt`, `$toDate` …, and `$type` and `$isNumber`.

use super::date::{iso_string, parse_date};
use super::form::{Arguments, custom, fail, only};
use super::{Expr, ExprDef, Form, Names, Operator, Scope, parse, text};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::kind;
use crate::value::number::Number;
use crate::value::{Decimal128, Value, show};

pub(super) const CONVERT: ExprDef =
    ExprDef { name: "$convert", help: "A value converted to a type.", form: Form::Special(parse_convert) };
pub(super) const IS_NUMBER: ExprDef = ExprDef {
    name: "$isNumber",
    help: "Whether a value is a number.",
    form: Form::Exactly(1, |operands, scope| Ok(Value::Bool(only(operands, scope)?.is_number()))),
};
pub(super) const TYPE: ExprDef = ExprDef {
    name: "$type",
    help: "The name of a value's type.",
    form: Form::Exactly(1, |operands, scope| Ok(only(operands, scope)?.type_name().into())),
};

macro_rules! short_forms {
    ($($constant:ident, $name:literal, $help:literal, $target:expr;)*) => {$(
        pub(super) const $constant: ExprDef = ExprDef {
            name: $name,
            help: $help,
            form: Form::Special(|argument, names| parse_short($name, $target, argument, names)),
        };
    )*};
}

short_forms! {
    TO_BOOL, "$toBool", "A value as a boolean.", Target { kind: kind::BOOL, name: "bool" };
    TO_DATE, "$toDate", "A value as a date.", Target { kind: kind::DATE_TIME, name: "date" };
    TO_DECIMAL, "$toDecimal", "A value as a decimal.", Target { kind: kind::DECIMAL, name: "decimal" };
    TO_DOUBLE, "$toDouble", "A value as a double.", Target { kind: kind::DOUBLE, name: "double" };
    TO_INT, "$toInt", "A value as a 32-bit integer.", Target { kind: kind::INT32, name: "int" };
    TO_LONG, "$toLong", "A value as a 64-bit integer.", Target { kind: kind::INT64, name: "long" };
    TO_OBJECT_ID, "$toObjectId", "A value as an ObjectId.", Target { kind: kind::OBJECT_ID, name: "objectId" };
    TO_STRING, "$toString", "A value as a string.", Target { kind: kind::STRING, name: "string" };
}

/// The type to convert to. `missing` has no type byte of its own: 0.
#[derive(Clone, Copy, Debug)]
struct Target {
    kind: u8,
    name: &'static str,
}

const TARGETS: &[Target] = &[
    Target { kind: 0, name: "missing" },
    Target { kind: kind::DOUBLE, name: "double" },
    Target { kind: kind::STRING, name: "string" },
    Target { kind: kind::DOCUMENT, name: "object" },
    Target { kind: kind::ARRAY, name: "array" },
    Target { kind: kind::BINARY, name: "binData" },
    Target { kind: kind::UNDEFINED, name: "undefined" },
    Target { kind: kind::OBJECT_ID, name: "objectId" },
    Target { kind: kind::BOOL, name: "bool" },
    Target { kind: kind::DATE_TIME, name: "date" },
    Target { kind: kind::NULL, name: "null" },
    Target { kind: kind::REGEX, name: "regex" },
    Target { kind: kind::DB_POINTER, name: "dbPointer" },
    Target { kind: kind::CODE, name: "javascript" },
    Target { kind: kind::SYMBOL, name: "symbol" },
    Target { kind: kind::CODE_WITH_SCOPE, name: "javascriptWithScope" },
    Target { kind: kind::INT32, name: "int" },
    Target { kind: kind::TIMESTAMP, name: "timestamp" },
    Target { kind: kind::INT64, name: "long" },
    Target { kind: kind::DECIMAL, name: "decimal" },
    Target { kind: kind::MIN_KEY, name: "minKey" },
    Target { kind: kind::MAX_KEY, name: "maxKey" },
];

#[derive(Debug)]
struct Convert {
    input: Expr,
    to: Expr,
    on_error: Option<Expr>,
    on_null: Option<Expr>,
}

fn parse_convert(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let no_object = (9, "expects an object of named arguments but found: ");
    let arguments = Arguments::named("$convert", argument, no_object, &["input", "to", "onError", "onNull"], 9)?;
    let input = arguments.required_expr("input", 9, "Missing 'input' parameter to $convert", names)?;
    let to = arguments.required_expr("to", 9, "Missing 'to' parameter to $convert", names)?;
    let on_error = arguments.expr("onError", names)?;
    let on_null = arguments.expr("onNull", names)?;
    Ok(custom(Convert { input, to, on_error, on_null }, names))
}

fn parse_short(name: &'static str, target: Target, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let input = match argument {
        Value::Array(array) => match (array.count(), array.get(0)) {
            (1, Some(only)) => parse(&only, names)?,
            (count, _) => {
                return fail(50723, format!("{name} requires a single argument, got {count}"));
            }
        },
        single => parse(single, names)?,
    };
    let to = Expr::Const(Value::string(target.name));
    Ok(custom(Convert { input, to, on_error: None, on_null: None }, names))
}

impl Operator for Convert {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let to = self.to.eval(scope)?;
        let input = self.input.eval(scope)?;
        let target = if to.is_nullish() { None } else { Some(target(&to)?) };
        if input.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::Null), |on_null| on_null.eval(scope));
        }
        let Some(target) = target else { return Ok(Value::Null) };
        match (convert(&input, target), &self.on_error) {
            (Err(error), Some(on_error)) if error.code() == Code::ConversionFailure => on_error.eval(scope),
            (result, _) => result,
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.input);
        visit(&self.to);
        self.on_error.iter().chain(&self.on_null).for_each(visit);
    }
}

fn target(to: &Value<'_>) -> Result<Target> {
    if let Value::String(name) = to {
        return match TARGETS.iter().find(|target| target.name == name.as_str()) {
            Some(target) => Ok(*target),
            None => Err(Error::bad_value(format!("Unknown type name: {name}"))),
        };
    }
    let Some(number) = Number::of(to) else {
        return fail(9, format!("$convert's 'to' argument must be a string or number, but is {}", to.type_name()));
    };
    let Some(number) = number.as_i32_exact() else {
        return fail(9, "In $convert, numeric 'to' argument is not an integer");
    };
    let known = TARGETS.iter().find(|target| match target.kind {
        kind::MIN_KEY => number == -1,
        kind => i32::from(kind) == number,
    });
    match known {
        Some(target) => Ok(*target),
        None => fail(9, format!("In $convert, numeric value for 'to' does not correspond to a BSON type: {number}")),
    }
}

fn failure<T>(message: String) -> Result<T> {
    Err(Error::new(Code::ConversionFailure, message))
}

const NO_ERROR_VALUE: &str = "in $convert with no onError value";

fn convert<'a>(input: &Value<'a>, target: Target) -> Result<Value<'a>> {
    if input.kind() == Some(target.kind) && supported(target.kind) {
        return Ok(input.clone());
    }
    let unsupported =
        || failure(format!("Unsupported conversion from {} to {} {NO_ERROR_VALUE}", input.type_name(), target.name));
    let number = Number::of(input);
    match target.kind {
        kind::BOOL => Ok(Value::Bool(input.is_truthy())),
        kind::INT32 => match (number, input) {
            (Some(number), _) => whole(number, number.to_i32_truncated(), input).map(Value::Int32),
            (_, Value::Bool(truth)) => Ok(Value::Int32(i32::from(*truth))),
            (_, Value::String(text)) => {
                let number = parse_whole(text.as_str())?;
                i32::try_from(number).map(Value::Int32).or_else(|_| unparsed(text.as_str(), "Overflow"))
            }
            _ => unsupported(),
        },
        kind::INT64 => match (number, input) {
            (Some(number), _) => whole(number, number.to_i64_truncated(), input).map(Value::Int64),
            (_, Value::Bool(truth)) => Ok(Value::Int64(i64::from(*truth))),
            (_, Value::DateTime(millis)) => Ok(Value::Int64(*millis)),
            (_, Value::String(text)) => parse_whole(text.as_str()).map(Value::Int64),
            _ => unsupported(),
        },
        kind::DOUBLE => match (number, input) {
            (Some(number), _) => to_double(number, input),
            (_, Value::Bool(truth)) => Ok(Value::Double(f64::from(u8::from(*truth)))),
            (_, Value::DateTime(millis)) => Ok(Value::Double(Number::Int64(*millis).to_f64())),
            (_, Value::String(text)) => parse_double(text.as_str()).map(Value::Double),
            _ => unsupported(),
        },
        kind::DECIMAL => match (number, input) {
            (Some(number), _) => Ok(Value::Decimal(number.to_decimal())),
            (_, Value::Bool(truth)) => Ok(Value::Decimal(Decimal128::from_i64(i64::from(*truth)))),
            (_, Value::DateTime(millis)) => Ok(Value::Decimal(Decimal128::from_i64(*millis))),
            (_, Value::String(text)) => parse_decimal(text.as_str()).map(Value::Decimal),
            _ => unsupported(),
        },
        kind::STRING => match input {
            Value::Bool(truth) => Ok(truth.to_string().into()),
            Value::ObjectId(_) => Ok(show::computed(input).to_string().into()),
            Value::DateTime(millis) => iso_string(*millis).map(Value::from),
            _ if number.is_some() => Ok(text::number(input).into()),
            _ => unsupported(),
        },
        kind::DATE_TIME => match (number, input) {
            (Some(Number::Int32(_)), _) => unsupported(),
            (Some(number), _) => whole(number, number.to_i64_truncated(), input).map(Value::DateTime),
            (_, Value::String(text)) => parse_date(text.as_str()).map(Value::DateTime),
            (_, Value::ObjectId([a, b, c, d, ..])) => {
                Ok(Value::DateTime(i64::from(u32::from_be_bytes([*a, *b, *c, *d])) * 1000))
            }
            (_, Value::Timestamp(bits)) => Ok(Value::DateTime(i64::try_from(bits >> 32).unwrap_or_default() * 1000)),
            _ => unsupported(),
        },
        kind::OBJECT_ID => match input {
            Value::String(text) => parse_object_id(text.as_str()).map(Value::ObjectId),
            _ => unsupported(),
        },
        _ => unsupported(),
    }
}

/// The types that a value of the same type is converted to by staying as it is.
fn supported(kind: u8) -> bool {
    matches!(
        kind,
        kind::BOOL
            | kind::INT32
            | kind::INT64
            | kind::DOUBLE
            | kind::DECIMAL
            | kind::STRING
            | kind::DATE_TIME
            | kind::OBJECT_ID
    )
}

/// A number without its fraction, or why it has none that fits.
fn whole<T>(number: Number, truncated: Option<T>, input: &Value<'_>) -> Result<T> {
    match truncated {
        Some(whole) => Ok(whole),
        None if number.is_nan() => failure(format!("Attempt to convert NaN value to integer type {NO_ERROR_VALUE}")),
        None if number.is_infinite() => {
            failure(format!("Attempt to convert infinity value to integer type {NO_ERROR_VALUE}"))
        }
        // MongoDB prints the number unless it is a long.
        None => {
            let shown = if matches!(number, Number::Int64(_)) { String::new() } else { text::number(input) };
            failure(format!("Conversion would overflow target type {NO_ERROR_VALUE}: {shown}"))
        }
    }
}

fn to_double<'a>(number: Number, input: &Value<'_>) -> Result<Value<'a>> {
    let double = number.to_f64();
    // A decimal below the normal doubles loses digits, which MongoDB takes for an overflow too.
    let too_small = matches!(number, Number::Decimal(_)) && double.abs() < f64::MIN_POSITIVE && !number.is_zero();
    if double.is_infinite() && !number.is_infinite() || too_small {
        return failure(format!("Conversion would overflow target type {NO_ERROR_VALUE}: {}", text::number(input)));
    }
    Ok(Value::Double(double))
}

fn unparsed<T>(text: &str, why: &str) -> Result<T> {
    failure(format!("Failed to parse number '{text}' {NO_ERROR_VALUE}: {why}"))
}

fn refuse_hexadecimal(text: &str) -> Result<()> {
    let digits = text.trim_start_matches(['+', '-']);
    match digits.starts_with("0x") || digits.starts_with("0X") {
        true => failure(format!("Illegal hexadecimal input {NO_ERROR_VALUE}: {text}")),
        false => Ok(()),
    }
}

fn parse_whole(text: &str) -> Result<i64> {
    refuse_hexadecimal(text)?;
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() {
        return unparsed(text, "No digits");
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return unparsed(text, "Did not consume whole string.");
    }
    text.parse().or_else(|_| unparsed(text, "Overflow"))
}

fn parse_double(text: &str) -> Result<f64> {
    refuse_hexadecimal(text)?;
    if text.is_empty() {
        return unparsed(text, "Empty string");
    }
    if text.starts_with([' ', '\t', '\n', '\r', '\u{b}', '\u{c}']) {
        return unparsed(text, "Leading whitespace");
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) => {
            unparsed(text, "Out of range")
        }
        Ok(number) => Ok(number),
        Err(_) => {
            let starts = text.trim_start_matches(['+', '-', '.']).starts_with(|c: char| c.is_ascii_digit());
            unparsed(text, if starts { "Did not consume whole string." } else { "Did not consume any digits" })
        }
    }
}

fn parse_decimal(text: &str) -> Result<Decimal128> {
    refuse_hexadecimal(text)?;
    if text.is_empty() {
        return unparsed(text, "Empty string");
    }
    text.parse().or_else(|()| unparsed(text, "Failed to parse string to decimal"))
}

fn parse_object_id(text: &str) -> Result<[u8; 12]> {
    let why = |why: String| failure(format!("Failed to parse objectId '{text}' {NO_ERROR_VALUE}: {why}"));
    if text.len() != 24 {
        return why(format!("Invalid string length for parsing to OID, expected 24 but found {}", text.len()));
    }
    let mut id = [0; 12];
    for (byte, pair) in id.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = std::str::from_utf8(pair).unwrap_or_default();
        match u8::from_str_radix(digits, 16) {
            Ok(number) if !digits.starts_with('+') => *byte = number,
            _ => {
                let bad = digits.chars().find(|digit| !digit.is_ascii_hexdigit()).unwrap_or_default();
                return why(format!("Invalid character found in hex string: {}", bad.escape_default()));
            }
        }
    }
    Ok(id)
}
