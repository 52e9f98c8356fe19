//! The real view beneath a logical name: joins into it and out of it, in transactions too.

use super::questions::*;
use super::shop::*;
use crate::harness::*;
use bson::{Document, doc};
use document::backend::Session;
use document::op::AdminOp;
use patterns::shapes::bucket::{Bucket, Dialect};

async fn with_view(bucket: Bucket) -> World {
    let documents = documents(&bucket, &mut Dice(21), 24);
    let view = bucket.view(Dialect::Embedded);
    let world = world(bucket, documents).await;
    let create = AdminOp::CreateView { ns: ns(LOGICAL), on: STORED.into(), pipeline: view };
    world.opened.backend.admin(&mut Session::default(), &context(), create).await.unwrap();
    world
}

async fn rows(world: &World, session: &mut Session, from: &str, stages: &[Document]) -> Vec<Document> {
    world.read(session, aggregate(ns(from), stages)).await.unwrap()
}

#[test]
fn every_way_leads_to_the_same_documents() {
    for bucket in all(DB) {
        run(async {
            let world = with_view(bucket).await;
            for in_transaction in [false, true] {
                let mut session = if in_transaction { world.begin().await } else { Session::default() };
                let session = &mut session;
                let all = rows(&world, session, PLAIN, &[]).await.len();
                for (from, into) in [(PLAIN, LOGICAL), (LOGICAL, PLAIN), (LOGICAL, LOGICAL)] {
                    let join = [
                        doc! { "$lookup": { "from": into, "localField": "_id", "foreignField": "_id", "as": "same" } },
                        doc! { "$match": { "same": { "$size": 1 } } },
                    ];
                    assert_eq!(rows(&world, session, from, &join).await.len(), all, "{from} to {into}");
                    let joined = [doc! { "$unionWith": into }];
                    assert_eq!(rows(&world, session, from, &joined).await.len(), 2 * all, "{from} with {into}");
                    let graph = doc! { "from": into, "startWith": "$_id", "connectFromField": "_id", "connectToField": "_id", "as": "same" };
                    let walked = [doc! { "$graphLookup": graph }, doc! { "$match": { "same": { "$size": 1 } } }];
                    assert_eq!(rows(&world, session, from, &walked).await.len(), all, "{from} along {into}");
                    let pipeline = [doc! { "$match": { "$expr": { "$eq": ["$ts", "$$ts"] } } }, doc! { "$limit": 1 }];
                    let nested =
                        doc! { "from": into, "let": { "ts": "$ts" }, "pipeline": pipeline.to_vec(), "as": "same" };
                    let nested = [doc! { "$lookup": nested }, doc! { "$match": { "same": { "$size": 1 } } }];
                    assert_eq!(rows(&world, session, from, &nested).await.len(), all, "{from} by time to {into}");
                }
            }
        });
    }
}

#[test]
fn a_transaction_reads_its_own_buckets() {
    run(async {
        let world = with_view(sensors(DB)).await;
        let mut session = world.begin().await;
        let before = world.read(&mut session, count(ns(LOGICAL), doc! {}, 0, None)).await.unwrap();
        let gone = delete(STORED, doc! {}, true);
        world.opened.backend.write(&mut session, &context(), &gone, &document::op::Capture::Nothing).await.unwrap();
        assert_eq!(
            world.read(&mut session, count(ns(LOGICAL), doc! {}, 0, None)).await.unwrap(),
            [doc! { "n": 0_i64 }]
        );
        assert!(world.all_at(&mut session, LOGICAL).await.is_empty());
        // Others do not see that.
        let others = world.read(&mut Session::default(), count(ns(LOGICAL), doc! {}, 0, None)).await.unwrap();
        assert_eq!(others, before);
    });
}
