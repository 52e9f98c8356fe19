//! The name of a slot: what the bucket's period leaves open, as digits: "0605" for the 5th of June in a quarter.

use crate::shapes::bucket::{Grain, Period};
use document::value::calendar::{DAY, Moment, days_to};

/// The parts of a slot's name with the digits of each, from the longest to the shortest: everything below the period
/// down to the slot's size.
pub(crate) fn parts(every: Period, slot: Grain) -> impl Iterator<Item = (Grain, usize)> {
    const PARTS: [(Grain, usize); 6] = [
        (Grain::Month, 2),
        (Grain::Day, 2),
        (Grain::Hour, 2),
        (Grain::Minute, 2),
        (Grain::Second, 2),
        (Grain::Millisecond, 3),
    ];
    let longest = match every {
        Period::Year | Period::Quarter => Grain::Month,
        Period::Month => Grain::Day,
        Period::Day => Grain::Hour,
        Period::Hour => Grain::Minute,
        Period::Minute => Grain::Second,
    };
    PARTS.into_iter().filter(move |(part, _)| (slot..=longest).contains(part))
}

/// The name of the slot that `at` lies in.
pub fn slot_key(every: Period, slot: Grain, at: i64) -> String {
    let moment = Moment::of(at);
    let mut key = String::with_capacity(6);
    for (part, digits) in parts(every, slot) {
        let number = match part {
            Grain::Month => moment.month,
            Grain::Day => moment.day,
            Grain::Hour => moment.hour,
            Grain::Minute => moment.minute,
            Grain::Second => moment.second,
            Grain::Millisecond => moment.millisecond,
        };
        let mut divisor = 10_i64.pow(u32::try_from(digits).unwrap_or(2) - 1);
        while divisor > 0 {
            key.push(char::from(b'0' + u8::try_from(number / divisor % 10).unwrap_or_default()));
            divisor /= 10;
        }
    }
    key
}

/// When the slot of that name begins, in the bucket that begins at `start`; `None` if that bucket has no such slot.
pub fn slot_start(every: Period, slot: Grain, start: i64, key: &str) -> Option<i64> {
    let mut moment = Moment::of(start);
    let mut rest = key;
    for (part, digits) in parts(every, slot) {
        let (number, after) = rest.split_at_checked(digits)?;
        let number: i64 = number.bytes().all(|digit| digit.is_ascii_digit()).then(|| number.parse().ok()).flatten()?;
        let place = match part {
            Grain::Month => &mut moment.month,
            Grain::Day => &mut moment.day,
            Grain::Hour => &mut moment.hour,
            Grain::Minute => &mut moment.minute,
            Grain::Second => &mut moment.second,
            Grain::Millisecond => &mut moment.millisecond,
        };
        *place = number;
        rest = after;
    }
    let clock = ((moment.hour * 60 + moment.minute) * 60 + moment.second) * 1000 + moment.millisecond;
    let at = days_to(moment.year, moment.month, moment.day).checked_mul(DAY)?.checked_add(clock)?;
    // A day that the month lacks ran on into the next; a month may be of another quarter.
    (rest.is_empty() && every.start(at) == start && slot_key(every, slot, at) == key).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(text: &str) -> i64 {
        bson::DateTime::parse_rfc3339_str(format!("{text}Z")).unwrap().timestamp_millis()
    }

    #[test]
    fn names_of_every_period_and_slot() {
        use Grain::*;
        let at = ms("2024-06-05T07:08:09.012");
        let cases = [
            (Period::Year, Month, "06"),
            (Period::Year, Day, "0605"),
            (Period::Year, Hour, "060507"),
            (Period::Quarter, Month, "06"),
            (Period::Quarter, Day, "0605"),
            (Period::Month, Day, "05"),
            (Period::Month, Hour, "0507"),
            (Period::Month, Minute, "050708"),
            (Period::Day, Hour, "07"),
            (Period::Day, Minute, "0708"),
            (Period::Day, Second, "070809"),
            (Period::Hour, Minute, "08"),
            (Period::Hour, Second, "0809"),
            (Period::Minute, Second, "09"),
            (Period::Minute, Millisecond, "09012"),
        ];
        for (every, slot, key) in cases {
            let cut = slot.start(at);
            assert_eq!(slot_key(every, slot, cut), key, "{every:?} {slot:?}");
            assert_eq!(slot_start(every, slot, every.start(at), key), Some(cut), "{every:?} {slot:?}");
        }
    }

    #[test]
    fn names_that_a_bucket_does_not_have() {
        let quarter = ms("2023-01-01T00:00:00");
        for key in ["", "1", "010", "01011", "0100", "0132", "0230", "0229", "0401", "1301", "0a01", "+101", "０１"] {
            assert_eq!(slot_start(Period::Quarter, Grain::Day, quarter, key), None, "{key}");
        }
        assert_eq!(
            slot_start(Period::Quarter, Grain::Day, ms("2024-01-01T00:00:00"), "0229"),
            Some(ms("2024-02-29T00:00:00"))
        );
    }

    #[test]
    fn all_days_of_leap_and_other_years_come_back() {
        for every in [Period::Year, Period::Quarter, Period::Month] {
            for day in -1_000..1_000 {
                let at = day * DAY;
                let key = slot_key(every, Grain::Day, at);
                assert_eq!(slot_start(every, Grain::Day, every.start(at), &key), Some(at), "{every:?} {key}");
            }
        }
    }
}
