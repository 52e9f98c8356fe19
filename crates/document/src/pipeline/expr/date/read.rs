//! Reading dates from text: by a format, or in the notations that people and programs commonly use.
//!
//! The free form knows ISO 8601 and its relatives, American and European dates, English month names, times with am and pm,
//! offsets and the usual abbreviations of zones. Relative words ("tomorrow") are refused: a date must be whole.

use super::from_parts::week_day;
use crate::value::calendar::{DAY, days_in_month, days_to};

/// Where reading stopped, and why.
pub(super) type Stopped = (usize, &'static str);

/// What a text says of itself about its zone.
#[derive(Clone, Debug)]
pub(super) enum Stated {
    Offset(i64),
    Name(i64, String),
}

#[derive(Clone, Debug, Default)]
pub(super) struct Reading {
    pub(super) year: Option<i64>,
    pub(super) month: Option<i64>,
    pub(super) day: Option<i64>,
    /// ISO week and day, with `year`.
    pub(super) week: Option<(i64, i64)>,
    pub(super) time: Option<(i64, i64, i64, i64)>,
    pub(super) zone: Option<Stated>,
    /// `@seconds`.
    pub(super) seconds: Option<i64>,
}

impl Reading {
    /// Milliseconds on the clock it speaks of; `None` if parts are missing.
    pub(super) fn local(&self) -> Option<i64> {
        if let Some(seconds) = self.seconds {
            return seconds.checked_mul(1000);
        }
        let days = match (self.week, self.month, self.day) {
            (Some((week, weekday)), _, _) => week_day(self.year?, week, weekday),
            (None, Some(month), day) => days_to(self.year?, month, day.unwrap_or(1)),
            _ => return None,
        };
        let (hour, minute, second, millis) = self.time.unwrap_or_default();
        Some(days * DAY + hour * 3_600_000 + minute * 60_000 + second * 1000 + millis)
    }

    /// Refuses days that the month does not have, and hours that the day does not have.
    fn check(self, end: usize) -> Result<Reading, Stopped> {
        if let (Some(year), Some(month)) = (self.year, self.month) {
            let day = self.day.unwrap_or(1);
            if !(1..=12).contains(&month) || !(1..=days_in_month(year, month)).contains(&day) {
                return Err((end, "The parsed date was invalid"));
            }
        }
        match self.time {
            Some((hour, minute, second, _)) if hour > 23 || minute > 59 || second > 59 => {
                Err((end, "The parsed time was invalid"))
            }
            _ => Ok(self),
        }
    }
}

struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn eat(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn eat_any(&mut self, wanted: &str) -> Option<char> {
        let found = self.peek().filter(|character| wanted.contains(*character))?;
        self.at += found.len_utf8();
        Some(found)
    }

    /// Between `least` and `most` digits.
    fn digits(&mut self, least: usize, most: usize) -> Option<i64> {
        let count = self.rest().bytes().take(most).take_while(u8::is_ascii_digit).count();
        let digits = self.rest().get(..count).filter(|_| count >= least)?;
        self.at += count;
        digits.parse().ok()
    }

    fn word(&mut self) -> Option<&'t str> {
        let count = self.rest().bytes().take_while(u8::is_ascii_alphabetic).count();
        let word = self.rest().get(..count).filter(|_| count > 0)?;
        self.at += count;
        Some(word)
    }

    /// Runs `read`; if it gives nothing, the cursor stays where it was.
    fn attempt<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<T> {
        let start = self.at;
        let result = read(self);
        if result.is_none() {
            self.at = start;
        }
        result
    }

    /// A fraction's digits as milliseconds.
    fn millis(&mut self) -> Option<i64> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let digits = self.rest().get(..count).filter(|_| count > 0)?;
        self.at += count;
        let three: String = digits.chars().chain("00".chars()).take(3).collect();
        three.parse().ok()
    }

    /// `+hh`, `+hhmm`, `+hh:mm`.
    fn offset(&mut self) -> Option<i64> {
        self.attempt(|cursor| {
            let sign = if cursor.eat_any("+-")? == '-' { -1 } else { 1 };
            let hours = cursor.digits(1, 2)?;
            cursor.eat(':');
            let minutes = cursor.digits(2, 2).unwrap_or_default();
            Some(sign * (hours * 60 + minutes) * 60_000)
        })
    }

    fn zone(&mut self) -> Option<Stated> {
        if let Some(offset) = self.offset() {
            return Some(Stated::Offset(offset));
        }
        self.attempt(|cursor| {
            let name = cursor.word()?;
            let upper = name.to_ascii_uppercase();
            if matches!(upper.as_str(), "GMT" | "UTC")
                && let Some(offset) = cursor.offset()
            {
                return Some(Stated::Offset(offset));
            }
            Some(Stated::Name(abbreviation(&upper)?, name.to_owned()))
        })
    }
}

