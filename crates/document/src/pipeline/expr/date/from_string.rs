//! `$dateFromString`: a date from text, by a format or in the common notations.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::format;
use super::read::{self, Reading};
use super::zone::{self, Zone};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::value::{Value, show};

pub(in super::super) const DATE_FROM_STRING: ExprDef = ExprDef {
    name: "$dateFromString",
    help: "The date that a string says, by a format or in the common notations.",
    form: Form::Special(parse),
};

#[derive(Debug)]
struct FromString {
    text: Expr,
    format: Option<Expr>,
    timezone: Option<Expr>,
    on_null: Option<Expr>,
    on_error: Option<Expr>,
}

fn parse(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let otherwise = format!("$dateFromString only supports an object as an argument, found: {}", argument.type_name());
    let arguments = Arguments::of(argument, 40540, otherwise)?.only(
        &["dateString", "format", "timezone", "onNull", "onError"],
        40541,
        "Unrecognized argument to $dateFromString: ",
    )?;
    let Some(text) = arguments.expr("dateString", names)? else {
        return fail(40542, "Missing 'dateString' parameter to $dateFromString");
    };
    let format = arguments.expr("format", names)?;
    let timezone = arguments.expr("timezone", names)?;
    let on_null = arguments.expr("onNull", names)?;
    let on_error = arguments.expr("onError", names)?;
    Ok(custom(FromString { text, format, timezone, on_null, on_error }, names))
}

impl Operator for FromString {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let text = self.text.eval(scope)?;
        // A bad format is an error whatever the text is.
        let format = match self.format.as_ref().map(|format| format.eval(scope)).transpose()? {
            None => Some(None),
            Some(Value::String(format)) => {
                format::check(format.as_str(), format::FOR_READING)?;
                Some(Some(format))
            }
            Some(value) if value.is_nullish() => None,
            Some(value) => {
                return fail(
                    40684,
                    format!(
                        "$dateFromString requires that 'format' be a string, found: {} with value {}",
                        value.type_name(),
                        show::computed(&value)
                    ),
                );
            }
        };
        let zone = zone::evaluate(self.timezone.as_ref(), "$dateFromString", scope)?;
        if text.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::Null), |on_null| on_null.eval(scope));
        }
        let read = match &text {
            Value::String(text) => {
                let (Some(format), Some(zone)) = (format, zone) else { return Ok(Value::Null) };
                let zone = self.timezone.is_some().then_some(zone);
                date(text.as_str(), format.as_ref().map(|format| format.as_str()), zone.as_ref())
            }
            value => Err(Error::new(
                Code::ConversionFailure,
                format!(
                    "$dateFromString requires that 'dateString' be a string, found: {} with value {}",
                    value.type_name(),
                    show::computed(value)
                ),
            )),
        };
        match (read, &self.on_error) {
            (Ok(millis), _) => Ok(Value::DateTime(millis)),
            (Err(error), Some(on_error)) if error.code() == Code::ConversionFailure => on_error.eval(scope),
            (Err(error), _) => Err(error),
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.text);
        self.format.iter().chain(&self.timezone).chain(&self.on_null).chain(&self.on_error).for_each(visit);
    }
}

/// As `$toDate` reads a string.
pub(in super::super) fn parse_date(text: &str) -> Result<i64> {
    date(text, None, None)
}

fn failure<T>(message: String) -> Result<T> {
    Err(Error::new(Code::ConversionFailure, message))
}

fn date(text: &str, format: Option<&str>, zone: Option<&Zone>) -> Result<i64> {
    let reading = match format {
        Some(format) => read::by_format(text, format),
        None => read::freely(text),
    };
    let reading: Reading = match reading {
        Ok(reading) => reading,
        Err((at, what)) => {
            let character = text.get(at..).and_then(|rest| rest.chars().next()).unwrap_or('\0');
            return failure(format!("Error parsing date string '{text}'; {at}: {what} '{character}'"));
        }
    };
    let Some(local) = reading.local() else {
        return failure(format!("an incomplete date/time string has been found, with elements missing: \"{text}\""));
    };
    match (reading.zone, zone) {
        (Some(read::Stated::Offset(_)), Some(_)) => {
            failure("you cannot pass in a date/time string with GMT offset together with a timezone argument".into())
        }
        (Some(read::Stated::Name(_, name)), Some(_)) => failure(format!(
            "you cannot pass in a date/time string with time zone information ('{name}') together with a timezone argument"
        )),
        (Some(read::Stated::Offset(millis) | read::Stated::Name(millis, _)), None) => Ok(local.saturating_sub(millis)),
        (None, Some(zone)) => Ok(zone.utc(local)),
        (None, None) => Ok(local),
    }
}
