//! Collections in buckets on a real MongoDB: the layer's answers are those of a plain collection with the same documents.

#[path = "../../../patterns/tests/it/reading/questions.rs"]
mod questions;
#[path = "../../../patterns/tests/it/reading/samples.rs"]
mod samples;

use bson::{Document, doc};
use document::backend::{Backend, BatchLimit, Session};
use document::op::*;
use document::{Doc, Env};
use patterns::Patterned;
use patterns::active::RuleInState;
use patterns::rule::State;
use patterns::shapes::Place;
use patterns::shapes::bucket::{Body, Bucket, Dialect, Layout};
use questions::*;
use samples::*;
use std::sync::Arc;

struct Live {
    layer: Patterned,
    db: String,
}

fn context() -> Context {
    let (read_concern, durability) = (ReadConcern::Local, Durability::Synced);
    Context { env: Env::fixed(), read_concern, durability, deadline: None, sent: Sent::default() }
}

impl Live {
    async fn open(test: &str) -> Live {
        let uri = judge::real::uri().unwrap();
        let upstream = upstream::Upstream::open(upstream::Uri::parse(&uri).unwrap()).await.unwrap();
        let letters: String = test.chars().filter(char::is_ascii_alphabetic).take(12).collect();
        Live { layer: Patterned::new(Arc::new(upstream)), db: format!("{letters}{}", std::process::id()) }
    }

    fn ns(&self, collection: &str) -> Namespace {
        Namespace::new(&self.db, collection)
    }

    async fn admin(&self, op: AdminOp) {
        self.layer.inner().admin(&mut Session::default(), &context(), op).await.unwrap();
    }

    async fn insert(&self, collection: &str, documents: Vec<Document>) {
        let op = WriteOp::Insert(Insert::of(self.ns(collection), documents.into_iter().map(Doc::from).collect()));
        let inner = self.layer.inner();
        let written = inner.write(&mut Session::default(), &context(), &op, &Capture::Nothing).await.unwrap();
        assert!(written.errors.is_empty(), "{written:?}");
    }

    /// Nothing but these documents, in both forms, and the view.
    async fn fill(&self, bucket: &Bucket, documents: Vec<Document>) {
        self.drop_database().await;
        let (buckets, logical) = both_forms(bucket, documents);
        self.insert(STORED, buckets).await;
        self.insert(PLAIN, logical).await;
        let pipeline = bucket.view(Dialect::MongoDb);
        self.admin(AdminOp::CreateView { ns: self.ns(LOGICAL), on: STORED.into(), pipeline }).await;
        self.layer.set_rules(vec![(rule(bucket.clone()), State::On)]).unwrap();
    }

    async fn drop_database(&self) {
        self.layer.set_rules(Vec::<RuleInState>::new()).unwrap();
        self.admin(AdminOp::DropDatabase { db: self.db.clone() }).await;
    }

    async fn read(&self, session: &mut Session, op: ReadOp, size: usize) -> document::Result<Vec<Document>> {
        let mut cursor = self.layer.read(session, &context(), op).await?;
        let mut all = Vec::new();
        loop {
            let limit = BatchLimit { documents: size, bytes: 16 << 20 };
            let batch = cursor.next(session, &context(), limit).await?;
            all.extend(batch.documents.iter().map(|doc| Document::try_from(doc).unwrap()));
            if batch.exhausted {
                return Ok(all);
            }
        }
    }

    async fn same(&self, op: impl Fn(Namespace) -> ReadOp, ordered: bool, told: &str) -> Vec<Document> {
        let mut found = self.read(&mut Session::default(), op(self.ns(LOGICAL)), 7).await.unwrap();
        let mut expected = self.read(&mut Session::default(), op(self.ns(PLAIN)), 1000).await.unwrap();
        // The server says how large a count is.
        for row in found.iter_mut().chain(&mut expected).filter(|row| row.len() == 1) {
            if let Ok(number) = row.get_i32("n") {
                row.insert("n", i64::from(number));
            }
        }
        if !ordered {
            found.sort_by_key(|row| format!("{row:?}"));
            expected.sort_by_key(|row| format!("{row:?}"));
        }
        assert_eq!(found, expected, "{told}");
        found
    }

