//! While a collection is brought into another shape its documents are in two places: each is found and changed where it is.

use super::*;
use pleach_patterns::active::RuleInState;
use pleach_patterns::shapes::Place;

fn old() -> Namespace {
    ns("pleach.readings.sensor_data")
}

/// Some readings are plain documents yet.
async fn between(bucket: Bucket, plain_first: bool, plain: Vec<bson::Document>) -> Buckets {
    let buckets = Buckets::new(bucket);
    buckets.world.behind(insert(&old().collection, plain)).await;
    let mut sides = vec![Place::of_bucket(&buckets.bucket), Place::plain(old())];
    if plain_first {
        sides.reverse();
    }
    let placed = RuleInState {
        rule: rule(&buckets.bucket),
        state: State::On,
        places: sides,
        switching: false,
        restoring: false,
        lifting: false,
        epoch: 0,
    };
    buckets.world.layer.set_rules(vec![placed]).unwrap();
    buckets
}

impl Buckets {
    async fn both(&self) -> Vec<bson::Document> {
        let mut both = self.logical().await;
        both.extend(all(&*self.world.opened.backend, &mut Session::default(), &old()).await);
        both.sort_by_key(|doc| doc.get_i32("_id").unwrap_or_default());
        both
    }
}

fn numbered(n: i32) -> bson::Document {
    doc! {"_id": n, "s": "a", "ts": at(i64::from(n)), "temp": n}
}

#[test]
fn new_readings_go_to_the_first_side_and_old_ones_are_changed_where_they_are() {
    for plain_first in [false, true] {
        run(async {
            let buckets = between(hours(readings(3)), plain_first, (0..4).map(numbered).collect()).await;
            buckets.did(insert(NAME, vec![numbered(4)])).await;
            buckets.did(insert(NAME, (5..9).map(numbered).collect())).await;
            assert_eq!(buckets.logical().await.len(), if plain_first { 0 } else { 5 });
            let change = update(NAME, doc! {"temp": {"$gte": 2}}, doc! {"$inc": {"temp": 10}}, &["multi"]);
            assert_eq!(buckets.did(change).await.modified, 7);
            // The first of all sides.
            buckets.did(update(NAME, doc! {}, doc! {"$set": {"first": true}}, &[])).await;
            assert_eq!(buckets.did(delete(NAME, doc! {"_id": {"$in": [1, 6]}}, true)).await.n, 2);
            let mut expected: Vec<_> = (0..9).map(numbered).collect();
            expected[2..].iter_mut().for_each(|doc| {
                let temp = doc.get_i32("temp").unwrap();
                doc.insert("temp", temp + 10);
            });
            expected[0].insert("first", true);
            expected.retain(|doc| ![1, 6].contains(&doc.get_i32("_id").unwrap()));
            assert_eq!(buckets.both().await, expected);
            // What would not fit into a bucket is refused on either side.
            for id in [0, 8] {
                let change = update(NAME, doc! {"_id": id}, doc! {"$unset": {"ts": ""}}, &[]);
                assert_eq!(buckets.world.refused(change).await.0, 2);
            }
        });
    }
}

#[test]
fn slots_are_added_to_where_they_are() {
    for plain_first in [false, true] {
        run(async {
            let day = |n: i64| at(n * 24 * HOUR);
            let old_slot = doc! {"_id": {"s": "k", "ts": day(0)}, "s": "k", "ts": day(0), "approved": 5};
            let bucket = slots::quarters(Layout::FieldNames, false);
            let buckets = between(bucket, plain_first, vec![old_slot]).await;
            for n in [0, 1, 1] {
                buckets.did(insert(NAME, vec![doc! {"s": "k", "ts": day(n), "approved": 1}])).await;
                let query = doc! {"s": "k", "ts": day(n)};
                buckets.did(update(NAME, query, doc! {"$inc": {"rejected": 1}}, &["upsert"])).await;
            }
            let both = buckets.both().await;
            let slot = |n: i64, approved: i32, rejected: i32| {
                doc! {"_id": {"s": "k", "ts": day(n)}, "s": "k", "ts": day(n), "approved": approved, "rejected": rejected}
            };
            assert_eq!(both.len(), 2, "{both:?}");
            assert!(both.contains(&slot(0, 6, 1)) && both.contains(&slot(1, 2, 2)), "{both:?}");
        });
    }
}
