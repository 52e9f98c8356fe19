//! Values as text: what `$toUpper`, `$substr` and `$strcasecmp` take for a string.

use super::date::iso_string;
use super::form::fail;
use crate::error::Result;
use crate::value::{Value, show};
use std::borrow::Cow;

/// The text of a string value.
pub(super) fn string_of<'v>(value: &'v Value<'_>) -> Option<&'v str> {
    match value {
        Value::String(text) => Some(text.as_str()),
        _ => None,
    }
}

/// Numbers, dates, code and symbols are taken as their text, nothing as the empty string.
pub(super) fn coerce<'v>(value: &'v Value<'_>) -> Result<Cow<'v, str>> {
    Ok(match value {
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => Cow::Borrowed(text.as_str()),
        Value::Double(_) | Value::Int32(_) | Value::Int64(_) | Value::Decimal(_) => Cow::Owned(number(value)),
        Value::DateTime(millis) => Cow::Owned(iso_string(*millis)?),
        Value::Timestamp(bits) => Cow::Owned(timestamp(*bits)),
        value if value.is_nullish() => Cow::Borrowed(""),
        _ => return fail(16007, format!("can't convert from BSON type {} to String", value.type_name())),
    })
}

/// A number as `$toString` gives it: doubles with six digits.
pub(super) fn number(value: &Value<'_>) -> String {
    match value {
        Value::Double(number) if number.is_nan() => "NaN".into(),
        Value::Double(number) if number.is_infinite() => if *number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Value::Double(number) => show::general(*number, 6),
        value => show::computed(value).to_string(),
    }
}

/// `Jan  1 00:00:05:6`: a timestamp's time and increment.
fn timestamp(bits: u64) -> String {
    let seconds = i64::try_from(bits >> 32).unwrap_or_default();
    let moment = crate::value::calendar::Moment::of(seconds * 1000);
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = usize::try_from(moment.month - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or("Jan");
    format!(
        "{month} {:>2} {:02}:{:02}:{:02}:{:x}",
        moment.day,
        moment.hour,
        moment.minute,
        moment.second,
        bits & 0xFFFF_FFFF
    )
}
