//! Spans of time in UTC: where they begin and end, for every date that BSON can hold.

use crate::shapes::bucket::{Grain, Period};
use document::value::calendar::{DAY, date_of, days_to};

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;

impl Period {
    pub const ALL: [Period; 6] =
        [Period::Minute, Period::Hour, Period::Day, Period::Month, Period::Quarter, Period::Year];

    /// What a declaration calls it, and the stored field that holds its start.
    pub fn name(self) -> &'static str {
        match self {
            Period::Minute => "minute",
            Period::Hour => "hour",
            Period::Day => "day",
            Period::Month => "month",
            Period::Quarter => "quarter",
            Period::Year => "year",
        }
    }

    /// The start of the period that `ms` lies in. The first period of all begins with the first date there is.
    pub fn start(self, ms: i64) -> i64 {
        match self.span() {
            Span::Millis(size) => floor(ms, size),
            Span::Months(count) => month(month_of(ms).div_euclid(count) * count),
        }
    }

    /// The start of the period after the one that begins at `start`.
    pub fn next(self, start: i64) -> i64 {
        match self.span() {
            Span::Millis(size) => floor(start, size).saturating_add(size),
            Span::Months(count) => month((month_of(start).div_euclid(count) + 1) * count),
        }
    }

    fn span(self) -> Span {
        match self {
            Period::Minute => Span::Millis(MINUTE),
            Period::Hour => Span::Millis(HOUR),
            Period::Day => Span::Millis(DAY),
            Period::Month => Span::Months(1),
            Period::Quarter => Span::Months(3),
            Period::Year => Span::Months(12),
        }
    }

    /// How many units of a size the longest period of this kind has.
    pub fn units(self, grain: Grain) -> u64 {
        let (months, days, minutes) = match self {
            Period::Minute => (0, 0, 1),
            Period::Hour => (0, 0, 60),
            Period::Day => (0, 1, 24 * 60),
            Period::Month => (1, 31, 31 * 24 * 60),
            Period::Quarter => (3, 92, 92 * 24 * 60),
            Period::Year => (12, 366, 366 * 24 * 60),
        };
        match grain {
            Grain::Month => months,
            Grain::Day => days,
            Grain::Hour => minutes / 60,
            Grain::Minute => minutes,
            Grain::Second => minutes * 60,
            Grain::Millisecond => minutes * 60_000,
        }
    }
}

enum Span {
    Millis(i64),
    Months(i64),
}

impl Grain {
    /// What a declaration calls it.
    pub fn name(self) -> &'static str {
        match self {
            Grain::Millisecond => "ms",
            Grain::Second => "second",
            Grain::Minute => "minute",
            Grain::Hour => "hour",
            Grain::Day => "day",
            Grain::Month => "month",
        }
    }

    /// Its length, unless it depends on the calendar.
    pub fn millis(self) -> Option<i64> {
        match self {
            Grain::Millisecond => Some(1),
            Grain::Second => Some(SECOND),
            Grain::Minute => Some(MINUTE),
            Grain::Hour => Some(HOUR),
            Grain::Day => Some(DAY),
            Grain::Month => None,
        }
    }

    /// The start of the unit that `ms` lies in.
    pub fn start(self, ms: i64) -> i64 {
        match self.millis() {
            Some(size) => floor(ms, size),
            None => month(month_of(ms)),
        }
    }

    /// How many whole units `ms` lies behind `start`, and whether nothing is left over.
    pub fn units_since(self, start: i64, ms: i64) -> (i64, bool) {
        match self.millis() {
            Some(size) => {
                let since = ms.saturating_sub(start);
                (since.div_euclid(size), since.rem_euclid(size) == 0)
            }
            None => {
                let since = month_of(ms) - month_of(start);
                (since, month(month_of(start) + since) == ms)
            }
        }
    }

    /// The moment so many units behind `start`; `None` if there is no such date.
    pub fn after(self, start: i64, units: i64) -> Option<i64> {
        match self.millis() {
            Some(size) => start.checked_add(units.checked_mul(size)?),
            // 300 million years hold four thousand million months.
            None => i32::try_from(units).ok().map(|units| month(month_of(start) + i64::from(units))),
        }
    }
}

fn floor(ms: i64, size: i64) -> i64 {
    ms.saturating_sub(ms.rem_euclid(size))
}

/// The month that `ms` lies in, counted from the year 0.
fn month_of(ms: i64) -> i64 {
    let (year, month, _) = date_of(ms.div_euclid(DAY));
    year * 12 + month - 1
}