/// Milliseconds east of UTC of the usual abbreviations and of the military letters.
fn abbreviation(name: &str) -> Option<i64> {
    let hours = match name {
        "UTC" | "GMT" | "Z" | "WET" => 0,
        "EST" => -5,
        "EDT" => -4,
        "CST" => -6,
        "CDT" => -5,
        "MST" => -7,
        "MDT" => -6,
        "PST" => -8,
        "PDT" => -7,
        "CET" | "BST" | "WEST" => 1,
        "CEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "JST" => 9,
        _ => match name.as_bytes() {
            [letter @ b'A'..=b'I'] => i64::from(letter - b'A') + 1,
            [letter @ b'K'..=b'M'] => i64::from(letter - b'K') + 10,
            [letter @ b'N'..=b'Y'] => -(i64::from(letter - b'N') + 1),
            _ => return None,
        },
    };
    Some(hours * 3_600_000)
}

fn month_name(word: &str) -> Option<i64> {
    const MONTHS: [&str; 12] = [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
    ];
    let lower = word.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| {
        *month == lower || month.get(..3) == Some(&lower) || (lower == "sept" && *month == "september")
    });
    at.and_then(|at| i64::try_from(at + 1).ok())
}

fn is_weekday(word: &str) -> bool {
    const DAYS: [&str; 7] = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let lower = word.to_ascii_lowercase();
    DAYS.iter().any(|day| *day == lower || day.get(..3) == Some(&lower))
}

pub(super) fn freely(text: &str) -> Result<Reading, Stopped> {
    let mut cursor = Cursor { text, at: 0 };
    let mut reading = Reading::default();
    if text.is_empty() {
        return Err((0, "Empty string"));
    }
    loop {
        while cursor.eat_any(" \t\n,").is_some() {}
        if cursor.rest().is_empty() {
            return reading.check(text.len() + 1);
        }
        let start = cursor.at;
        if reading.seconds.is_none() && cursor.eat('@') {
            reading.seconds = cursor.digits(1, 18);
        } else if reading.month.is_none() && reading.week.is_none() && date(&mut cursor, &mut reading) {
        } else if reading.time.is_none()
            && let Some(time) = cursor.attempt(time)
        {
            reading.time = Some(time);
        } else if reading.zone.is_none()
            && let Some(zone) = cursor.zone()
        {
            reading.zone = Some(zone);
        } else if reading.year.is_none()
            && let Some(year) = cursor.attempt(|cursor| cursor.digits(4, 4))
        {
            reading.year = Some(year);
        } else if let Some(word) = cursor.attempt(Cursor::word) {
            let relative = ["now", "today", "tomorrow", "yesterday", "midnight", "noon"];
            if !is_weekday(word) && !relative.contains(&word.to_ascii_lowercase().as_str()) {
                return Err((start, "passing a time zone identifier as part of the string is not allowed"));
            }
        }
        if cursor.at == start {
            return Err((start, "Unexpected character"));
        }
    }
}

