//! What must be stored: the documents of a layout, made in memory from the raw events, and how large they are.

use super::calendar::Day;
use super::events::{Status, date};
use super::layout::Layout;
use super::truth::{Sums, Truth};
use bson::spec::BinarySubtype;
use bson::{Binary, Document};

/// How many documents there are, and their BSON bytes in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) documents: u64,
    pub(crate) bytes: u64,
}

impl Amount {
    pub(crate) fn of(truth: &Truth, layout: Layout) -> Amount {
        let mut amount = Amount::default();
        each_document(truth, layout, |document| {
            amount.documents += 1;
            amount.bytes += document.len() as u64;
        });
        amount
    }
}

/// The day of one key: how many events of each status.
pub(crate) type Days = Vec<(Day, Sums)>;

/// Every document of a layout as its days, in the order of `_id`.
pub(crate) fn each_bucket(truth: &Truth, layout: Layout, mut each: impl FnMut(u32, &Days)) {
    for key in truth.keys() {
        let mut days: Days = Vec::new();
        for (day, status) in truth.of_key(key) {
            if days.first().is_some_and(|(first, _)| layout.period(*first) != layout.period(*day)) {
                each(key, &days);
                days.clear();
            }
            if days.last().is_none_or(|(last, _)| last != day) {
                days.push((*day, [0; 4]));
            }
            if let Some(sum) = days.last_mut().and_then(|(_, sums)| sums.get_mut(*status as usize)) {
                *sum += 1;
            }
        }
        if !days.is_empty() {
            each(key, &days);
        }
    }
}

/// Every document of a layout, as BSON.
pub(crate) fn each_document(truth: &Truth, layout: Layout, mut each: impl FnMut(&[u8])) {
    let mut bytes = Vec::new();
    each_bucket(truth, layout, |key, days| {
        let Some((first, _)) = days.first() else { return };
        let id = Binary { subtype: BinarySubtype::Generic, bytes: layout.id(key, *first) };
        let mut document = bson::doc! { "_id": id };
        match layout {
            Layout::Day => days.iter().for_each(|(_, sums)| add(&mut document, sums)),
            Layout::Array => {
                let item = |(day, sums): &(Day, Sums)| {
                    let mut item = bson::doc! { "date": date(*day) };
                    add(&mut item, sums);
                    item
                };
                document.insert("items", days.iter().map(item).collect::<Vec<Document>>());
            }
            Layout::Month | Layout::Quarter => {
                let mut items = Document::new();
                for (day, sums) in days {
                    let mut item = Document::new();
                    add(&mut item, sums);
                    items.insert(layout.slot(*day).unwrap_or_default(), item);
                }
                document.insert("items", items);
            }
        }
        bytes.clear();
        // Writing to memory cannot fail, and a document of days has nothing that BSON has not.
        if document.to_writer(&mut bytes).is_ok() {
            each(&bytes);
        }
    });
}

/// The sums that are not zero, under their short names.
fn add(document: &mut Document, sums: &Sums) {
    for (status, sum) in Status::ALL.into_iter().zip(sums).filter(|(_, sum)| **sum > 0) {
        document.insert(status.short(), i32::try_from(*sum).unwrap_or(i32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use super::super::events::Events;
    use super::*;

    /// The study's averages, near enough at two hundred users: 384 bytes, 125 and 263, and 58.7 a day; its documents per event.
    #[test]
    fn documents_are_as_large_and_as_many_as_the_study_s() {
        let events = Events::generate(12_000, 1);
        let truth = Truth::of(&events);
        for (layout, bytes, per_event) in [
            (Layout::Day, 58.7, 359_645_881.0 / 500_390_000.0),
            (Layout::Array, 384.15, 33_429_584.0 / 500_390_000.0),
            (Layout::Month, 125.0, 95_352_328.0 / 500_390_000.0),
            (Layout::Quarter, 263.06, 33_429_584.0 / 500_390_000.0),
        ] {
            let amount = Amount::of(&truth, layout);
            let average = amount.bytes as f64 / amount.documents as f64;
            assert!((average / bytes - 1.0).abs() < 0.02, "{layout:?}: {average} bytes, the study has {bytes}");
            let share = amount.documents as f64 / events.all.len() as f64;
            assert!((share / per_event - 1.0).abs() < 0.02, "{layout:?}: {share} per event, the study has {per_event}");
        }
    }
}
