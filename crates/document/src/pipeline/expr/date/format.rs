//! The format language of dates: `%Y-%m-%dT%H:%M:%S.%L` and the like.

use super::super::form::fail;
use super::zone::Zone;
use crate::error::Result;
use crate::value::calendar::Moment;

pub(super) const ISO_FORMAT: &str = "%Y-%m-%dT%H:%M:%S.%LZ";
pub(super) const FOR_WRITING: &str = "dGHjLmMSwuUVYzZ%";
pub(super) const FOR_READING: &str = "dGHLmMSuVYzZ%";

/// Refuses specifiers that are not in `known`.
pub(super) fn check(format: &str, known: &str) -> Result<()> {
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            continue;
        }
        match characters.next() {
            None => return fail(18535, "Unmatched '%' at end of format string"),
            Some(specifier) if known.contains(specifier) => {}
            Some(specifier) => return fail(18536, format!("Invalid format character '%{specifier}' in format string")),
        }
    }
    Ok(())
}

/// The text of `millis` in `zone`; the format has been checked.
pub(super) fn write(format: &str, millis: i64, zone: &Zone) -> Result<String> {
    let moment = Moment::of(zone.local(millis));
    let mut text = String::with_capacity(format.len() * 2);
    let mut characters = format.chars();
    while let Some(character) = characters.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('d') => padded(&mut text, moment.day, 2)?,
            Some('G') => padded(&mut text, moment.iso_week().0, 4)?,
            Some('H') => padded(&mut text, moment.hour, 2)?,
            Some('j') => padded(&mut text, moment.day_of_year(), 3)?,
            Some('L') => padded(&mut text, moment.millisecond, 3)?,
            Some('m') => padded(&mut text, moment.month, 2)?,
            Some('M') => padded(&mut text, moment.minute, 2)?,
            Some('S') => padded(&mut text, moment.second, 2)?,
            Some('w') => padded(&mut text, moment.weekday() + 1, 1)?,
            Some('u') => padded(&mut text, moment.iso_weekday(), 1)?,
            Some('U') => padded(&mut text, moment.week(), 2)?,
            Some('V') => padded(&mut text, moment.iso_week().1, 2)?,
            Some('Y') => padded(&mut text, moment.year, 4)?,
            Some('z') => {
                let minutes = zone.offset(millis) / 60_000;
                let sign = if minutes < 0 { '-' } else { '+' };
                text.push_str(&format!("{sign}{:02}{:02}", minutes.abs() / 60, minutes.abs() % 60));
            }
            Some('Z') => text.push_str(&(zone.offset(millis) / 60_000).to_string()),
            Some(other) => text.push(other),
            None => {}
        }
    }
    Ok(text)
}

fn padded(text: &mut String, number: i64, width: usize) -> Result<()> {
    if !(0..=9999).contains(&number) {
        return fail(
            18537,
            format!(
                "Could not convert date to string: date component was outside the supported range of 0-9999: {number}"
            ),
        );
    }
    text.push_str(&format!("{number:0width$}"));
    Ok(())
}
