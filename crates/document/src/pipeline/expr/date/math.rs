//! `$dateAdd` and `$dateSubtract`: a date so many units later or earlier, on the clock of a zone.

use super::super::form::{Arguments, custom, fail};
use super::super::{Expr, ExprDef, Form, Names, Operator, Scope};
use super::unit::Unit;
use super::zone::Zone;
use super::{millis_of, zone};
use crate::error::{Error, Result};
use crate::value::Value;
use crate::value::calendar::{DAY, Moment, days_in_month, days_to};
use crate::value::number::Number;

pub(in super::super) const DATE_ADD: ExprDef = ExprDef {
    name: "$dateAdd",
    help: "The date that is a number of units of time after another.",
    form: Form::Special(|argument, names| parse("$dateAdd", argument, names)),
};
pub(in super::super) const DATE_SUBTRACT: ExprDef = ExprDef {
    name: "$dateSubtract",
    help: "The date that is a number of units of time before another.",
    form: Form::Special(|argument, names| parse("$dateSubtract", argument, names)),
};

#[derive(Debug)]
struct Shift {
    name: &'static str,
    start: Expr,
    unit: Expr,
    amount: Expr,
    timezone: Option<Expr>,
}

fn parse(name: &'static str, argument: &Value<'_>, names: &mut Names) -> Result<Expr> {
    let arguments = Arguments::of(argument, 5_166_400, format!("{name} expects an object as its argument"))?;
    if let Some(unknown) = arguments.unknown(&["startDate", "unit", "amount", "timezone"]) {
        return fail(
            5_166_401,
            format!(
                "Unrecognized argument to {name}: {unknown}. Expected arguments are startDate, unit, amount, and optionally timezone."
            ),
        );
    }
    let parts = [arguments.expr("startDate", names)?, arguments.expr("unit", names)?, arguments.expr("amount", names)?];
    let timezone = arguments.expr("timezone", names)?;
    let [Some(start), Some(unit), Some(amount)] = parts else {
        return fail(5_166_402, format!("{name} requires startDate, unit, and amount to be present"));
    };
    Ok(custom(Shift { name, start, unit, amount, timezone }, names))
}

impl Operator for Shift {
    fn eval<'a>(&'a self, scope: &mut Scope<'a>) -> Result<Value<'a>> {
        let (start, unit, amount) = (self.start.eval(scope)?, self.unit.eval(scope)?, self.amount.eval(scope)?);
        if start.is_nullish() || unit.is_nullish() || amount.is_nullish() {
            return Ok(Value::Null);
        }
        let name = self.name;
        let zone = match self.timezone.as_ref().map(|timezone| timezone.eval(scope)).transpose()? {
            None => zone::UTC,
            Some(Value::String(text)) => Zone::parse(text.as_str())?,
            Some(value) if value.is_nullish() => return Ok(Value::Null),
            Some(value) => {
                return fail(40517, format!("timezone must evaluate to a string, found {}", value.type_name()));
            }
        };
        let Some(millis) = millis_of(&start) else {
            return fail(5_166_403, format!("{name} requires startDate to be convertible to a date"));
        };
        let Value::String(text) = &unit else {
            return fail(5_166_404, format!("{name} expects string defining the time unit"));
        };
        let Some(unit) = Unit::parse(text.as_str()) else {
            return Err(Error::failed_to_parse(format!("unknown time unit value: {text}")));
        };
        let Some(amount) = Number::of(&amount).and_then(Number::as_i64_exact) else {
            return fail(5_166_405, format!("{name} expects integer amount of time units"));
        };
        let amount = match name {
            "$dateSubtract" => match amount.checked_neg() {
                Some(amount) => amount,
                None => return fail(6_045_000, format!("invalid $dateSubtract 'amount' parameter value: {amount}")),
            },
            _ => amount,
        };
        match shift(millis, unit, amount, &zone) {
            Some(millis) => Ok(Value::DateTime(millis)),
            None if too_large(unit, amount) => {
                fail(5_976_500, format!("invalid dateAdd 'amount' parameter value: {amount} {}", unit.name()))
            }
            None => {
                let distance = amount.wrapping_mul(unit.millis());
                Err(Error::new(
                    crate::code::Code::DurationOverflow,
                    format!("Overflow while adding {distance}ms to {}ms", millis.wrapping_add(distance)),
                ))
            }
        }
    }

    fn operands(&self, visit: &mut dyn FnMut(&Expr)) {
        [&self.start, &self.unit, &self.amount].into_iter().for_each(&mut *visit);
        self.timezone.iter().for_each(visit);
    }
}

/// More than all of time.
fn too_large(unit: Unit, amount: i64) -> bool {
    let span = match unit.months() {
        Some(months) => months * 28 * DAY,
        None => unit.millis(),
    };
    amount.unsigned_abs() > (i64::MAX / span).unsigned_abs() * 2
}

/// Units of a day and more move the zone's clock; smaller ones move time itself.
fn shift(millis: i64, unit: Unit, amount: i64, zone: &Zone) -> Option<i64> {
    if let Some(months) = unit.months() {
        let local = zone.local(millis);
        let moment = Moment::of(local);
        let month = (moment.month - 1).checked_add(amount.checked_mul(months)?)?;
        let (year, month) = (moment.year.checked_add(month.div_euclid(12))?, month.rem_euclid(12) + 1);
        if year.abs() > 300_000_000 {
            return None;
        }
        let day = moment.day.min(days_in_month(year, month));
        let shifted = days_to(year, month, day).checked_mul(DAY)?.checked_add(local.rem_euclid(DAY))?;
        return Some(zone.utc(shifted));
    }
    let distance = amount.checked_mul(unit.millis())?;
    match unit {
        Unit::Week | Unit::Day => Some(zone.utc(zone.local(millis).checked_add(distance)?)),
        _ => millis.checked_add(distance),
    }
}
