//! Events that become sums of slots, and documents of one slot each on the way back.

use crate::harness::{insert, run};
use crate::life::village::Village;
use bson::{DateTime, Document, doc};

const EVENTS: &str = "{ events: { bucket: { time: date, by: [{ field: key, as: hex }], every: quarter, slot: day, sum: { approved: a, rejected: r }, layout: field_names, bucket_id: packed } } }";
const ARRAYS: &str = "{ events: { bucket: { into: event_months, time: date, by: [{ field: key, as: hex }], every: month, slot: day, sum: { approved: approved, rejected: rejected } } } }";

const DAY: i64 = 86_400_000;
/// 2024-03-01T00:00:00Z.
const BEGIN: i64 = 1_709_251_200_000;

fn event(number: i32) -> Document {
    let date = DateTime::from_millis(BEGIN + i64::from(number) * DAY / 3 + 5);
    doc! { "_id": number, "key": format!("{:04X}", number % 2), "date": date, "approved": number }
}

/// What they add up to, by key and day.
fn slots(events: i32) -> Vec<Document> {
    let mut slots: Vec<Document> = Vec::new();
    for number in 0..events {
        let day = DateTime::from_millis(BEGIN + i64::from(number) * DAY / 3 / DAY * DAY);
        let key = format!("{:04X}", number % 2);
        match slots.iter_mut().find(|slot| slot.get_str("key").unwrap() == key && slot.get("date") == Some(&day.into()))
        {
            Some(slot) => {
                let sum = slot.get_i32("approved").unwrap() + number;
                slot.insert("approved", sum);
            }
            None => {
                let id = doc! { "key": &key, "date": day };
                slots.push(doc! { "_id": id, "key": key, "date": day, "approved": number });
            }
        }
    }
    slots.sort_by_key(|slot| (slot.get_str("key").unwrap().to_owned(), *slot.get_datetime("date").unwrap()));
    slots
}

async fn found(village: &Village) -> Vec<Document> {
    let mut slots = village.find("events", doc! {}).await;
    slots.sort_by_key(|slot| (slot.get_str("key").unwrap().to_owned(), *slot.get_datetime("date").unwrap()));
    slots
}

#[test]
fn events_add_up_in_every_form() {
    run(async {
        let village = Village::new().await;
        village.behind(insert("events", (0..60).map(event).collect())).await;
        village.life.limit_hosts(17);
        let expected = slots(60);
        village.overwrite(EVENTS).await.unwrap();
        for rules in [EVENTS, ARRAYS, EVENTS] {
            // From slots to slots no `_id` is lost.
            village.apply(rules).await.unwrap();
            assert_eq!(found(&village).await, expected, "{rules}");
            village.assert_clean().await;
        }
        let health = village.health().await;
        assert_eq!(health.get_i64("readings").unwrap(), i64::try_from(expected.len()).unwrap(), "{health}");
        village.ask("drop", doc! { "rule": "events.bucket" }).await.unwrap();
        assert_eq!(found(&village).await, expected);
        assert_eq!(village.collections().await, ["events"]);
        village.close().await;
    });
}