    async fn explained(&self, op: ReadOp) -> Document {
        let (op, verbosity) = (Explained::Read(op), Verbosity::ExecutionStats);
        let told = self.layer.explain(&mut Session::default(), &context(), op, verbosity).await.unwrap();
        Document::try_from(&told).unwrap()
    }

    async fn told(&self, op: ReadOp) -> Document {
        self.explained(op).await.get_document("pleach").unwrap().clone()
    }
}

/// The command that is sent for a read.
fn command_of(pleach: &Document) -> &Document {
    pleach.get_array("steps").unwrap()[0].as_document().unwrap().get_document("command").unwrap()
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn questions_are_answered_as_by_a_plain_collection() {
    let live = Live::open("questions to buckets on a real MongoDB").await;
    for (number, bucket) in all(&live.db).into_iter().enumerate() {
        let mut dice = Dice(u64::try_from(number).unwrap() + 40);
        live.fill(&bucket, documents(&bucket, &mut dice, 60)).await;
        live.same(|ns| Query::all(doc! {}).op(ns), false, "all").await;
        for round in 0..12 {
            let filter = a_filter(&bucket, &mut dice);
            let mut query = Query::all(filter.clone());
            query.projection = a_projection(&mut dice, &filter);
            let ordered = dice.chance(40);
            if ordered {
                query.sort = doc! { "ts": -1, "_id": 1 };
                query.limit = dice.chance(60).then_some(9);
            }
            let told = format!("{number}.{round}: find {filter} {}", query.projection);
            let plain = Query { filter: lower(&filter), ..query.clone() };
            live.same(|ns| asked_of(&ns, &query, &plain).op(ns), ordered, &told).await;
            let counted = |ns: Namespace| count(ns.clone(), asked_of(&ns, &filter, &plain.filter).clone(), 0, None);
            live.same(counted, true, &told).await;
            let key = dice.pick(&["ts", "sensorId", "key", "temp", "tags.k", "in.x", "_id"]);
            let values = |ns: Namespace| distinct(ns.clone(), key, asked_of(&ns, &filter, &plain.filter).clone());
            live.same(values, true, &format!("{number}.{round}: distinct {key} {filter}")).await;
            let stages = a_pipeline(&bucket, &mut dice);
            let lowered: Vec<Document> = stages.iter().map(lower).collect();
            let run = |ns: Namespace| aggregate(ns.clone(), asked_of(&ns, &stages, &lowered));
            live.same(run, false, &format!("{number}.{round}: {stages:?}")).await;
        }
    }
    live.drop_database().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn a_report_needs_no_function() {
    let live = Live::open("reports from buckets on a real MongoDB").await;
    let day = 86_400_000;
    for (layout, packed) in [(Layout::FieldNames, true), (Layout::Array, false)] {
        let bucket = events(&live.db, layout, packed);
        // Doubles among the sums are added one by one; whole numbers are not.
        let mut documents = documents(&bucket, &mut Dice(5), 200);
        for doc in &mut documents {
            doc.insert("approved", 3);
        }
        live.fill(&bucket, documents).await;
        for (from, to) in [(0, 400), (17, 100), (30, 31), (90, 92), (500, 600)] {
            let date = doc! { "$gte": at(START + from * day + 3), "$lt": at(START + to * day) };
            for of in ["$approved", "$noFunds"] {
                let group = doc! { "_id": null, "a": { "$sum": of }, "days": { "$sum": 1 }, "most": { "$max": of } };
                // Few buckets, perhaps few, and any number; the bytes of a packed `_id` do not tell the time of all series.
                let mut asked = vec![
                    (doc! { "key": "ab01", "ts": date.clone() }, "find", false),
                    (doc! { "key": "ab01" }, "find", true),
                    (doc! { "key": "ab01", "ts": { "$gte": at(START + from * day) } }, "find", true),
                    (doc! {}, "aggregate", false),
                ];
                if !packed {
                    asked.push((doc! { "ts": date.clone() }, "aggregate", false));
                }
                for (filter, command, perhaps) in asked {
                    let stages = [doc! { "$match": filter }, doc! { "$group": group.clone() }];
                    live.same(|ns| aggregate(ns, &stages), true, &format!("{stages:?}")).await;
                    let pleach = live.told(aggregate(live.ns(LOGICAL), &stages)).await;
                    assert_eq!(pleach.get_str("figures").unwrap(), "slots");
                    assert!(!format!("{pleach}").contains("$function"), "{pleach}");
                    assert!(command_of(&pleach).contains_key(command), "{pleach}");
                    let otherwise = pleach.get_document("otherwise").ok().map(|it| it.get_document("command").unwrap());
                    assert_eq!(otherwise.is_some_and(|command| command.contains_key("aggregate")), perhaps, "{pleach}");
                }
            }
        }
    }
    live.drop_database().await;
}

/// Buckets that are moved are counted: what turns out to be too much is asked of MongoDB.
#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn too_many_buckets_are_added_up_where_they_are() {
    let live = Live::open("many buckets on a real MongoDB").await;
    let mut bucket = sensors(&live.db);
    if let Body::Readings(readings) = &mut bucket.body {
        // Two of them are few.
        readings.at_most = 5_000;
    }
    let hour = 3_600_000;
    let reading = |n: i32| {
        doc! { "_id": n, "sensorId": n % 2, "ts": at(START + i64::from(n) * hour / 4), "temp": n, "wet": f64::from(n) / 8.0 }
    };
    live.fill(&bucket, (0..80).map(reading).collect()).await;
    for of in ["$temp", "$wet"] {
        let group = doc! { "_id": null, "n": { "$sum": 1 }, "sum": { "$sum": of }, "most": { "$max": of } };
        for hours in [1, 2, 3, 20] {
            let since = at(START + (20 - hours) * hour);
            for ts in [doc! { "$gte": since.clone() }, doc! { "$gte": since, "$lt": at(START + 20 * hour - 1) }] {
                let stages = [doc! { "$match": { "sensorId": 1, "ts": ts } }, doc! { "$group": group.clone() }];
                live.same(|ns| aggregate(ns, &stages), true, &format!("{stages:?}")).await;
            }
        }
    }
    live.drop_database().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn the_last_readings_of_a_series_are_found_from_the_end() {
    let live = Live::open("last readings on a real MongoDB").await;
    for bucket in [sensors(&live.db), events(&live.db, Layout::FieldNames, true)] {
        live.fill(&bucket, documents(&bucket, &mut Dice(3), 300)).await;
        let all = live.read(&mut Session::default(), Query::all(doc! {}).op(live.ns(PLAIN)), 1000).await.unwrap();
        let series = &*bucket.by[0].field;
        let one = all.iter().find_map(|doc| doc.get(series)).unwrap().clone();
        for (direction, skip, limit) in [(-1, 0, 1), (1, 0, 3), (-1, 4, 30), (1, 1, 1000)] {
            let mut query = Query::all(doc! { series: one.clone() });
            (query.sort, query.skip, query.limit) = (doc! { "ts": direction, "_id": 1 }, skip, Some(limit));
            let told = format!("{series} {direction} {skip} {limit}");
            live.same(|ns| query.op(ns), true, &told).await;
            let pleach = live.told(query.op(live.ns(LOGICAL))).await;
            assert!(command_of(&pleach).contains_key("sort"), "{pleach}");
        }
    }
    live.drop_database().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn the_view_is_joined_and_read_in_transactions() {
    let live = Live::open("views of buckets on a real MongoDB").await;
    for bucket in [sensors(&live.db), events(&live.db, Layout::FieldNames, true)] {
        live.fill(&bucket, documents(&bucket, &mut Dice(8), 30)).await;
        let join = [
            doc! { "$lookup": { "from": LOGICAL, "localField": "_id", "foreignField": "_id", "as": "same" } },
            doc! { "$match": { "same": { "$size": 1 } } },
        ];
        let joined = live.read(&mut Session::default(), aggregate(live.ns(PLAIN), &join), 100).await.unwrap();
        let all = live.read(&mut Session::default(), Query::all(doc! {}).op(live.ns(PLAIN)), 100).await.unwrap();
        assert_eq!(joined.len(), all.len());
        // Out of a logical name, and in a transaction.
        let mut session = Session::default();
        live.layer.begin(&mut session, &context()).await.unwrap();
        let join = [doc! { "$lookup": { "from": PLAIN, "localField": "_id", "foreignField": "_id", "as": "same" } }];
        assert_eq!(live.read(&mut session, aggregate(live.ns(LOGICAL), &join), 3).await.unwrap().len(), all.len());
        let found = live.read(&mut session, Query::all(doc! {}).op(live.ns(LOGICAL)), 3).await.unwrap();
        assert_eq!(found.len(), all.len());
        let counted = live.read(&mut session, count(live.ns(LOGICAL), doc! {}, 0, None), 1).await.unwrap();
        assert_eq!(counted, [doc! { "n": i64::try_from(all.len()).unwrap() }]);
        session.transaction.take().unwrap().abort();
    }
    live.drop_database().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn only_the_buckets_that_are_needed_are_read() {
    let live = Live::open("explaining buckets on a real MongoDB").await;
    let bucket = sensors(&live.db);
    let hour = 3_600_000;
    let documents =
        (0..200).map(|n| doc! { "_id": n, "sensorId": n % 4, "ts": at(START + i64::from(n / 4) * hour / 2) });
    live.fill(&bucket, documents.collect()).await;
    let index = Doc::from(doc! { "key": { "sensorId": 1, "hour": 1 }, "name": "series" });
    live.admin(AdminOp::CreateIndexes { ns: live.ns(STORED), indexes: vec![index] }).await;
    let date = doc! { "$gte": at(START + 3 * hour), "$lt": at(START + 5 * hour) };
    let told = live.explained(Query::all(doc! { "sensorId": 2, "ts": date }).op(live.ns(LOGICAL))).await;
    let examined = told.get_document("executionStats").unwrap().get_i32("totalDocsExamined").unwrap();
    let buckets = told.get_document("pleach").unwrap().get_document("buckets").unwrap();
    assert_eq!(buckets.get_i64("examined").unwrap(), i64::from(examined));
    assert!(examined <= 3, "{told}");
    live.drop_database().await;
}

#[tokio::test(flavor = "multi_thread")]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
async fn both_sides_are_read_in_one_moment() {
    let live = Live::open("two sides on a real MongoDB").await;
    for bucket in [sensors(&live.db), sites(&live.db)] {
        let mut dice = Dice(11);
        let documents = documents(&bucket, &mut dice, 60);
        let (new, old) = documents.split_at(30);
        live.fill(&bucket, new.to_vec()).await;
        let (_, old) = both_forms(&bucket, old.to_vec());
        live.insert("old", old.clone()).await;
        live.insert(PLAIN, old).await;
        let sides = vec![
            Place { stored: live.ns(STORED), ..Place::of_bucket(&Arc::new(bucket.clone())) },
            Place::plain(live.ns("old")),
        ];
        let placed = RuleInState {
            rule: rule(bucket.clone()),
            state: State::On,
            places: sides,
            switching: false,
            restoring: false,
            lifting: false,
            epoch: 0,
        };
        live.layer.set_rules(vec![placed]).unwrap();
        for _ in 0..10 {
            let filter = a_filter(&bucket, &mut dice);
            let plain = lower(&filter);
            let of = |ns: &Namespace| asked_of(ns, &filter, &plain).clone();
            live.same(|ns| Query::all(of(&ns)).op(ns), false, &format!("{filter}")).await;
            live.same(|ns| count(ns.clone(), of(&ns), 0, None), true, &format!("{filter}")).await;
        }
    }
    live.drop_database().await;
}
