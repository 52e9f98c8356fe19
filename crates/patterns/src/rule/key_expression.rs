//! A link's key that an expression computes of a source document: `$dateTrunc` of a date, parts of a name, a document of several keys.
//!
//! Where the expression would fail, the document links nowhere. MQL has no `try`, so [`KeyExpression::total`] tests the types
//! before each operator and gives null; an operator without such a test is refused, and so is what gives another value for the
//! same document at another time. Both sides of a field, pipelines and code, evaluate the same total expression.

use crate::mql::{call, call_with, cond, list, literal, object, with};
use crate::rule::seek::Seek;
use document::pipeline::expr::{Expr, Names, Scope, parse};
use document::value::Path;
use document::{Doc, Env, Error, Result, Value};

#[derive(Debug)]
pub struct KeyExpression {
    /// As it was declared.
    pub source: Value<'static>,
    /// Gives the key, or null where there is none; never fails.
    pub total: Value<'static>,
    program: Expr,
    pub reads: Vec<Path>,
    /// How the documents of a key are found by an index; `None` if they cannot be.
    pub seek: Option<Seek>,
}

impl KeyExpression {
    pub fn new(source: Value<'static>) -> Result<KeyExpression> {
        let compiled = parse(&source, &mut Names::new())?;
        let mut reads = compiled.reads().unwrap_or_default();
        reads.sort();
        reads.dedup();
        if reads.is_empty() {
            return Err(refused("it reads no field, so that every document would have the same key"));
        }
        let total = total(&source)?;
        let program = parse(&total, &mut Names::new())?;
        let seek = Seek::of(&source);
        Ok(KeyExpression { source, total, program, reads, seek })
    }

    /// The key of a document; null or missing if it has none.
    pub fn value<'d>(&'d self, doc: &'d Doc<'_>, env: &'d Env) -> Value<'d> {
        self.program.eval(&mut Scope::new(doc.borrow(), env)).unwrap_or(Value::Null)
    }
}

fn refused(why: impl std::fmt::Display) -> Error {
    Error::bad_value(format!("not a key: {why}"))
        .with_hint("a key is a field, $dateTrunc and the parts of a date, $dateToString, $concat, $toLower, $toUpper, $toString, $floor, $ceil, $divide, $mod, $ifNull, $cond, or a document of these")
}

/// An expression, and the condition under which it does not fail; `None` if it never does.
struct Checked {
    value: Value<'static>,
    condition: Option<Value<'static>>,
}

impl Checked {
    fn safe(value: Value<'static>) -> Checked {
        Checked { value, condition: None }
    }

    fn type_of(&self) -> Value<'static> {
        call("$type", self.value.borrow())
    }

    /// Requires, behind what it requires already, that the value has one of these types.
    fn of_types(self, types: &[&'static str]) -> Checked {
        let is_one = call_with("$in", [self.type_of(), list(types.iter().map(|name| Value::from(*name)))]);
        Checked { condition: both(self.condition, Some(is_one)), value: self.value }
    }

    /// Requires a date within the calendar, or one of these types.
    fn date_or(self, types: &[&'static str]) -> Checked {
        let value = || self.value.borrow();
        let in_range = call_with(
            "$and",
            [
                call_with("$gte", [value(), literal(Value::DateTime(FIRST_DATE))]),
                call_with("$lt", [value(), literal(Value::DateTime(BEHIND_DATES))]),
            ],
        );
        let is_date = call_with("$eq", [self.type_of(), Value::from("date")]);
        let is_other = call_with("$in", [self.type_of(), list(types.iter().map(|name| Value::from(*name)))]);
        let condition = both(self.condition.clone(), Some(cond(is_date, in_range, is_other)));
        Checked { condition, value: self.value }
    }

    fn then(self, value: Value<'static>) -> Checked {
        Checked { value, condition: self.condition }
    }
}

/// Both conditions; the second is only looked at where the first holds.
fn both(first: Option<Value<'static>>, second: Option<Value<'static>>) -> Option<Value<'static>> {
    match (first, second) {
        (Some(first), Some(second)) => Some(cond(first, second, Value::Bool(false))),
        (first, second) => first.or(second),
    }
}

/// What counts as null.
const NULLISH: [&str; 3] = ["missing", "null", "undefined"];
const STRINGS: [&str; 4] = ["missing", "null", "undefined", "string"];
const NUMBERS: [&str; 7] = ["missing", "null", "undefined", "int", "long", "double", "decimal"];
/// Of what operators on dates take, those whose values are all within the calendar.
const STAMPS: [&str; 5] = ["missing", "null", "undefined", "timestamp", "objectId"];
/// The years 1 to 9999: what every operator on dates can show.
const FIRST_DATE: i64 = -62_135_596_800_000;
const BEHIND_DATES: i64 = 253_402_300_800_000;

