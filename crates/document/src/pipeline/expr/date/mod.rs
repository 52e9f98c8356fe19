//! Dates: their parts, their text, their arithmetic, in any time zone.
//!
//! A date is a number of milliseconds; [`crate::value::calendar`] turns it into year, month, day …, [`zone`] says how far a zone is from UTC.

mod diff;
mod format;
mod from_parts;
mod from_string;
mod math;
mod parts;
mod read;
mod to_parts;
mod to_string;
mod trunc;
mod unit;
mod zone;

pub(super) use diff::DATE_DIFF;
pub(super) use from_parts::DATE_FROM_PARTS;
pub(super) use from_string::DATE_FROM_STRING;
pub(super) use math::{DATE_ADD, DATE_SUBTRACT};
pub(super) use parts::*;
pub(super) use to_parts::DATE_TO_PARTS;
pub(super) use to_string::{DATE_TO_STRING, iso_string};
pub(super) use trunc::DATE_TRUNC;

pub(super) use from_string::parse_date;

use super::form::fail;
use crate::error::Result;
use crate::value::Value;

fn millis_of(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::DateTime(millis) => Some(*millis),
        Value::Timestamp(bits) => i64::try_from(bits >> 32).ok().map(|seconds| seconds * 1000),
        Value::ObjectId([a, b, c, d, ..]) => Some(i64::from(u32::from_be_bytes([*a, *b, *c, *d])) * 1000),
        _ => None,
    }
}

/// As [`millis_of`], or MongoDB's error.
fn coerce(value: &Value<'_>) -> Result<i64> {
    match millis_of(value) {
        Some(millis) => Ok(millis),
        None => fail(16006, format!("can't convert from BSON type {} to Date", value.type_name())),
    }
}
