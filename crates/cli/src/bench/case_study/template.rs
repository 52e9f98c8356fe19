//! A statement as bytes, made once; only `_id` or key and the date are written into it for each event.

use super::calendar::milliseconds;
use super::events::{Event, date};
use super::layout::{Layout, hex};
use bson::spec::BinarySubtype;
use bson::{Binary, Document};

/// Stands where the `_id` goes: no part of a statement is like it.
const ID: u8 = 0xA5;

/// Stands where the key's digits go.
const DIGIT: &str = "~";

/// Stands where the date goes: no event is so late.
const DAY: u16 = u16::MAX;

/// The `_id` of the document that a statement is for.
pub(crate) fn id(layout: Layout) -> Binary {
    Binary { subtype: BinarySubtype::Generic, bytes: vec![ID; layout.id_length()] }
}

/// The key of an event.
pub(crate) fn key() -> String {
    DIGIT.repeat(64)
}

/// The date of an event.
pub(crate) fn day() -> bson::DateTime {
    date(DAY)
}

pub(crate) struct Template {
    bytes: Vec<u8>,
    layout: Layout,
    ids: Vec<usize>,
    keys: Vec<usize>,
    dates: Vec<usize>,
}

impl Template {
    pub(crate) fn of(statement: &Document, layout: Layout) -> Template {
        let bytes = statement.to_vec().unwrap_or_default();
        let places = |pattern: &[u8]| {
            let found = bytes.windows(pattern.len()).enumerate().filter(|(_, window)| *window == pattern);
            found.map(|(at, _)| at).collect()
        };
        Template {
            ids: places(&vec![ID; layout.id_length()]),
            keys: places(key().as_bytes()),
            dates: places(&milliseconds(DAY).to_le_bytes()),
            layout,
            bytes,
        }
    }

    /// Appends the statement for `event`.
    pub(crate) fn append(&self, event: &Event, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let mut write = |places: &[usize], bytes: &[u8]| {
            for place in places {
                if let Some(room) = out.get_mut(start + place..start + place + bytes.len()) {
                    room.copy_from_slice(bytes);
                }
            }
        };
        if !self.ids.is_empty() {
            write(&self.ids, &self.layout.id(event.key, event.day));
        }
        if !self.keys.is_empty() {
            write(&self.keys, hex(event.key).as_bytes());
        }
        write(&self.dates, &milliseconds(event.day).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Status;
    use super::*;
    use bson::doc;

    #[test]
    fn what_changes_is_written_wherever_it_stands() {
        let event = Event { key: 77, day: 3_000, status: Status::Approved };
        let statement =
            |id: Binary, key: String, day: bson::DateTime| doc! { "q": { "_id": id, "key": key }, "d": [day, day] };
        let mut bytes = Vec::new();
        Template::of(&statement(id(Layout::Day), key(), day()), Layout::Day).append(&event, &mut bytes);
        let expected = statement(
            Binary { subtype: BinarySubtype::Generic, bytes: Layout::Day.id(77, 3_000) },
            hex(77),
            date(3_000),
        );
        assert_eq!(Document::from_reader(&*bytes).unwrap(), expected);
    }
}
