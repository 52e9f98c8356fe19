//! `$dateToParts`: a date as a document of its parts.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::{coerce, zone};
use crate::error::Result;
use crate::raw::DocWriter;
use crate::value::Value;
use crate::value::calendar::Moment;

pub(in super::super) const DATE_TO_PARTS: ExprDef = ExprDef {
    name: "$dateToParts",
    help: "The parts of a date as a document, by the calendar or by ISO weeks.",
    form: Form::Special(parse),
};

#[derive(Debug)]
struct ToParts {
    date: Expr,
    timezone: Option<Expr>,
    iso8601: Option<Expr>,
}

fn parse(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 40524, "$dateToParts only supports an object as its argument")?.only(
        &["date", "timezone", "iso8601"],
        40520,
        "Unrecognized argument to $dateToParts: ",
    )?;
    let Some(date) = arguments.expr("date", names)? else {
        return fail(40522, "Missing 'date' parameter to $dateToParts");
    };
    let timezone = arguments.expr("timezone", names)?;
    let iso8601 = arguments.expr("iso8601", names)?;
    Ok(custom(ToParts { date, timezone, iso8601 }, names))
}

impl Operator for ToParts {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let date = self.date.eval(scope)?;
        let Some(zone) = zone::evaluate(self.timezone.as_ref(), "$dateToParts", scope)? else { return Ok(Value::Null) };
        let iso = match self.iso8601.as_ref().map(|iso| iso.eval(scope)).transpose()? {
            None => false,
            Some(Value::Bool(iso)) => iso,
            Some(value) if value.is_nullish() => return Ok(Value::Null),
            Some(value) => return fail(40521, format!("iso8601 must evaluate to a bool, found {}", value.type_name())),
        };
        if date.is_nullish() {
            return Ok(Value::Null);
        }
        let moment = Moment::of(zone.local(coerce(&date)?));
        let (iso_year, iso_week) = moment.iso_week();
        let date_parts = match iso {
            true => [("isoWeekYear", iso_year), ("isoWeek", iso_week), ("isoDayOfWeek", moment.iso_weekday())],
            false => [("year", moment.year), ("month", moment.month), ("day", moment.day)],
        };
        let time_parts = [
            ("hour", moment.hour),
            ("minute", moment.minute),
            ("second", moment.second),
            ("millisecond", moment.millisecond),
        ];
        let mut parts = DocWriter::new();
        for (name, number) in date_parts.into_iter().chain(time_parts) {
            parts.append(name, &Value::Int32(i32::try_from(number).unwrap_or(i32::MAX)));
        }
        Ok(Value::Document(parts.finish()))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.date);
        self.timezone.iter().chain(&self.iso8601).for_each(visit);
    }
}
