//! `$dateToString`: a date as text by a format, and the ISO form that other operators use.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::format::{self, ISO_FORMAT};
use super::{coerce, zone};
use crate::error::Result;
use crate::raw::Text;
use crate::value::{Value, show};

pub(in super::super) const DATE_TO_STRING: ExprDef = ExprDef {
    name: "$dateToString",
    help: "A date as text, by a format such as %Y-%m-%d.",
    form: Form::Special(parse),
};

/// `2024-02-29T13:45:10.123Z`.
pub(in super::super) fn iso_string(millis: i64) -> Result<String> {
    format::write(ISO_FORMAT, millis, &zone::UTC)
}

#[derive(Debug)]
struct ToString {
    date: Expr,
    format: Option<Expr>,
    timezone: Option<Expr>,
    on_null: Option<Expr>,
}

fn parse(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 18629, "$dateToString only supports an object as its argument")?.only(
        &["date", "format", "timezone", "onNull"],
        18534,
        "Unrecognized argument to $dateToString: ",
    )?;
    let Some(date) = arguments.expr("date", names)? else {
        return fail(18628, "Missing 'date' parameter to $dateToString");
    };
    let format = arguments.expr("format", names)?;
    let timezone = arguments.expr("timezone", names)?;
    let on_null = arguments.expr("onNull", names)?;
    Ok(custom(ToString { date, format, timezone, on_null }, names))
}

impl Operator for ToString {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let date = self.date.eval(scope)?;
        let format = match self.format.as_ref().map(|format| format.eval(scope)).transpose()? {
            None => Some(Text::from(ISO_FORMAT)),
            Some(Value::String(format)) => {
                format::check(format.as_str(), format::FOR_WRITING)?;
                Some(format)
            }
            Some(value) if value.is_nullish() => None,
            Some(value) => {
                return fail(
                    18533,
                    format!(
                        "$dateToString requires that 'format' be a string, found: {} with value {}",
                        value.type_name(),
                        show::computed(&value)
                    ),
                );
            }
        };
        let zone = zone::evaluate(self.timezone.as_ref(), "$dateToString", scope)?;
        if date.is_nullish() {
            return self.on_null.as_ref().map_or(Ok(Value::Null), |on_null| on_null.eval(scope));
        }
        let (Some(format), Some(zone)) = (format, zone) else { return Ok(Value::Null) };
        format::write(format.as_str(), coerce(&date)?, &zone).map(Value::from)
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.date);
        self.format.iter().chain(&self.timezone).chain(&self.on_null).for_each(visit);
    }
}