/// What `$toLower` and `$toUpper` take besides dates.
const CASED: [&str; 11] =
    ["missing", "null", "undefined", "string", "symbol", "javascript", "int", "long", "double", "decimal", "timestamp"];

/// What `$toString` takes besides dates.
const PRINTED: [&str; 10] =
    ["missing", "null", "undefined", "string", "bool", "int", "long", "double", "decimal", "objectId"];

const DATE_PARTS: [&str; 13] = [
    "$dayOfMonth",
    "$dayOfWeek",
    "$dayOfYear",
    "$hour",
    "$isoDayOfWeek",
    "$isoWeek",
    "$isoWeekYear",
    "$millisecond",
    "$minute",
    "$month",
    "$second",
    "$week",
    "$year",
];

const COMPARISONS: [&str; 6] = ["$eq", "$gt", "$gte", "$lt", "$lte", "$ne"];

/// The key, or null where the expression fails or gives what no key can be.
fn total(source: &Value<'static>) -> Result<Value<'static>> {
    let checked = part(source)?;
    let or_null = |value: Value<'static>, condition: Option<Value<'static>>| match condition {
        Some(condition) => cond(condition, value, Value::Null),
        None => value,
    };
    if plain_document(source).is_some() {
        return Ok(or_null(checked.value, checked.condition));
    }
    let key = or_null(checked.value, checked.condition);
    let never = list(["array", "regex"].map(Value::from));
    let is_none = call_with("$in", [call("$type", Value::from("$$key")), never]);
    Ok(with([("key", key)], cond(is_none, Value::Null, Value::from("$$key"))))
}

/// A document that is no operator.
fn plain_document(source: &Value<'static>) -> Option<Doc<'static>> {
    match source {
        Value::Document(doc) if operator(doc).is_none() => Some(doc.clone()),
        _ => None,
    }
}

fn operator<'d>(doc: &'d Doc<'static>) -> Option<(String, Value<'d>)> {
    let (name, argument) = doc.iter().next()?;
    name.as_str().starts_with('$').then(|| (name.as_str().to_owned(), argument))
}

/// A part of a key: an expression; of a document all its parts, none of which may be an array.
fn part(source: &Value<'static>) -> Result<Checked> {
    let Some(parts) = plain_document(source) else { return checked(source) };
    if parts.is_empty() {
        return Err(refused("an empty document"));
    }
    let mut condition = None;
    for (_, value) in parts.iter() {
        let value = value.into_owned();
        let inner = part(&value)?;
        let is_single = match plain_document(&value) {
            Some(_) => None,
            None => Some(call_with("$not", [call("$isArray", inner.value.borrow())])),
        };
        condition = both(condition, both(inner.condition, is_single));
    }
    Ok(Checked { value: source.clone(), condition })
}

fn checked(source: &Value<'static>) -> Result<Checked> {
    match source {
        Value::String(text) if text.as_str().starts_with("$$") => {
            Err(refused(format!("the variable {}", text.as_str())))
        }
        Value::Array(_) => Err(refused("an array")),
        Value::Document(doc) => match operator(doc) {
            Some((name, argument)) => call_checked(&name, &argument.into_owned(), source),
            None => Err(refused("a document inside an operator")),
        },
        plain => Ok(Checked::safe(plain.clone())),
    }
}

fn call_checked(name: &str, argument: &Value<'static>, source: &Value<'static>) -> Result<Checked> {
    match name {
        "$literal" if matches!(argument, Value::Array(_)) => Err(refused("an array")),
        "$literal" => Ok(Checked::safe(source.clone())),
        "$concat" => all(operands(argument), &STRINGS, source),
        "$toLower" | "$toUpper" => printed(name, argument, &CASED, source),
        "$floor" | "$ceil" => all(operands(argument), &NUMBERS, source),
        "$toString" => printed(name, argument, &PRINTED, source),
        "$divide" | "$mod" => by_constant(name, argument, source),
        "$ifNull" => if_null(argument, source),
        "$cond" => conditional(argument, source),
        "$dateTrunc" | "$dateToString" => dated(name, argument, source),
        _ if DATE_PARTS.contains(&name) => dated(name, argument, source),
        _ if COMPARISONS.contains(&name) => all(operands(argument), &[], source),
        "$and" | "$or" | "$not" => {
            let whole = all(operands(argument), &[], source)?;
            match whole.condition {
                // Whether the rest is looked at depends on the first ones.
                Some(_) => Err(refused(format!("{name} of what may fail"))),
                None => Ok(whole),
            }
        }
        _ => Err(refused(format!("{name} may fail, and no condition says when"))),
    }
}

/// The operands of an operator: one that stands alone needs no array.
fn operands(argument: &Value<'static>) -> Vec<Value<'static>> {
    match argument {
        Value::Array(items) => items.iter().map(Value::into_owned).collect(),
        one => vec![one.clone()],
    }
}

/// An operator that looks at all its operands; of any type if none is given.
fn all(operands: Vec<Value<'static>>, types: &[&'static str], source: &Value<'static>) -> Result<Checked> {
    let mut condition = None;
    for operand in &operands {
        let mut operand = checked(operand)?;
        if !types.is_empty() {
            operand = operand.of_types(types);
        }
        condition = both(condition, operand.condition);
    }
    Ok(Checked { value: source.clone(), condition })
}

/// An operator that makes a text of dates and of some other types.
fn printed(name: &str, argument: &Value<'static>, types: &[&'static str], source: &Value<'static>) -> Result<Checked> {
    match operands(argument).as_slice() {
        [operand] => Ok(checked(operand)?.date_or(types).then(source.clone())),
        _ => Err(refused(format!("{name} takes one operand"))),
    }
}

