//! Readings of some sensors, and what is there of them, wherever it is.

use crate::harness::insert;
use crate::life::village::Village;
use bson::{Bson, DateTime, Document, doc};

pub(crate) const HOURS: &str = "{ sensor_data: { bucket: { into: sensor_hours, time: ts, by: [sensorId], every: hour, at_most: 10, stats: { temp: [min, max, avg] } } } }";
/// The same under the same name, in another form.
pub(crate) const DAYS: &str = "{ sensor_data: { bucket: { into: sensor_hours, time: ts, by: [sensorId], every: day, at_most: 50, unit: { second: s } } } }";
/// Under another name.
pub(crate) const ELSEWHERE: &str =
    "{ sensor_data: { bucket: { into: sensor_days, time: ts, by: [sensorId], every: day, at_most: 7 } } }";

/// 2024-03-01T00:00:00Z.
pub(crate) const BEGIN: i64 = 1_709_251_200_000;

pub(crate) fn reading(number: i32) -> Document {
    let ts = DateTime::from_millis(BEGIN + i64::from(number) * 97_000);
    doc! { "_id": number, "sensorId": number % 3, "ts": ts, "temp": f64::from(number % 17) + 0.5 }
}

impl Village {
    /// Readings before any rule is there.
    pub(crate) async fn measure(&self, readings: i32) {
        self.behind(insert("sensor_data", (0..readings).map(reading).collect())).await;
    }

    /// All readings, through the name that clients use, by `_id`.
    pub(crate) async fn readings(&self) -> Vec<Document> {
        let mut all = self.find("sensor_data", doc! {}).await;
        all.sort_by_key(|reading| reading.get_i32("_id").unwrap());
        all
    }

    /// These readings, no other and none twice.
    pub(crate) async fn assert_readings(&self, numbers: impl Iterator<Item = i32>, when: &str) {
        let expected: Vec<Document> = numbers.map(reading).collect();
        let found = self.readings().await;
        assert_eq!(found.len(), expected.len(), "{when}");
        assert_eq!(found, expected, "{when}");
    }

    /// The collections that are there besides Pleach's books, sorted, views marked.
    pub(crate) async fn collections(&self) -> Vec<String> {
        let list = document::op::AdminOp::ListCollections {
            db: "shop".to_owned(),
            filter: document::filter::Filter::all(),
            name_only: false,
        };
        let context = crate::harness::context();
        let mut session = document::backend::Session::default();
        let rows = document::backend::Backend::admin(&self.front, &mut session, &context, list).await.unwrap();
        let mut names: Vec<String> = Vec::new();
        for row in rows {
            let row = Document::try_from(&row).unwrap();
            let name = row.get_str("name").unwrap();
            let kind = row.get_str("type").unwrap();
            if !["pleach.catalog", "pleach.outbox", "pleach.replaced", "system.views"].contains(&name) {
                names.push(if kind == "collection" { name.to_owned() } else { format!("{name}:{kind}") });
            }
        }
        names.sort();
        names
    }

    /// `health` of the only rule.
    pub(crate) async fn health(&self) -> Document {
        let status = self.ask("status", doc! {}).await.unwrap();
        let rule = status.get_array("rules").unwrap()[0].as_document().unwrap().clone();
        match rule.get("health") {
            Some(Bson::Document(health)) => health.clone(),
            other => panic!("{other:?} in {rule}"),
        }
    }
}
