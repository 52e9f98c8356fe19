//! Days of the study: numbered from 2010-01-01, all at midnight UTC.

/// Days from 1970-01-01 to 2010-01-01.
const FIRST: i64 = 14_610;

pub(crate) const DAY_MS: i64 = 86_400_000;

/// Days since 2010-01-01.
pub(crate) type Day = u16;

/// A day as people write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: u16,
    pub(crate) month: u8,
    pub(crate) day: u8,
}

impl Date {
    pub(crate) fn new(year: u16, month: u8, day: u8) -> Date {
        Date { year, month, day }
    }

    pub(crate) fn of(number: Day) -> Date {
        // From 0000-03-01, in eras of 400 years: the leap day is the last of its year then.
        let days = u32::from(number) + 14_610 + 719_468;
        let (era, of_era) = (days / 146_097, days % 146_097);
        let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let shifted = (5 * of_year + 2) / 153;
        let day = of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = year_of_era + era * 400 + u32::from(month <= 2);
        Date::new(narrow(year), narrow(month), narrow(day))
    }

    /// Its number; days before 2010 are not of the study and count as its first.
    pub(crate) fn number(self) -> Day {
        let year = u32::from(self.year) - u32::from(self.month <= 2);
        let (era, year_of_era) = (year / 400, year % 400);
        let month = u32::from(self.month);
        let shifted = if month > 2 { month - 3 } else { month + 9 };
        let of_year = (153 * shifted + 2) / 5 + u32::from(self.day) - 1;
        let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
        narrow((era * 146_097 + of_era).saturating_sub(719_468 + 14_610))
    }

    /// The same day `years` earlier; 29 February is 1 March in a year that has none.
    pub(crate) fn years_before(self, years: u16) -> Date {
        let year = self.year - years;
        let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        match (self.month, self.day) {
            (2, 29) if !leap => Date::new(year, 3, 1),
            (month, day) => Date::new(year, month, day),
        }
    }

    /// 1 to 4.
    pub(crate) fn quarter(self) -> u8 {
        (self.month - 1) / 3 + 1
    }
}

/// Milliseconds since 1970.
pub(crate) fn milliseconds(day: Day) -> i64 {
    (FIRST + i64::from(day)) * DAY_MS
}

/// A number that is known to be small enough.
fn narrow<T: TryFrom<u32> + Default>(number: u32) -> T {
    T::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_are_each_other() {
        for (number, date) in
            [(0, (2010, 1, 1)), (59, (2010, 3, 1)), (789, (2012, 2, 29)), (3652, (2020, 1, 1)), (4017, (2020, 12, 31))]
        {
            let date = Date::new(date.0, date.1, date.2);
            assert_eq!(Date::of(number), date);
            assert_eq!(date.number(), number);
        }
        assert!((0..4_018).all(|number| Date::of(number).number() == number));
        assert_eq!(milliseconds(3652), 1_577_836_800_000);
    }

    #[test]
    fn a_leap_day_rolls_over() {
        assert_eq!(Date::new(2020, 2, 29).years_before(1), Date::new(2019, 3, 1));
        assert_eq!(Date::new(2020, 2, 29).years_before(4), Date::new(2016, 2, 29));
        assert_eq!(Date::new(2020, 7, 4).years_before(10), Date::new(2010, 7, 4));
    }
}