/// A date in one of the notations; true if there was one.
fn date(cursor: &mut Cursor<'_>, reading: &mut Reading) -> bool {
    let found = cursor
        .attempt(iso_week)
        .map(|(year, week, day)| (Some(year), None, None, Some((week, day))))
        .or_else(|| cursor.attempt(iso).map(|(year, month, day)| (Some(year), Some(month), day, None)))
        .or_else(|| cursor.attempt(separated).map(|(year, month, day)| (Some(year), Some(month), Some(day), None)))
        .or_else(|| cursor.attempt(named).map(|(year, month, day)| (year, Some(month), Some(day), None)));
    let Some((year, month, day, week)) = found else { return false };
    reading.year = year.or(reading.year);
    (reading.month, reading.day, reading.week) = (month, day, week);
    true
}

/// `2024-W09-4`, `2024W09`.
fn iso_week(cursor: &mut Cursor<'_>) -> Option<(i64, i64, i64)> {
    let year = cursor.digits(4, 4)?;
    cursor.eat('-');
    cursor.eat_any("Ww")?;
    let week = cursor.digits(2, 2)?;
    let day = cursor.attempt(|cursor| {
        cursor.eat('-');
        cursor.digits(1, 1)
    });
    Some((year, week, day.unwrap_or(1)))
}

/// `2024-02-29`, `2024/02/29`, `2024-02`, `20240229`.
fn iso(cursor: &mut Cursor<'_>) -> Option<(i64, i64, Option<i64>)> {
    let sign = if cursor.eat('-') { -1 } else { 1 };
    let year = sign * cursor.digits(4, 4)?;
    if let Some(separator) = cursor.eat_any("-/") {
        let month = cursor.digits(1, 2)?;
        let day = cursor.attempt(|cursor| if cursor.eat(separator) { cursor.digits(1, 2) } else { None });
        return Some((year, month, day));
    }
    let (month, day) = (cursor.digits(2, 2)?, cursor.digits(2, 2)?);
    Some((year, month, Some(day)))
}

/// `02/29/2024` with the month first, `29.02.2024` and `29-02-2024` with the day first.
fn separated(cursor: &mut Cursor<'_>) -> Option<(i64, i64, i64)> {
    let first = cursor.digits(1, 2)?;
    let separator = cursor.eat_any("/.-")?;
    let second = cursor.digits(1, 2)?;
    cursor.eat(separator).then_some(())?;
    let year = cursor.digits(4, 4)?;
    Some(if separator == '/' { (year, first, second) } else { (year, second, first) })
}

/// `29 February 2024`, `Feb 29th, 2024`, `Feb 29` with the year later.
fn named(cursor: &mut Cursor<'_>) -> Option<(Option<i64>, i64, i64)> {
    let year = |cursor: &mut Cursor<'_>| {
        cursor.attempt(|cursor| {
            while cursor.eat_any(" ,-").is_some() {}
            let year = cursor.digits(4, 4)?;
            (cursor.peek() != Some(':')).then_some(year)
        })
    };
    let day = |cursor: &mut Cursor<'_>| {
        let day = cursor.digits(1, 2)?;
        for suffix in ["st", "nd", "rd", "th"] {
            if cursor.rest().starts_with(suffix) {
                cursor.at += suffix.len();
            }
        }
        Some(day)
    };
    if let Some(day) = day(cursor) {
        while cursor.eat_any(" -.").is_some() {}
        let month = month_name(cursor.word()?)?;
        return Some((year(cursor), month, day));
    }
    let month = month_name(cursor.word()?)?;
    while cursor.eat_any(" -.").is_some() {}
    let day = day(cursor)?;
    Some((year(cursor), month, day))
}

