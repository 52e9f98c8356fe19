//! Fields that are kept from a bucketed collection, through both doors (SEMANTICS R34).

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, DateTime, Document, doc};
use judge::client::Client;

at_each_door!(fields_follow_readings, series_of_hex_digits_link_as_clients_see_them,);

const HOUR: i64 = 3_600_000;

fn reading(id: i32, sensor: &str, minute: i64, temp: impl Into<Bson>) -> Document {
    doc! { "_id": id, "sensorId": sensor, "ts": DateTime::from_millis(HOUR * 500_000 + minute * 60_000), "temp": temp.into() }
}

fn rules(by: Bson) -> Document {
    doc! {
        "sensor_data": { "bucket": { "into": "sensor_hours", "time": "ts", "by": [by], "every": "hour", "at_most": 7, "stats": { "temp": ["max"] } } },
        "sensors": { "computed": {
            "readingCount": { "count": "sensor_data", "by": "sensorId" },
            "total": { "sum": "temp", "from": "sensor_data", "by": "sensorId", "where": { "temp": { "$gt": 0 } } },
        } },
        "alarms": { "extended_reference": { "reading": { "from": "sensor_data", "by": "readingId", "fields": ["temp"], "when_deleted": "unset" } } },
    }
}

#[track_caller]
fn check(door: &Door, sensor: &str, count: i32, total: impl Into<Bson>) {
    let sensors = door.all("sensors");
    let found = sensors.iter().find(|found| found.get_str("_id").unwrap() == sensor).unwrap();
    let shown = (found.get("readingCount").cloned(), found.get("total").cloned());
    assert_eq!(shown, (Some(Bson::Int32(count)), Some(total.into())), "{}: {found}", door.at.name());
}

fn audited(door: &Door, client: &mut Client) {
    let report = door.run(client, doc! { "pleach": "audit" });
    assert_eq!(report.get_i64("drifted").unwrap(), 0, "{}: {report}", door.at.name());
    assert!(report.get_i64("checked").unwrap() > 0, "{}: {report}", door.at.name());
}

fn alarm(door: &Door) -> Option<Bson> {
    let alarm = door.all("alarms").remove(0);
    alarm.get_document("reading").ok().and_then(|reading| reading.get("temp").cloned())
}

fn fields_follow_readings(at: At) {
    let door = at.door("stacked");
    let mut client = door.client();
    // Some are there before the rules.
    door.insert(&mut client, "sensors", vec![doc! { "_id": "a1" }, doc! { "_id": "b2" }]);
    door.insert(&mut client, "alarms", vec![doc! { "_id": 1, "readingId": 3 }]);
    door.insert(&mut client, "sensor_data", (0..20).map(|id| reading(id, "a1", i64::from(id) * 9, 1)).collect());
    let applied = door.applied(&mut client, rules(Bson::from("sensorId")));
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    check(&door, "a1", 20, 20);
    assert_eq!(alarm(&door), Some(Bson::Int32(1)));
    door.insert(&mut client, "sensor_data", vec![reading(100, "b2", 0, 2.5)]);
    door.insert(&mut client, "sensor_data", (101..130).map(|id| reading(id, "b2", i64::from(id), 2)).collect());
    check(&door, "b2", 30, 60.5);
    let set = |query: Document, change: Document, multi: bool| {
        doc! { "update": "sensor_data", "updates": [{ "q": query, "u": change, "multi": multi }] }
    };
    door.run(&mut client, set(doc! { "_id": 3 }, doc! { "$set": { "temp": 9, "sensorId": "b2" } }, false));
    check(&door, "a1", 19, 19);
    check(&door, "b2", 31, 69.5);
    assert_eq!(alarm(&door), Some(Bson::Int32(9)));
    door.run(
        &mut client,
        set(doc! { "sensorId": "b2", "_id": { "$gte": 100 } }, doc! { "$set": { "temp": -1 } }, true),
    );
    check(&door, "b2", 31, 9);
    let explained = door.run(
        &mut client,
        doc! { "pleach": "explain", "command": { "insert": "sensor_data", "documents": [reading(200, "a1", 5, 4)] } },
    );
    assert!(explained.to_string().contains("readingCount"), "{}: {explained}", door.at.name());
    door.run(&mut client, doc! { "delete": "sensor_data", "deletes": [{ "q": { "_id": 3 }, "limit": 1 }, { "q": { "sensorId": "a1" }, "limit": 0 }] });
    check(&door, "a1", 0, 0);
    check(&door, "b2", 30, 0);
    assert_eq!(alarm(&door), None);
    audited(&door, &mut client);
    // The same readings as documents of their own.
    door.run(&mut client, doc! { "pleach": "drop", "rule": "sensor_data.bucket" });
    door.insert(&mut client, "sensor_data", vec![reading(300, "a1", 1, 5)]);
    check(&door, "a1", 1, 5);
    audited(&door, &mut client);
    door.finish();
}

fn series_of_hex_digits_link_as_clients_see_them(at: At) {
    let door = at.door("stacked_hex");
    let mut client = door.client();
    let applied = door.applied(&mut client, rules(Bson::Document(doc! { "field": "sensorId", "as": "hex" })));
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    door.insert(&mut client, "sensors", vec![doc! { "_id": "ab" }]);
    door.insert(&mut client, "sensor_data", vec![reading(1, "ab", 0, 2), reading(2, "AB", 1, 3)]);
    check(&door, "ab", 2, 5);
    door.run(
        &mut client,
        doc! { "delete": "sensor_data", "deletes": [{ "q": { "sensorId": "AB", "_id": 1 }, "limit": 1 }] },
    );
    check(&door, "ab", 1, 3);
    // A host that comes later is evaluated from readings.
    door.insert(&mut client, "sensor_data", vec![reading(3, "cd", 0, 7)]);
    door.insert(&mut client, "sensors", vec![doc! { "_id": "cd" }]);
    check(&door, "cd", 1, 7);
    audited(&door, &mut client);
    door.finish();
}