/// When a month begins.
fn month(months: i64) -> i64 {
    days_to(months.div_euclid(12), months.rem_euclid(12) + 1, 1).saturating_mul(DAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Milliseconds of an ISO date and time.
    fn ms(text: &str) -> i64 {
        bson::DateTime::parse_rfc3339_str(format!("{text}Z")).unwrap().timestamp_millis()
    }

    #[test]
    fn periods_begin_and_end_by_the_calendar() {
        let cases = [
            (Period::Minute, "2022-06-05T10:11:12.345", "2022-06-05T10:11:00", "2022-06-05T10:12:00"),
            (Period::Hour, "2022-06-05T10:11:12.345", "2022-06-05T10:00:00", "2022-06-05T11:00:00"),
            (Period::Day, "2022-06-05T10:11:12.345", "2022-06-05T00:00:00", "2022-06-06T00:00:00"),
            (Period::Month, "2022-06-05T10:11:12.345", "2022-06-01T00:00:00", "2022-07-01T00:00:00"),
            (Period::Quarter, "2022-06-05T10:11:12.345", "2022-04-01T00:00:00", "2022-07-01T00:00:00"),
            (Period::Year, "2022-06-05T10:11:12.345", "2022-01-01T00:00:00", "2023-01-01T00:00:00"),
            // leap days
            (Period::Day, "2024-02-29T23:59:59.999", "2024-02-29T00:00:00", "2024-03-01T00:00:00"),
            (Period::Month, "2024-02-29T00:00:00", "2024-02-01T00:00:00", "2024-03-01T00:00:00"),
            (Period::Month, "2100-02-28T00:00:00", "2100-02-01T00:00:00", "2100-03-01T00:00:00"),
            (Period::Quarter, "2000-02-29T00:00:00", "2000-01-01T00:00:00", "2000-04-01T00:00:00"),
            // the turn of a year, and before 1970
            (Period::Quarter, "2021-12-31T23:59:59.999", "2021-10-01T00:00:00", "2022-01-01T00:00:00"),
            (Period::Minute, "1969-12-31T23:59:59.999", "1969-12-31T23:59:00", "1970-01-01T00:00:00"),
            (Period::Hour, "1969-12-31T23:59:59.999", "1969-12-31T23:00:00", "1970-01-01T00:00:00"),
            (Period::Day, "1900-02-28T00:00:00.001", "1900-02-28T00:00:00", "1900-03-01T00:00:00"),
            (Period::Month, "1600-02-29T00:00:00", "1600-02-01T00:00:00", "1600-03-01T00:00:00"),
            (Period::Quarter, "1969-11-05T00:00:00", "1969-10-01T00:00:00", "1970-01-01T00:00:00"),
            (Period::Year, "0004-02-29T00:00:00", "0004-01-01T00:00:00", "0005-01-01T00:00:00"),
        ];
        for (period, at, start, next) in cases {
            assert_eq!(period.start(ms(at)), ms(start), "{period:?} of {at}");
            assert_eq!(period.start(ms(start)), ms(start), "{period:?} of its start {start}");
            assert_eq!(period.next(ms(start)), ms(next), "{period:?} after {start}");
            assert_eq!(period.start(ms(next)), ms(next), "{period:?} begins at {next}");
            assert_eq!(period.start(ms(next) - 1), ms(start), "{period:?} ends before {next}");
        }
    }

    #[test]
    fn every_date_has_a_period() {
        for period in Period::ALL {
            for at in [i64::MIN, i64::MIN + 1, -1, 0, 1, i64::MAX - 1, i64::MAX] {
                let start = period.start(at);
                assert!(start <= at && period.next(start) >= at, "{period:?} of {at}");
                assert_eq!(period.start(start), start, "{period:?} of {at}");
                for grain in [Grain::Millisecond, Grain::Second, Grain::Minute, Grain::Day, Grain::Month] {
                    let (units, exact) = grain.units_since(start, at);
                    if exact {
                        assert_eq!(grain.after(start, units), Some(at), "{grain:?} of {at} in {period:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn units_are_counted_from_the_start() {
        let start = ms("2024-01-01T00:00:00");
        let cases = [
            (Grain::Millisecond, "2024-01-01T00:00:01.5", 1_500, true),
            (Grain::Second, "2024-01-01T00:01:01", 61, true),
            (Grain::Second, "2024-01-01T00:01:01.001", 61, false),
            (Grain::Minute, "2024-01-01T02:01:00", 121, true),
            (Grain::Hour, "2024-01-02T02:00:00", 26, true),
            (Grain::Day, "2024-03-01T00:00:00", 60, true),
            (Grain::Month, "2024-03-01T00:00:00", 2, true),
            (Grain::Month, "2024-03-01T00:00:00.001", 2, false),
        ];
        for (grain, at, units, exact) in cases {
            assert_eq!(grain.units_since(start, ms(at)), (units, exact), "{grain:?} {at}");
            assert_eq!(grain.after(start, units), Some(grain.start(ms(at))), "{grain:?} {at}");
        }
        assert_eq!(Grain::Day.after(start, i64::MAX), None);
        assert_eq!(Grain::Month.after(start, i64::MAX), None);
        assert_eq!(Period::Month.units(Grain::Hour), 744);
        assert_eq!(Period::Quarter.units(Grain::Day), 92);
    }
}
