//! Random questions, answered alike.

use super::questions::*;
use super::shop::*;
use crate::harness::run;
use bson::doc;

#[test]
fn questions_are_answered_as_by_a_plain_collection() {
    for (number, bucket) in all(DB).into_iter().enumerate() {
        let mut dice = Dice(u64::try_from(number).unwrap() + 17);
        let documents = documents(&bucket, &mut dice, 100);
        run(async {
            let world = world(bucket.clone(), documents).await;
            same(&world, |ns| Query::all(doc! {}).op(ns), false, "all").await;
            for round in 0..15 {
                let filter = a_filter(&bucket, &mut dice);
                let mut query = Query::all(filter.clone());
                query.projection = a_projection(&mut dice, &filter);
                let ordered = dice.chance(40);
                if ordered {
                    let way = if dice.chance(50) { 1 } else { -1 };
                    query.sort = doc! { "ts": way, "_id": 1 };
                    query.skip = u64::try_from(dice.below(6)).unwrap();
                    query.limit = dice.chance(60).then(|| u64::try_from(dice.below(20)).unwrap() + 1);
                }
                let told = format!("{number}.{round}: find {filter} {} {}", query.sort, query.projection);
                let plain = Query { filter: lower(&filter), ..query.clone() };
                same(&world, |ns| asked_of(&ns, &query, &plain).op(ns), ordered, &told).await;
                let limit = dice.chance(30).then_some(7);
                same(
                    &world,
                    |ns| count(ns.clone(), asked_of(&ns, &filter, &plain.filter).clone(), 0, limit),
                    true,
                    &told,
                )
                .await;
                let key = dice.pick(&["ts", "sensorId", "key", "temp", "tags.k", "in.x", "tags.0.v", "_id", "site.a"]);
                let told = format!("{number}.{round}: distinct {key} {filter}");
                same(
                    &world,
                    |ns| distinct(ns.clone(), key, asked_of(&ns, &filter, &plain.filter).clone()),
                    true,
                    &told,
                )
                .await;
                let stages = a_pipeline(&bucket, &mut dice);
                let told = format!("{number}.{round}: {stages:?}");
                let lowered: Vec<_> = stages.iter().map(lower).collect();
                same(&world, |ns| aggregate(ns.clone(), asked_of(&ns, &stages, &lowered)), false, &told).await;
            }
        });
    }
}
