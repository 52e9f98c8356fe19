//! `$dateFromParts`: a date from its parts, by the calendar or by ISO weeks. Parts beyond their range run on.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::zone;
use crate::error::Result;
use crate::value::calendar::{DAY, Moment, days_to};
use crate::value::number::Number;
use crate::value::{Value, show};

pub(in super::super) const DATE_FROM_PARTS: ExprDef =
    ExprDef { name: "$dateFromParts", help: "The date that has the given parts.", form: Form::Special(parse) };

const NATURAL: [&str; 3] = ["year", "month", "day"];
const ISO: [&str; 3] = ["isoWeekYear", "isoWeek", "isoDayOfWeek"];
const TIME: [&str; 4] = ["hour", "minute", "second", "millisecond"];

#[derive(Debug)]
struct FromParts {
    iso: bool,
    /// Year, month or week, day.
    date: [Option<Expr>; 3],
    time: [Option<Expr>; 4],
    timezone: Option<Expr>,
}

fn parse(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let known: Vec<&str> = NATURAL.into_iter().chain(ISO).chain(TIME).chain(["timezone"]).collect();
    let arguments = Arguments::of(argument, 40519, "$dateFromParts only supports an object as its argument")?.only(
        &known,
        40518,
        "Unrecognized argument to $dateFromParts: ",
    )?;
    let mut some = |name: &str| arguments.expr(name, names);
    let natural = [some("year")?, some("month")?, some("day")?];
    let iso = [some("isoWeekYear")?, some("isoWeek")?, some("isoDayOfWeek")?];
    let time = [some("hour")?, some("minute")?, some("second")?, some("millisecond")?];
    let timezone = some("timezone")?;
    let [year, month, day] = &natural;
    let [iso_year, week, weekday] = &iso;
    if year.is_none() && iso_year.is_none() {
        return fail(40516, "$dateFromParts requires either 'year' or 'isoWeekYear' to be present");
    }
    if year.is_some() && (iso_year.is_some() || week.is_some() || weekday.is_some()) {
        return fail(40489, "$dateFromParts does not allow mixing natural dates with ISO dates");
    }
    if iso_year.is_some() && (month.is_some() || day.is_some()) {
        return fail(40525, "$dateFromParts does not allow mixing ISO dates with natural dates");
    }
    let by_week = iso_year.is_some();
    Ok(custom(FromParts { iso: by_week, date: if by_week { iso } else { natural }, time, timezone }, names))
}

/// A part's number: its default if it is not given, `None` if it is null.
fn part<'a>(name: &str, expr: Option<&'a Expr>, default: i64, scope: &mut Scope<'a>) -> Result<Option<i64>> {
    let Some(expr) = expr else { return Ok(Some(default)) };
    let value = expr.eval(scope)?;
    if value.is_nullish() {
        return Ok(None);
    }
    match Number::of(&value).and_then(Number::as_i64_exact) {
        Some(number) => Ok(Some(number)),
        None => fail(
            40515,
            format!(
                "'{name}' must evaluate to an integer, found {} with value {}",
                value.type_name(),
                show::computed(&value)
            ),
        ),
    }
}

impl FromParts {
    /// The numbers of some parts; `None` if one of them is null.
    fn parts<'a, const N: usize>(
        &self,
        names: [&str; N],
        exprs: &'a [Option<Expr>; N],
        default: i64,
        scope: &mut Scope<'a>,
    ) -> Result<Option<[i64; N]>> {
        let mut numbers = [default; N];
        for ((slot, name), expr) in numbers.iter_mut().zip(names).zip(exprs) {
            let Some(number) = part(name, expr.as_ref(), default, scope)? else { return Ok(None) };
            match name {
                "year" | "isoWeekYear" if !(1..=9999).contains(&number) => {
                    let message =
                        format!("'{name}' must evaluate to an integer in the range 1 to 9999, found {number}");
                    return fail(if self.iso { 31095 } else { 40523 }, message);
                }
                "year" | "isoWeekYear" | "second" | "millisecond" => {}
                _ if !(-32768..=32767).contains(&number) => {
                    return fail(
                        31034,
                        format!(
                            "'{name}' must evaluate to a value in the range [-32768, 32767]; value {number} is not in range"
                        ),
                    );
                }
                _ => {}
            }
            *slot = number;
        }
        Ok(Some(numbers))
    }
}

impl Operator for FromParts {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        // The time and the zone come before the date, as in MongoDB.
        let Some([hour, minute, second, millisecond]) = self.parts(TIME, &self.time, 0, scope)? else {
            return Ok(Value::Null);
        };
        let Some(zone) = zone::evaluate(self.timezone.as_ref(), "$dateFromParts", scope)? else {
            return Ok(Value::Null);
        };
        let names = if self.iso { ISO } else { NATURAL };
        let Some([year, month, day]) = self.parts(names, &self.date, 1, scope)? else { return Ok(Value::Null) };
        let days = if self.iso { week_day(year, month, day) } else { days_to(year, month, day) };
        let time = (hour * 3_600_000 + minute * 60_000)
            .saturating_add(second.saturating_mul(1000))
            .saturating_add(millisecond);
        Ok(Value::DateTime(zone.utc((days * DAY).saturating_add(time))))
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        self.date.iter().chain(&self.time).flatten().chain(&self.timezone).for_each(visit);
    }
}

/// Days since 1970 of a day of an ISO week: week 1 is the one with January 4th.
pub(super) fn week_day(year: i64, week: i64, weekday: i64) -> i64 {
    let fourth = days_to(year, 1, 4);
    let monday = fourth + 1 - Moment::of(fourth * DAY).iso_weekday();
    monday + (week - 1) * 7 + weekday - 1
}