/// `T13:45:10.123`, `13:45`, `T134510`, `10pm`, `10:30 PM`.
fn time(cursor: &mut Cursor<'_>) -> Option<(i64, i64, i64, i64)> {
    let marked = cursor.eat_any("Tt").is_some();
    let hour = cursor.digits(1, 2)?;
    let (mut minute, mut second, mut millis, mut counted) = (0, 0, 0, false);
    if cursor.eat(':') {
        counted = true;
        minute = cursor.digits(2, 2)?;
        if cursor.eat(':') {
            second = cursor.digits(2, 2)?;
            millis = cursor.attempt(|cursor| if cursor.eat('.') { cursor.millis() } else { None }).unwrap_or_default();
        }
    } else if marked {
        counted = true;
        minute = cursor.digits(2, 2)?;
        second = cursor.digits(2, 2).unwrap_or_default();
    }
    let half = cursor.attempt(|cursor| {
        while cursor.eat(' ') {}
        match cursor.word()?.to_ascii_lowercase().as_str() {
            "am" => Some(0),
            "pm" => Some(12),
            _ => None,
        }
    });
    match half {
        Some(half) => Some((hour % 12 + half, minute, second, millis)),
        None => counted.then_some((hour, minute, second, millis)),
    }
}

pub(super) fn by_format(text: &str, format: &str) -> Result<Reading, Stopped> {
    let mut cursor = Cursor { text, at: 0 };
    let mut reading = Reading::default();
    let (mut week, mut weekday) = (None, None);
    let mut time = (None, 0, 0, 0);
    let mut specifiers = format.chars();
    while let Some(character) = specifiers.next() {
        if cursor.rest().is_empty() {
            return Err((cursor.at, "Not enough data available to satisfy format"));
        }
        let at = cursor.at;
        let specifier = if character == '%' { specifiers.next() } else { None };
        match specifier {
            None | Some('%') => {
                if !cursor.eat(character) {
                    return Err((at, "Format literal not found"));
                }
            }
            Some('Y') => reading.year = Some(cursor.digits(1, 4).ok_or((at, "A four digit year could not be found"))?),
            Some('G') => reading.year = Some(cursor.digits(1, 4).ok_or((at, "A four digit year could not be found"))?),
            Some('m') => reading.month = Some(cursor.digits(1, 2).ok_or((at, "A two digit month could not be found"))?),
            Some('d') => reading.day = Some(cursor.digits(1, 2).ok_or((at, "Unexpected data found."))?),
            Some('H') => time.0 = Some(cursor.digits(1, 2).ok_or((at, "A two digit hour could not be found"))?),
            Some('M') => time.1 = cursor.digits(2, 2).ok_or((at, "A two digit minute could not be found"))?,
            Some('S') => time.2 = cursor.digits(2, 2).ok_or((at, "A two digit second could not be found"))?,
            Some('L') => time.3 = cursor.millis().ok_or((at, "A three digit millisecond could not be found"))?,
            Some('u') => {
                weekday = Some(cursor.digits(1, 1).ok_or((at, "A single digit day of week could not be found"))?)
            }
            Some('V') => {
                let number = cursor.digits(1, 2).ok_or((at, "A two digit week could not be found"))?;
                if !(1..=53).contains(&number) {
                    return Err((at, "ISO Week must be between 1 and 53"));
                }
                week = Some(number);
            }
            Some('z') => {
                let zone = cursor.zone();
                reading.zone =
                    Some(zone.ok_or((at, "passing a time zone identifier as part of the string is not allowed"))?);
            }
            Some('Z') => {
                let sign =
                    if cursor.eat_any("+-").ok_or((at, "Invalid timezone offset in minutes"))? == '-' { -1 } else { 1 };
                let minutes = cursor.digits(1, 4).ok_or((at, "Invalid timezone offset in minutes"))?;
                reading.zone = Some(Stated::Offset(sign * minutes * 60_000));
            }
            Some(_) => return Err((at, "Unexpected data found.")),
        }
    }
    if !cursor.rest().is_empty() {
        return Err((cursor.at, "Trailing data"));
    }
    reading.week = week.map(|week| (week, weekday.unwrap_or(1)));
    reading.time = Some((time.0.unwrap_or_default(), time.1, time.2, time.3));
    reading.check(text.len())
}
