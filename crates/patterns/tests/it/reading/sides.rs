//! A collection on two sides is read as one.

use super::questions::{Dice, a_filter, documents};
use super::shop::*;
use crate::harness::*;
use bson::doc;
use document::backend::{Backend, BatchLimit, Session};
use patterns::active::RuleInState;
use patterns::rule::State;
use patterns::shapes::Place;
use std::sync::Arc;

#[test]
fn both_sides_answer() {
    let bucket = sensors(DB);
    let mut dice = Dice(3);
    let documents = documents(&bucket, &mut dice, 80);
    run(async {
        let (new, old) = documents.split_at(40);
        let world = world(bucket.clone(), new.to_vec()).await;
        world.behind(insert("old", old.to_vec())).await;
        world.behind(insert(PLAIN, old.to_vec())).await;
        let sides =
            vec![Place { stored: ns(STORED), ..Place::of_bucket(&Arc::new(bucket.clone())) }, Place::plain(ns("old"))];
        let placed = RuleInState {
            rule: rule(bucket.clone()),
            state: State::On,
            places: sides,
            switching: false,
            restoring: false,
            lifting: false,
            epoch: 0,
        };
        world.layer.set_rules(vec![placed]).unwrap();
        for round in 0..60 {
            let filter = a_filter(&bucket, &mut dice);
            // The order of fields is the one of buckets only there.
            let mut query = Query::all(filter.clone());
            query.projection = doc! { "temp": 1 };
            same(&world, |ns| query.op(ns), false, &format!("{round}: {filter}")).await;
            same(&world, |ns| count(ns, filter.clone(), 0, None), true, &format!("{round}: {filter}")).await;
            same(&world, |ns| distinct(ns, "sensorId", filter.clone()), true, &format!("{filter}")).await;
        }
        // What moves from one side to the other while a cursor is open is seen once.
        let mut session = Session::default();
        let op = Query::all(doc! {}).op(ns(LOGICAL));
        let mut cursor = world.layer.read(&mut session, &context(), op).await.unwrap();
        let limit = BatchLimit { documents: 10, bytes: 1 << 20 };
        let mut seen = cursor.next(&mut session, &context(), limit).await.unwrap().documents.len();
        world.behind(delete("old", doc! {}, true)).await;
        fill(
            &world,
            &bucket,
            STORED,
            "elsewhere",
            old.iter()
                .map(|doc| {
                    let mut doc = doc.clone();
                    doc.insert("ts", at(START + 1_000_000_000_000));
                    doc
                })
                .collect(),
        )
        .await;
        loop {
            let batch = cursor.next(&mut session, &context(), limit).await.unwrap();
            seen += batch.documents.len();
            if batch.exhausted {
                break;
            }
        }
        assert_eq!(seen, 80);
    });
}
