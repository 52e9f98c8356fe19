//! The layouts that are compared: which events share a document, and what its `_id` is.

use super::calendar::{Date, Day};
use super::events::Event;

/// How events are stored. The study's names for them are V4, V5R3, V6R0 and V6R1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, clap::ValueEnum)]
pub(crate) enum Layout {
    /// A document per key and day: `{ _id, a }`
    Day,
    /// A document per key and quarter with an array of days: `{ _id, items: [{ date, a }] }`
    Array,
    /// A document per key and month with a field per day: `{ _id, items: { "05": { a } } }`
    Month,
    /// A document per key and quarter with a field per day: `{ _id, items: { "0605": { a } } }`
    Quarter,
}

impl Layout {
    pub(crate) const ALL: [Layout; 4] = [Layout::Day, Layout::Array, Layout::Month, Layout::Quarter];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Layout::Day => "day documents",
            Layout::Array => "array, quarter",
            Layout::Month => "field names, month",
            Layout::Quarter => "field names, quarter",
        }
    }

    /// In file and database names.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Layout::Day => "day",
            Layout::Array => "array",
            Layout::Month => "month",
            Layout::Quarter => "quarter",
        }
    }

    pub(crate) fn version(self) -> &'static str {
        match self {
            Layout::Day => "V4",
            Layout::Array => "V5R3",
            Layout::Month => "V6R0",
            Layout::Quarter => "V6R1",
        }
    }

    /// The stored `_id`: the key's 32 bytes, then the period's decimal digits, two in a byte. They sort by key, then time.
    pub(crate) fn id(self, key: u32, day: Day) -> Vec<u8> {
        let date = Date::of(day);
        let mut id = vec![0; 28];
        id.extend_from_slice(&key.to_be_bytes());
        id.push(packed(date.year / 100));
        id.push(packed(date.year % 100));
        match self {
            Layout::Day => id.extend([packed(u16::from(date.month)), packed(u16::from(date.day))]),
            Layout::Month => id.push(packed(u16::from(date.month))),
            Layout::Array | Layout::Quarter => id.push(date.quarter()),
        }
        id
    }

    /// How many bytes its `_id` has.
    pub(crate) fn id_length(self) -> usize {
        match self {
            Layout::Day => 36,
            Layout::Array | Layout::Month | Layout::Quarter => 35,
        }
    }

    /// The name of a day within its document, where days have names.
    pub(crate) fn slot(self, day: Day) -> Option<String> {
        let date = Date::of(day);
        match self {
            Layout::Day | Layout::Array => None,
            Layout::Month => Some(format!("{:02}", date.day)),
            Layout::Quarter => Some(format!("{:02}{:02}", date.month, date.day)),
        }
    }

    /// Tells the documents of one key apart, in time order.
    pub(crate) fn period(self, day: Day) -> u32 {
        let date = Date::of(day);
        match self {
            Layout::Day => u32::from(day),
            Layout::Month => u32::from(date.year) * 12 + u32::from(date.month),
            Layout::Array | Layout::Quarter => u32::from(date.year) * 4 + u32::from(date.quarter()),
        }
    }
}

/// Two decimal digits in a byte.
fn packed(number: u16) -> u8 {
    u8::try_from(number / 10 * 16 + number % 10).unwrap_or_default()
}

/// A key as clients write it: 64 hex digits.
pub(crate) fn hex(key: u32) -> String {
    format!("{key:064X}")
}

/// What tells the statements of events apart, beside `_id` and date: few.
pub(crate) fn slot_number(layout: Layout, event: &Event) -> u16 {
    let date = Date::of(event.day);
    match layout {
        Layout::Day | Layout::Array => 0,
        Layout::Month => u16::from(date.day),
        Layout::Quarter => u16::from(date.month) * 32 + u16::from(date.day),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_study_s() {
        let day = Date::new(2022, 6, 5).number();
        let tail = |layout: Layout| layout.id(0x0102, day)[28..].to_vec();
        assert_eq!(tail(Layout::Day), [0, 0, 1, 2, 0x20, 0x22, 0x06, 0x05]);
        assert_eq!(tail(Layout::Month), [0, 0, 1, 2, 0x20, 0x22, 0x06]);
        assert_eq!(tail(Layout::Quarter), [0, 0, 1, 2, 0x20, 0x22, 0x02]);
        let day = Date::new(2019, 12, 31).number();
        assert_eq!(Layout::Day.id(1, day)[32..], [0x20, 0x19, 0x12, 0x31]);
        for layout in Layout::ALL {
            assert_eq!(layout.id(1, day).len(), layout.id_length());
        }
        assert_eq!(Layout::Quarter.slot(day).as_deref(), Some("1231"));
        assert_eq!(hex(255).len(), 64);
    }
}
