//! Units of time, and the day a week begins with, as arguments give them.

use super::super::form::fail;
use super::super::{Expr, Scope};
use crate::error::Result;
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Year,
    Quarter,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
}

impl Unit {
    pub(super) fn parse(name: &str) -> Option<Unit> {
        Some(match name {
            "year" => Unit::Year,
            "quarter" => Unit::Quarter,
            "month" => Unit::Month,
            "week" => Unit::Week,
            "day" => Unit::Day,
            "hour" => Unit::Hour,
            "minute" => Unit::Minute,
            "second" => Unit::Second,
            "millisecond" => Unit::Millisecond,
            _ => return None,
        })
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Year => "year",
            Unit::Quarter => "quarter",
            Unit::Month => "month",
            Unit::Week => "week",
            Unit::Day => "day",
            Unit::Hour => "hour",
            Unit::Minute => "minute",
            Unit::Second => "second",
            Unit::Millisecond => "millisecond",
        }
    }

    /// Months, if it is counted in months.
    pub(super) fn months(self) -> Option<i64> {
        match self {
            Unit::Year => Some(12),
            Unit::Quarter => Some(3),
            Unit::Month => Some(1),
            _ => None,
        }
    }

    /// Milliseconds of the units that always have as many.
    pub(super) fn millis(self) -> i64 {
        match self {
            Unit::Week => 7 * 86_400_000,
            Unit::Day => 86_400_000,
            Unit::Hour => 3_600_000,
            Unit::Minute => 60_000,
            Unit::Second => 1000,
            _ => 1,
        }
    }
}

/// The `unit` of `$dateTrunc` and `$dateDiff`.
pub(super) fn unit(name: &str, value: &Value<'_>) -> Result<Unit> {
    let Value::String(text) = value else {
        return fail(5_439_013, format!("{name} requires 'unit' to be a string, but got {}", value.type_name()));
    };
    match Unit::parse(text.as_str()) {
        Some(unit) => Ok(unit),
        None => fail(5_439_014, format!("{name} parameter 'unit' value cannot be recognized as a time unit: {text}")),
    }
}

/// The value of `startOfWeek`: looked at only where it matters, as MongoDB does.
pub(super) fn given_start_of_week<'a>(
    start: Option<&'a Expr>,
    unit: &Value<'_>,
    scope: &mut Scope<'a>,
) -> Result<Option<Value<'a>>> {
    start.filter(|_| unit.as_str() == Some("week")).map(|start| start.eval(scope)).transpose()
}

/// The day a week begins with: 0 is Sunday. Case does not matter, three letters are enough.
pub(super) fn start_of_week(name: &str, value: &Value<'_>) -> Result<i64> {
    let Value::String(text) = value else {
        return fail(5_439_015, format!("{name} requires 'startOfWeek' to be a string, but got {}", value.type_name()));
    };
    let lower = text.as_str().to_ascii_lowercase();
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    match days.iter().position(|day| *day == lower || day.get(..3) == Some(lower.as_str())) {
        Some(day) => Ok(i64::try_from(day).unwrap_or_default()),
        None => fail(
            5_439_016,
            format!("{name} parameter 'startOfWeek' value cannot be recognized as a day of a week: {text}"),
        ),
    }
}
