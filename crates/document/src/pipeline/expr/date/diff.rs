//! `$dateDiff`: how many boundaries of a unit lie between two dates.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::unit::{self, Unit};
use super::zone::Zone;
use super::{millis_of, zone};
use crate::error::Result;
use crate::value::Value;
use crate::value::calendar::{DAY, Moment};

pub(in super::super) const DATE_DIFF: ExprDef = ExprDef {
    name: "$dateDiff",
    help: "How many boundaries of a unit of time lie between two dates.",
    form: Form::Special(parse),
};

#[derive(Debug)]
struct Diff {
    start: Expr,
    end: Expr,
    unit: Expr,
    timezone: Option<Expr>,
    start_of_week: Option<Expr>,
}

fn parse(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 5_166_301, "$dateDiff only supports an object as its argument")?.only(
        &["startDate", "endDate", "unit", "timezone", "startOfWeek"],
        5_166_302,
        "Unrecognized argument to $dateDiff: ",
    )?;
    let mut required = |name: &str, code| match arguments.expr(name, names)? {
        Some(expr) => Ok(expr),
        None => fail(code, format!("Missing '{name}' parameter to $dateDiff")),
    };
    let (start, end, unit) =
        (required("startDate", 5_166_303)?, required("endDate", 5_166_304)?, required("unit", 5_166_305)?);
    let timezone = arguments.expr("timezone", names)?;
    let start_of_week = arguments.expr("startOfWeek", names)?;
    Ok(custom(Diff { start, end, unit, timezone, start_of_week }, names))
}

impl Operator for Diff {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let (start, end) = (self.start.eval(scope)?, self.end.eval(scope)?);
        if start.is_nullish() || end.is_nullish() {
            return Ok(Value::Null);
        }
        let unit = self.unit.eval(scope)?;
        if unit.is_nullish() {
            return Ok(Value::Null);
        }
        let start_of_week = unit::given_start_of_week(self.start_of_week.as_ref(), &unit, scope)?;
        if start_of_week.as_ref().is_some_and(Value::is_nullish) {
            return Ok(Value::Null);
        }
        let Some(zone) = zone::evaluate(self.timezone.as_ref(), "$dateDiff", scope)? else { return Ok(Value::Null) };
        let date = |value: &Value<'_>, which: &str| match millis_of(value) {
            Some(millis) => Ok(millis),
            None => {
                fail(5_166_307, format!("$dateDiff requires '{which}' to be a date, but got {}", value.type_name()))
            }
        };
        let (start, end) = (date(&start, "startDate")?, date(&end, "endDate")?);
        let unit = unit::unit("$dateDiff", &unit)?;
        let start_of_week = start_of_week.map_or(Ok(0), |value| unit::start_of_week("$dateDiff", &value))?;
        match between(start, end, unit, &zone, start_of_week) {
            Some(count) => Ok(Value::Int64(count)),
            None => fail(5_166_308, "dateDiff overflowed"),
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        [&self.start, &self.end, &self.unit].into_iter().for_each(&mut *visit);
        self.timezone.iter().chain(&self.start_of_week).for_each(visit);
    }
}

fn between(start: i64, end: i64, unit: Unit, zone: &Zone, start_of_week: i64) -> Option<i64> {
    let (local_start, local_end) = (zone.local(start), zone.local(end));
    if let Some(months) = unit.months() {
        let bin = |local| {
            let moment = Moment::of(local);
            (moment.year * 12 + moment.month - 1).div_euclid(months)
        };
        return Some(bin(local_end) - bin(local_start));
    }
    let day = |local: i64| local.div_euclid(DAY);
    match unit {
        Unit::Day => Some(day(local_end) - day(local_start)),
        Unit::Week => {
            // 1970-01-01 was a Thursday: day 4.
            let week = |local| (day(local) + 4 - start_of_week).div_euclid(7);
            Some(week(local_end) - week(local_start))
        }
        Unit::Millisecond => end.checked_sub(start),
        _ => {
            // Boundaries of the zone's clock, less what the clock was moved between the two.
            let size = unit.millis();
            let moved = (zone.offset(end) - zone.offset(start)).div_euclid(size);
            Some(local_end.div_euclid(size) - local_start.div_euclid(size) - moved)
        }
    }
}
