//! Fields that are kept from a bucketed collection, through both doors (SEMANTICS R34).

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, DateTime, Document, doc};
use judge::client::Client;

at_each_door!(
    fields_follow_readings,
    readings_are_looked_up_in_few_buckets,
    series_of_hex_digits_link_as_clients_see_them,
);

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

/// The sum of the stored documents that a real MongoDB examined for its commands on a collection.
fn examined_upstream(door: &Door, direct: &mut Client, work: impl FnOnce()) -> i64 {
    let profile = |client: &mut Client, level: i32| {
        client.must(&doc! { "profile": level, "$db": &door.db }).unwrap();
        client.command(&doc! { "drop": "system.profile", "$db": &door.db }).unwrap();
    };
    profile(direct, 0);
    direct.must(&doc! { "profile": 2, "$db": &door.db }).unwrap();
    work();
    direct.must(&doc! { "profile": 0, "$db": &door.db }).unwrap();
    let ns = format!("{}.sensor_hours", door.db);
    // Statements of the client's own look for their reading by its `_id`: only what is looked up again is meant.
    let query = doc! { "find": "system.profile", "filter": { "ns": ns, "op": { "$in": ["query", "command", "getmore"] }, "command.filter.sensorId": { "$exists": true } }, "$db": &door.db };
    let rows = direct.must(&query).unwrap();
    let rows = rows.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
    rows.iter().map(|row| i64::from(row.as_document().unwrap().get_i32("docsExamined").unwrap_or(0))).sum()
}

/// SEMANTICS R34: a look-up is served by the key of buckets, however many there are.
fn readings_are_looked_up_in_few_buckets(at: At) {
    let door = at.door("stacked_few");
    let mut client = door.client();
    let mut declared = rules(Bson::from("sensorId"));
    let fields = doc! {
        "computed": {
            "last": { "last": "temp", "from": "sensor_data", "by": "sensorId", "sort": { "ts": 1 } },
            "first": { "first": "temp", "from": "sensor_data", "by": { "s": "$sensorId" }, "match": "key", "sort": { "ts": 1 } },
            "max": { "max": "temp", "from": "sensor_data", "by": "sensorId" },
            "kinds": { "distinct": "temp", "from": "sensor_data", "by": "sensorId" },
        },
        "subset": { "recent": { "from": "sensor_data", "by": "sensorId", "sort": { "ts": -1 }, "keep": 2, "fields": ["temp"] } },
    };
    declared.insert("sensors", fields);
    declared.remove("alarms");
    door.apply(declared);
    let sensors = ["a1", "b2", "c3"].map(|id| doc! { "_id": id, "key": { "s": id } });
    door.insert(&mut client, "sensors", sensors.to_vec());
    // One reading in each hour, one series long, and all three in one statement.
    let readings = |from: i32, to: i32, sensor: &str| -> Vec<Document> {
        (from..to).map(|id| reading(id, sensor, i64::from(id % 10_000) * 60, id % 5)).collect()
    };
    let shown = |id: &str, names: &[&str]| -> Vec<Bson> {
        let host = door.all("sensors").into_iter().find(|host| host.get_str("_id").ok() == Some(id)).unwrap();
        names.iter().map(|name| host.get(name).cloned().unwrap_or(Bson::Null)).collect()
    };
    let all = ["last", "first", "max", "kinds", "recent"];
    let mut costs = Vec::new();
    for (number, to) in [(0, 30), (1, 300)] {
        let from = if number == 0 { 0 } else { 30 };
        door.insert(&mut client, "sensor_data", readings(from, to, "a1"));
        let newest = doc! { "delete": "sensor_data", "deletes": [{ "q": { "_id": to - 1 }, "limit": 1 }] };
        match at.uri() {
            None => drop(door.must(newest)),
            Some(uri) => {
                let mut direct = Client::connect(judge::client::host_and_port(&uri)).unwrap();
                costs.push(examined_upstream(&door, &mut direct, || drop(door.must(newest))));
            }
        }
        let recent = Bson::from(vec![doc! { "temp": (to - 2) % 5 }, doc! { "temp": (to - 3) % 5 }]);
        let expected = [Bson::Int32((to - 2) % 5), Bson::Int32(0), Bson::Int32(4), Bson::Int32(5), recent];
        assert_eq!(shown("a1", &all), expected, "{}", at.name());
    }
    if let [few, many] = *costs {
        // One of the fields, `max`, reads all buckets of the series; the others read as many as before.
        assert!(many - few <= 270, "{few} and {many} buckets");
    }
    let several = [readings(10_000, 10_003, "b2"), readings(20_001, 20_003, "c3"), readings(300, 301, "a1")].concat();
    door.insert(&mut client, "sensor_data", several);
    assert_eq!(shown("b2", &["last", "first", "max", "kinds"]), [2, 0, 2, 3].map(Bson::Int32));
    assert_eq!(shown("c3", &["last", "first", "max", "kinds"]), [2, 1, 2, 2].map(Bson::Int32));
    assert_eq!(shown("a1", &["last", "first"]), [0, 0].map(Bson::Int32));
    door.run(
        &mut client,
        doc! { "delete": "sensor_data", "deletes": [{ "q": { "_id": { "$in": [10_002, 20_002, 300] } }, "limit": 0 }] },
    );
    assert_eq!(shown("b2", &["last", "max", "kinds"]), [1, 1, 2].map(Bson::Int32));
    assert_eq!(shown("c3", &["last", "max", "kinds"]), [1, 1, 1].map(Bson::Int32));
    audited(&door, &mut client);
    let strange = doc! { "strange": { "min": "temp", "from": "sensor_data", "by": "deviceId" } };
    let bucket = rules(Bson::from("sensorId")).get_document("sensor_data").unwrap().clone();
    let refused = door.applied(&mut client, doc! { "sensor_data": bucket, "sensors": { "computed": strange } });
    assert!(refused.to_string().contains("its buckets are found by `sensorId`"), "{refused}");
    door.finish();
}
