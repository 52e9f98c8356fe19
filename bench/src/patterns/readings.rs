//! A sensor over bucketed readings: the largest and smallest value, the first and last one, and a window. What the newest reading took
//! the place of is looked up in the buckets again when it goes.

use super::cases::{Case, GROWING, Key, insert};
use crate::connection::Connection;
use crate::template::{ID_MARK, KEY_MARK};
use crate::workload::fill_in;
use anyhow::Result;
use bson::{DateTime, Document, doc};

const SHOWN: i32 = 5;
const MINUTE: i64 = 60_000;

/// The collections of the case, part of the declaration.
pub(super) fn rules() -> Document {
    let of_readings = |kind: &str| doc! { kind: "value", "from": "readings", "by": "sensorId" };
    let by_time = |kind: &str| doc! { kind: "value", "from": "readings", "by": "sensorId", "sort": { "at": 1 } };
    doc! {
        "readings": { "bucket": { "time": "at", "by": ["sensorId"], "every": "hour", "at_most": 60 } },
        "sensors": {
            "computed": {
                "largest": of_readings("max"), "smallest": of_readings("min"),
                "first": by_time("first"), "last": by_time("last"),
            },
            "subset": { "newest": {
                "from": "readings", "by": "sensorId", "sort": { "at": -1 }, "keep": SHOWN, "fields": ["value", "at"],
            } },
        },
    }
}

fn reading(id: i64, sensor: i64, value: i64, at: i64) -> Document {
    doc! { "_id": id, "sensorId": sensor, "value": value, "at": DateTime::from_millis(at) }
}

/// A sensor with so many readings, one a minute.
pub(super) async fn load(connection: &mut Connection, db: &str, key: i64, size: i64, first: i64) -> Result<()> {
    connection.command(&doc! { "insert": "sensors", "documents": [{ "_id": key }], "$db": db }).await?;
    fill_in(connection, db, "readings", size, |i| reading(first + i, key, 3, i * MINUTE)).await
}

/// The index that the commands by hand need.
pub(super) fn index() -> Document {
    doc! { "key": { "sensorId": 1, "at": -1 }, "name": "sensorId_1_at_-1" }
}

/// The newest and largest reading comes and goes.
pub(super) fn remove(size: i64) -> Case {
    let at = DateTime::from_millis(ID_MARK);
    let come = || insert("readings", doc! { "_id": ID_MARK, "sensorId": KEY_MARK, "value": ID_MARK, "at": at });
    let mine = || doc! { "sensorId": KEY_MARK, "at": at };
    let go = || doc! { "delete": "readings", "deletes": [{ "q": mine(), "limit": 1 }] };
    let newest = doc! { "find": "readings", "filter": { "sensorId": KEY_MARK }, "sort": { "at": -1 }, "limit": SHOWN, "singleBatch": true };
    Case {
        name: format!("buckets: the largest reading comes and goes, {size}"),
        clients: 1,
        writes: true,
        key: Key::One(GROWING + size),
        none: vec![come(), go()],
        by_hand: vec![come(), go(), newest],
        pleach: vec![come(), go()],
    }
}