/// `[ <expression>, <number> ]`, the number not zero.
fn by_constant(name: &str, argument: &Value<'static>, source: &Value<'static>) -> Result<Checked> {
    let operands = operands(argument);
    let (Value::Array(_), [of, by]) = (argument, operands.as_slice()) else {
        return Err(refused(format!("{name} takes two operands")));
    };
    match by.as_number() {
        Some(number) if !number.is_nan() && !number.is_infinite() && by.is_truthy() => {
            Ok(checked(of)?.of_types(&NUMBERS).then(source.clone()))
        }
        _ => Err(refused(format!("{name} by anything but a number that is not 0"))),
    }
}

fn if_null(argument: &Value<'static>, source: &Value<'static>) -> Result<Checked> {
    let mut condition = None;
    for operand in operands(argument).iter().rev() {
        let operand = checked(operand)?;
        let rest = condition.take().map(|rest| {
            let is_null = call_with("$in", [operand.type_of(), list(NULLISH.map(Value::from))]);
            cond(is_null, rest, Value::Bool(true))
        });
        condition = both(operand.condition, rest);
    }
    Ok(Checked { value: source.clone(), condition })
}

fn conditional(argument: &Value<'static>, source: &Value<'static>) -> Result<Checked> {
    let parts = match argument {
        Value::Document(named) => {
            ["if", "then", "else"].iter().filter_map(|name| named.get(name).map(Value::into_owned)).collect()
        }
        other => operands(other),
    };
    let [test, then, otherwise] = parts.as_slice() else { return Err(refused("$cond takes three operands")) };
    let (test, then, otherwise) = (checked(test)?, checked(then)?, checked(otherwise)?);
    let taken = match (then.condition, otherwise.condition) {
        (None, None) => None,
        (then, otherwise) => {
            let always = || Value::Bool(true);
            Some(cond(test.value, then.unwrap_or_else(always), otherwise.unwrap_or_else(always)))
        }
    };
    Ok(Checked { value: source.clone(), condition: both(test.condition, taken) })
}

/// An operator on a date: `{ date, … }` with constants besides, or the date alone.
fn dated(name: &str, argument: &Value<'static>, source: &Value<'static>) -> Result<Checked> {
    let date = match argument {
        Value::Document(named) if operator(named).is_none() => {
            let mut fields = Vec::new();
            for (field, value) in named.iter().filter(|(field, _)| field.as_str() != "date") {
                if matches!(&value, Value::Document(_) | Value::Array(_))
                    || value.as_str().is_some_and(|text| text.starts_with('$'))
                {
                    return Err(refused(format!("{name} with a {field} that is not constant")));
                }
                fields.push((field.as_str().to_owned(), value.into_owned()));
            }
            fields.push(("date".to_owned(), Value::DateTime(0)));
            // What is wrong with the constants shows with any date.
            let sample = object([(name, object(fields.iter().map(|(field, value)| (&**field, value.borrow()))))]);
            parse(&sample, &mut Names::new())?.eval(&mut Scope::new(Doc::empty(), &Env::fixed()))?;
            named.get("date").map_or(Value::Null, Value::into_owned)
        }
        other => match operands(other).as_slice() {
            [date] => date.clone(),
            _ => return Err(refused(format!("{name} takes one date"))),
        },
    };
    Ok(checked(&date)?.date_or(&STAMPS).then(source.clone()))
}
