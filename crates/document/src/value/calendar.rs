//! The Gregorian calendar over all 64-bit milliseconds: a moment's fields, and back.

pub const DAY: i64 = 86_400_000;

/// The fields of a moment, in whatever zone its milliseconds were shifted to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    pub year: i64,
    pub month: i64,
    pub day: i64,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
    pub millisecond: i64,
}

impl Moment {
    pub fn of(millis: i64) -> Moment {
        let (days, rest) = (millis.div_euclid(DAY), millis.rem_euclid(DAY));
        let (year, month, day) = date_of(days);
        Moment {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            millisecond: rest % 1000,
        }
    }

    /// 0 is Sunday.
    pub fn weekday(&self) -> i64 {
        (days_to(self.year, self.month, self.day) + 4).rem_euclid(7)
    }

    /// 1 is Monday, 7 is Sunday.
    pub fn iso_weekday(&self) -> i64 {
        (self.weekday() + 6) % 7 + 1
    }

    pub fn day_of_year(&self) -> i64 {
        days_to(self.year, self.month, self.day) - days_to(self.year, 1, 1) + 1
    }

    /// Weeks begin on Sundays; the days before the first Sunday are week 0.
    pub fn week(&self) -> i64 {
        (self.day_of_year() + 6 - self.weekday()) / 7
    }

    /// The ISO week and the year it belongs to.
    pub fn iso_week(&self) -> (i64, i64) {
        // A week belongs to the year of its Thursday.
        let thursday = days_to(self.year, self.month, self.day) + 4 - self.iso_weekday();
        let (year, _, _) = date_of(thursday);
        (year, (thursday - days_to(year, 1, 1)) / 7 + 1)
    }
}

/// Days since 1970-01-01 of a date; months and days beyond their range run on into the next or the last.
pub fn days_to(year: i64, month: i64, day: i64) -> i64 {
    let year = year + (month - 1).div_euclid(12);
    let month = (month - 1).rem_euclid(12) + 1;
    // Years begin in March, so that the leap day is their last.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = (month + 9) % 12;
    let day_of_year = (153 * month_from_march + 2) / 5;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468 + day - 1
}

/// Year, month and day of a number of days since 1970-01-01.
pub fn date_of(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day_of_year - (153 * month_from_march + 2) / 5 + 1)
}

pub fn days_in_month(year: i64, month: i64) -> i64 {
    days_to(year, month + 1, 1) - days_to(year, month, 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_some_centuries_and_the_ends_of_time_come_back() {
        for days in (-800_000..800_000).chain([i64::MIN / DAY, i64::MAX / DAY]) {
            let (year, month, day) = date_of(days);
            assert_eq!(days_to(year, month, day), days);
            assert!((1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day));
        }
        let leap = Moment::of(1_709_214_310_123);
        assert_eq!((leap.year, leap.month, leap.day, leap.hour, leap.millisecond), (2024, 2, 29, 13, 123));
        assert_eq!((leap.weekday(), leap.day_of_year(), leap.week(), leap.iso_week()), (4, 60, 8, (2024, 9)));
    }
}
