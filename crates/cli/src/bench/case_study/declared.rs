//! The same through Pleach: one declaration per layout, and a client that knows events only.

use super::calendar::Day;
use super::events::{Event, Status, date};
use super::layout::{Layout, hex};
use super::template;
use bson::{Bson, Document, doc};

/// What clients call the events.
pub(crate) const COLLECTION: &str = "events";

/// Where they are stored.
pub(crate) const STORED: &str = "events_stored";

/// The declaration of a layout; there is none for day documents, which are no buckets.
pub(crate) fn declaration(db: &str, layout: Layout) -> Option<String> {
    let (every, form) = match layout {
        Layout::Day => return None,
        Layout::Array => ("quarter", "array"),
        Layout::Month => ("month", "field_names"),
        Layout::Quarter => ("quarter", "field_names"),
    };
    Some(format!(
        "database: {db}
collections:
  {COLLECTION}:
    bucket:
      into: {STORED}
      time: date
      by: [{{ field: key, as: hex }}]
      every: {every}
      slot: day
      sum: {{ approved: a, noFunds: n, pending: p, rejected: r }}
      layout: {form}
      bucket_id: packed
"
    ))
}

/// One statement of `update`, with placeholders for key and date: the same for all layouts.
pub(crate) fn upsert(event: &Event) -> Document {
    doc! {
        "q": { "key": template::key(), "date": template::day() },
        "u": { "$inc": { event.status.name(): 1 } },
        "upsert": true,
    }
}

/// The pipeline of one report over `[start, end)`: the same for all layouts.
pub(crate) fn report(key: u32, start: Day, end: Day) -> Vec<Document> {
    let mut group = doc! { "_id": Bson::Null };
    for status in Status::ALL {
        group.insert(status.name(), doc! { "$sum": format!("${}", status.name()) });
    }
    vec![
        doc! { "$match": { "key": hex(key), "date": { "$gte": date(start), "$lt": date(end) } } },
        doc! { "$group": group },
    ]
}
