//! `$dateTrunc`: the beginning of the year, month, week, day … or of several of them, that a date lies in.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::unit::{self, Unit};
use super::zone::Zone;
use super::{millis_of, zone};
use crate::error::Result;
use crate::value::calendar::{DAY, Moment, days_to};
use crate::value::number::Number;
use crate::value::{Value, show};

pub(in super::super) const DATE_TRUNC: ExprDef = ExprDef {
    name: "$dateTrunc",
    help: "The beginning of the unit of time that a date lies in.",
    form: Form::Special(parse),
};

#[derive(Debug)]
struct Trunc {
    date: Expr,
    unit: Expr,
    bin_size: Option<Expr>,
    timezone: Option<Expr>,
    start_of_week: Option<Expr>,
}

fn parse(argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 5_439_007, "$dateTrunc only supports an object as its argument")?;
    if let Some(unknown) = arguments.unknown(&["date", "unit", "binSize", "timezone", "startOfWeek"]) {
        return fail(
            5_439_008,
            format!(
                "Unrecognized argument to $dateTrunc: {unknown}. Expected arguments are date, unit, and optionally, binSize, timezone, startOfWeek"
            ),
        );
    }
    let Some(date) = arguments.expr("date", names)? else {
        return fail(5_439_009, "Missing 'date' parameter to $dateTrunc");
    };
    let Some(unit) = arguments.expr("unit", names)? else {
        return fail(5_439_010, "Missing 'unit' parameter to $dateTrunc");
    };
    let bin_size = arguments.expr("binSize", names)?;
    let timezone = arguments.expr("timezone", names)?;
    let start_of_week = arguments.expr("startOfWeek", names)?;
    Ok(custom(Trunc { date, unit, bin_size, timezone, start_of_week }, names))
}

impl Operator for Trunc {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        // As in MongoDB: first whatever is null, then the zone, then what the values are.
        let date = self.date.eval(scope)?;
        if date.is_nullish() {
            return Ok(Value::Null);
        }
        let bin_size = self.bin_size.as_ref().map(|bin| bin.eval(scope)).transpose()?;
        if bin_size.as_ref().is_some_and(Value::is_nullish) {
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
        let Some(zone) = zone::evaluate(self.timezone.as_ref(), "$dateTrunc", scope)? else { return Ok(Value::Null) };
        let Some(millis) = millis_of(&date) else {
            return fail(5_439_012, format!("$dateTrunc requires 'date' to be a date, but got {}", date.type_name()));
        };
        let unit = unit::unit("$dateTrunc", &unit)?;
        let bin_size = bin_size.map_or(Ok(1), |value| positive(&value))?;
        let start_of_week = start_of_week.map_or(Ok(0), |value| unit::start_of_week("$dateTrunc", &value))?;
        truncate(millis, unit, bin_size, &zone, start_of_week).map(Value::DateTime)
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(&self.date);
        visit(&self.unit);
        self.bin_size.iter().chain(&self.timezone).chain(&self.start_of_week).for_each(visit);
    }
}

fn positive(value: &Value<'_>) -> Result<i64> {
    match Number::of(value).and_then(Number::as_i64_exact) {
        None => fail(
            5_439_017,
            format!(
                "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
                show::computed(value),
                value.type_name()
            ),
        ),
        Some(size) if size <= 0 => {
            fail(5_439_018, format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {size}"))
        }
        Some(size) => Ok(size),
    }
}

/// Bins are counted from the beginning of the year 2000 in the zone; weeks from the first that begins in it.
fn truncate(millis: i64, unit: Unit, bin_size: i64, zone: &Zone, start_of_week: i64) -> Result<i64> {
    // As much as MongoDB takes.
    if bin_size > 100_000_000_000 && matches!(unit, Unit::Year | Unit::Quarter | Unit::Month | Unit::Week | Unit::Day) {
        return fail(5_439_006, "dateTrunc unsupported binSize value");
    }
    let overflow = || fail(5_439_002, "dateTrunc overflowed");
    let local = zone.local(millis);
    let reference_day = days_to(2000, 1, 1);
    if let Some(months) = unit.months() {
        let Some(size) = bin_size.checked_mul(months) else { return overflow() };
        let moment = Moment::of(local);
        let since = (moment.year - 2000) * 12 + moment.month - 1;
        let first = since.div_euclid(size).saturating_mul(size);
        return Ok(zone.utc(days_to(2000 + first.div_euclid(12), first.rem_euclid(12) + 1, 1) * DAY));
    }
    if matches!(unit, Unit::Week | Unit::Day) {
        let Some(size) = bin_size.checked_mul(unit.millis() / DAY) else { return overflow() };
        // 2000-01-01 was a Saturday: day 6.
        let reference =
            if unit == Unit::Week { reference_day + (start_of_week - 6).rem_euclid(7) } else { reference_day };
        let since = local.div_euclid(DAY) - reference;
        return Ok(zone.utc((reference + since.div_euclid(size).saturating_mul(size)).saturating_mul(DAY)));
    }
    let Some(size) = bin_size.checked_mul(unit.millis()) else { return overflow() };
    let reference = zone.utc(reference_day * DAY);
    let since = millis.saturating_sub(reference);
    Ok(reference.saturating_add(since.div_euclid(size).saturating_mul(size)))
}
