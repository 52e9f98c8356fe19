//! Time zones: Olson names and fixed offsets, and how far they are from UTC at a moment.

use super::super::form::fail;
use super::super::{Expr, Scope};
use crate::error::Result;
use crate::value::calendar::Moment;
use crate::value::{Value, show};

#[derive(Clone, Debug)]
pub(super) enum Zone {
    /// Milliseconds east of UTC.
    Fixed(i64),
    Named(jiff::tz::TimeZone),
}

pub(super) const UTC: Zone = Zone::Fixed(0);

impl Zone {
    pub(super) fn parse(name: &str) -> Result<Zone> {
        if let Some(offset) = fixed(name) {
            return Ok(Zone::Fixed(offset));
        }
        match jiff::tz::TimeZone::get(name) {
            // The names of the database have one spelling.
            Ok(zone) if zone.iana_name() == Some(name) => Ok(Zone::Named(zone)),
            _ => fail(40485, format!("unrecognized time zone identifier: \"{name}\"")),
        }
    }

    /// What the zone's clock shows at `utc`, as milliseconds.
    pub(super) fn local(&self, utc: i64) -> i64 {
        utc.saturating_add(self.offset(utc))
    }

    /// Milliseconds east of UTC at `utc`. Beyond the years that the database covers, as at their end.
    pub(super) fn offset(&self, utc: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let limits = (jiff::Timestamp::MIN, jiff::Timestamp::MAX);
                let moment =
                    jiff::Timestamp::from_millisecond(utc).unwrap_or(if utc < 0 { limits.0 } else { limits.1 });
                i64::from(zone.to_offset(moment).seconds()) * 1000
            }
        }
    }

    /// The moment at which the zone's clock shows `local`: the second if it shows it twice, as much later as the clock jumps
    /// if it never does.
    pub(super) fn utc(&self, local: i64) -> i64 {
        match self {
            Zone::Fixed(offset) => local.saturating_sub(*offset),
            Zone::Named(zone) => {
                let moment = Moment::of(local);
                let civil = i16::try_from(moment.year).ok().and_then(|year| {
                    let field = |number: i64| i8::try_from(number).ok();
                    let nanos = i32::try_from(moment.millisecond * 1_000_000).ok()?;
                    jiff::civil::DateTime::new(
                        year,
                        field(moment.month)?,
                        field(moment.day)?,
                        field(moment.hour)?,
                        field(moment.minute)?,
                        field(moment.second)?,
                        nanos,
                    )
                    .ok()
                });
                match civil.and_then(|civil| zone.to_ambiguous_timestamp(civil).later().ok()) {
                    Some(timestamp) => timestamp.as_millisecond(),
                    None => local.saturating_sub(self.offset(local)),
                }
            }
        }
    }
}

/// `UTC`, `+hh`, `+hhmm`, `+hh:mm`.
fn fixed(name: &str) -> Option<i64> {
    if matches!(name, "UTC" | "GMT") {
        return Some(0);
    }
    let (sign, digits) = match name.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let two = |text: &str| {
        (text.len() == 2 && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse::<i64>().ok()).flatten()
    };
    let (hours, minutes) = match digits.len() {
        2 => (digits, "00"),
        4 => digits.split_at(2),
        5 => digits.split_once(':')?,
        _ => return None,
    };
    Some(sign * (two(hours)? * 3600 + two(minutes)? * 60) * 1000)
}

/// The zone that an optional `timezone` argument gives: UTC if there is none, `None` if it is null.
pub(super) fn evaluate<'a>(expr: Option<&'a Expr>, name: &str, scope: &mut Scope<'a>) -> Result<Option<Zone>> {
    let Some(expr) = expr else { return Ok(Some(UTC)) };
    let zone = match expr.eval(scope)? {
        Value::String(text) => Zone::parse(text.as_str()).map(Some),
        value if value.is_nullish() => Ok(None),
        value => fail(40517, format!("timezone must evaluate to a string, found {}", value.type_name())),
    };
    match name {
        "$dateTrunc" | "$dateDiff" => zone.map_err(|error| {
            error.context(&format!("{name} parameter 'timezone' value parsing failed :: caused by :: "))
        }),
        _ => zone,
    }
}

/// The error of the operators that give one part of a date.
pub(super) fn evaluate_part<'a>(expr: Option<&'a Expr>, name: &str, scope: &mut Scope<'a>) -> Result<Option<Zone>> {
    let Some(expr) = expr else { return Ok(Some(UTC)) };
    match expr.eval(scope)? {
        Value::String(text) => Zone::parse(text.as_str()).map(Some),
        value if value.is_nullish() => Ok(None),
        value => fail(
            40533,
            format!(
                "{name} requires a string for the timezone argument, but was given a {} ({})",
                value.type_name(),
                show::computed(&value)
            ),
        ),
    }
}
