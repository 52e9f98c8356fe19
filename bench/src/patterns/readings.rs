//! Sensors over bucketed readings: of some the first and last value and a window, which are looked up by time, of others the largest
//! and smallest value. What the newest reading took the place of is looked up in the buckets again when it goes.

use super::cases::{Case, GROWING, Key, insert};
use crate::connection::Connection;
use crate::template::{ID_MARK, KEY_MARK};
use crate::workload::fill_in;
use anyhow::Result;
use bson::{DateTime, Document, doc};

const SHOWN: i32 = 5;
const MINUTE: i64 = 60_000;

/// The two sources, each with its hosts, and what is looked up.
pub(super) const SOURCES: [(&str, &str, &str); 2] =
    [("readings", "sensors", "the newest reading"), ("samples", "gauges", "the largest reading")];

/// The collections of the cases, part of the declaration.
pub(super) fn rules() -> Document {
    let bucket = || doc! { "bucket": { "time": "at", "by": ["sensorId"], "every": "hour", "at_most": 60 } };
    let by_value = |kind: &str| doc! { kind: "value", "from": "samples", "by": "sensorId" };
    let by_time = |kind: &str| doc! { kind: "value", "from": "readings", "by": "sensorId", "sort": { "at": 1 } };
    let newest = doc! {
        "from": "readings", "by": "sensorId", "sort": { "at": -1 }, "keep": SHOWN, "fields": ["value", "at"],
    };
    doc! {
        "readings": bucket(),
        "samples": bucket(),
        "sensors": { "computed": { "first": by_time("first"), "last": by_time("last") }, "subset": { "newest": newest } },
        "gauges": { "computed": { "largest": by_value("max"), "smallest": by_value("min") } },
    }
}

fn reading(id: i64, sensor: i64, value: i64, at: i64) -> Document {
    doc! { "_id": id, "sensorId": sensor, "value": value, "at": DateTime::from_millis(at) }
}

/// Sensors with so many readings, one a minute.
pub(super) async fn load(connection: &mut Connection, db: &str, key: i64, size: i64, first: i64) -> Result<()> {
    for (source, host, _) in SOURCES {
        connection.command(&doc! { "insert": host, "documents": [{ "_id": key }], "$db": db }).await?;
        fill_in(connection, db, source, size, |i| reading(first + i, key, 3, i * MINUTE)).await?;
    }
    Ok(())
}

/// The index that the commands by hand need.
pub(super) fn index() -> Document {
    doc! { "key": { "sensorId": 1, "at": -1 }, "name": "sensorId_1_at_-1" }
}

/// The newest and largest reading comes and goes.
pub(super) fn cases(size: i64) -> impl Iterator<Item = Case> {
    SOURCES.into_iter().map(move |(source, _, what)| {
        let at = DateTime::from_millis(ID_MARK);
        let come = || insert(source, doc! { "_id": ID_MARK, "sensorId": KEY_MARK, "value": ID_MARK, "at": at });
        let mine = || doc! { "sensorId": KEY_MARK, "at": at };
        let go = || doc! { "delete": source, "deletes": [{ "q": mine(), "limit": 1 }] };
        let newest = doc! { "find": source, "filter": { "sensorId": KEY_MARK }, "sort": { "at": -1 }, "limit": SHOWN, "singleBatch": true };
        Case {
            name: format!("buckets: {what} comes and goes, {size}"),
            clients: 1,
            writes: true,
            key: Key::One(GROWING + size),
            none: vec![come(), go()],
            by_hand: vec![come(), go(), newest],
            pleach: vec![come(), go()],
            same_door: false,
        }
    })
}
