//! One part of a date: `$year`, `$month`, `$dayOfMonth` … Each takes a date, or `{ date, timezone }`.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope, parse};
use super::{coerce, zone};
use crate::error::Result;
use crate::value::calendar::Moment;
use crate::value::{Value, show};

type Pick = fn(&Moment) -> Value<'static>;

#[derive(Debug)]
struct Part {
    name: &'static str,
    pick: Pick,
    date: Expr,
    timezone: Option<Expr>,
}

macro_rules! parts {
    ($($constant:ident, $name:literal, $help:literal, $pick:expr;)*) => {$(
        pub(in super::super) const $constant: ExprDef = ExprDef {
            name: $name,
            help: $help,
            form: Form::Special(|argument, names| parse_part($name, $pick, argument, names)),
        };
    )*};
}

fn int(number: i64) -> Value<'static> {
    Value::Int32(i32::try_from(number).unwrap_or(i32::MAX))
}

parts! {
    DAY_OF_MONTH, "$dayOfMonth", "The day of the month of a date, from 1.", |moment| int(moment.day);
    DAY_OF_WEEK, "$dayOfWeek", "The day of the week of a date, from 1 for Sunday.", |moment| int(moment.weekday() + 1);
    DAY_OF_YEAR, "$dayOfYear", "The day of the year of a date, from 1.", |moment| int(moment.day_of_year());
    HOUR, "$hour", "The hour of a date.", |moment| int(moment.hour);
    ISO_DAY_OF_WEEK, "$isoDayOfWeek", "The day of the week of a date, from 1 for Monday.", |moment| int(moment.iso_weekday());
    ISO_WEEK, "$isoWeek", "The ISO 8601 week of a date.", |moment| int(moment.iso_week().1);
    ISO_WEEK_YEAR, "$isoWeekYear", "The year that the ISO 8601 week of a date belongs to.", |moment| Value::Int64(moment.iso_week().0);
    MILLISECOND, "$millisecond", "The milliseconds of a date.", |moment| int(moment.millisecond);
    MINUTE, "$minute", "The minute of a date.", |moment| int(moment.minute);
    MONTH, "$month", "The month of a date, from 1.", |moment| int(moment.month);
    SECOND, "$second", "The second of a date.", |moment| int(moment.second);
    WEEK, "$week", "The week of the year of a date, counted by Sundays from 0.", |moment| int(moment.week());
    YEAR, "$year", "The year of a date.", |moment| int(moment.year);
}

fn parse_part(name: &'static str, pick: Pick, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let (date, timezone) = match argument {
        Value::Document(doc) if !doc.iter().next().is_some_and(|(name, _)| name.as_str().starts_with('$')) => {
            let arguments = Arguments::of(argument, 40535, "")?;
            if let Some(unknown) = arguments.unknown(&["date", "timezone"]) {
                return fail(40535, format!("unrecognized option to {name}: \"{unknown}\""));
            }
            let Some(date) = arguments.expr("date", names)? else {
                let shown = show::element(argument).to_string();
                return fail(40539, format!("missing 'date' argument to {name}, provided: {name}: {shown}"));
            };
            (date, arguments.expr("timezone", names)?)
        }
        Value::Array(array) => {
            let count = array.count();
            let Some(only) = array.iter().next().filter(|_| count == 1) else {
                return fail(
                    40536,
                    format!("{name} accepts exactly one argument if given an array, but was given {count}"),
                );
            };
            (parse(&only, names)?, None)
        }
        single => (parse(single, names)?, None),
    };
    Ok(custom(Part { name, pick, date, timezone }, names))
}

impl Operator for Part {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let date = self.date.eval(scope)?;
        if date.is_nullish() {
            return Ok(Value::Null);
        }
        let millis = coerce(&date)?;
        match zone::evaluate_part(self.timezone.as_ref(), self.name, scope)? {
            Some(zone) => Ok((self.pick)(&Moment::of(zone.local(millis)))),
            None => Ok(Value::Null),
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.date);
        self.timezone.iter().for_each(visit);
    }
}
