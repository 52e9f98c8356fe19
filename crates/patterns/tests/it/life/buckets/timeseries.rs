//! `create` with MongoDB's `timeseries` option on the embedded store.

use crate::harness::{context, ns, run};
use crate::life::village::{Village, declared};
use bson::{Document, doc};
use document::backend::{Backend, Session};
use document::filter::Filter;
use document::op::{AdminOp, CollectionOptions};
use document::{Doc, Result};

fn creation(name: &str, options: Document) -> AdminOp {
    let options = CollectionOptions { other: Some(Doc::from(options)), ..CollectionOptions::default() };
    AdminOp::Create { ns: ns(name), options }
}

fn options() -> Document {
    let series =
        doc! { "timeField": "ts", "metaField": "station", "granularity": "minutes", "bucketMaxSpanSeconds": 86_400 };
    doc! { "expireAfterSeconds": 3_600_i64, "timeseries": series }
}

async fn define(village: &Village, op: AdminOp) -> Result<Vec<Document>> {
    let answer = village.front.admin(&mut Session::default(), &context(), op).await?;
    Ok(answer.iter().map(|doc| Document::try_from(doc).unwrap()).collect())
}

#[test]
fn a_time_series_collection_from_create_to_drop() {
    run(async {
        let village = Village::new().await;
        define(&village, creation("weather", options())).await.unwrap();
        assert_eq!(village.collections().await, ["weather:timeseries", "weather_buckets"]);
        assert_eq!(village.states().await, [("weather.bucket".to_owned(), "on".to_owned())]);
        // It remembers, and no declaration takes it away.
        let village = village.reopen().await;
        let other = "{ products: { computed: { reviewCount: { count: reviews, by: productId } } } }";
        village.ask("apply", doc! { "declaration": declared(other) }).await.unwrap();
        let filter = doc! { "type": "timeseries" };
        let filter = Filter::parse(&filter.into(), &mut document::pipeline::expr::Names::new()).unwrap();
        let list = AdminOp::ListCollections { db: "shop".to_owned(), filter, name_only: false };
        let expected =
            doc! { "name": "weather", "type": "timeseries", "options": options(), "info": { "readOnly": false } };
        assert_eq!(define(&village, list).await.unwrap(), [expected]);
        let indexes = define(&village, AdminOp::ListIndexes { ns: ns("weather_buckets") }).await.unwrap();
        let expiry = indexes.iter().find(|index| index.contains_key("expireAfterSeconds")).unwrap();
        assert_eq!(expiry.get_document("key").unwrap(), &doc! { "day": 1 });
        assert_eq!(expiry.get_i64("expireAfterSeconds").unwrap(), 3_600 + 86_400);
        for again in [creation("weather", options()), creation("weather", doc! {})] {
            let error = define(&village, again).await.unwrap_err();
            assert_eq!(error.message(), "A timeseries collection already exists. NS: shop.weather");
        }
        assert_eq!(
            define(&village, AdminOp::Drop { ns: ns("weather") }).await.unwrap(),
            [doc! { "nIndexesWas": 0, "ns": "shop.weather" }]
        );
        assert_eq!(village.collections().await, ["reviews"]);
        let error = define(&village, AdminOp::Drop { ns: ns("weather") }).await.unwrap_err();
        assert_eq!(error.code().number(), 26);
        village.close().await;
    });
}

#[test]
fn a_database_goes_with_its_time_series() {
    run(async {
        let village = Village::new().await;
        define(&village, creation("weather", options())).await.unwrap();
        village.apply(super::station::HOURS).await.unwrap();
        define(&village, AdminOp::DropDatabase { db: "shop".to_owned() }).await.unwrap();
        assert_eq!(village.collections().await, ["sensor_data:view", "sensor_hours"]);
        assert_eq!(village.states().await, [("sensor_data.bucket".to_owned(), "on".to_owned())]);
        define(&village, creation("weather", options())).await.unwrap();
        village.close().await;
    });
}

fn index(key: Document, name: &str) -> Doc<'static> {
    Doc::from(doc! { "key": key, "name": name })
}

async fn indexes(village: &Village, of: &str) -> Vec<(String, Document)> {
    let listed = define(village, AdminOp::ListIndexes { ns: ns(of) }).await.unwrap();
    let shown =
        |index: &Document| (index.get_str("name").unwrap().to_owned(), index.get_document("key").unwrap().clone());
    listed.iter().map(shown).collect()
}

#[test]
fn indexes_of_clients_are_those_of_the_buckets_and_outlive_another_granularity() {
    run(async {
        let village = Village::new().await;
        define(&village, creation("weather", options())).await.unwrap();
        assert!(indexes(&village, "weather").await.is_empty());
        let given = vec![
            index(doc! { "station.id": 1 }, "id"),
            index(doc! { "ts": 1 }, "time"),
            index(doc! { "station": 1, "ts": 1 }, "both"),
            index(doc! { "temp": -1 }, "temp"),
        ];
        let made = define(&village, AdminOp::CreateIndexes { ns: ns("weather"), indexes: given }).await.unwrap();
        assert_eq!(made[0].get_i32("numIndexesAfter").unwrap(), 4);
        let village = village.reopen().await;
        let names = |list: Vec<(String, Document)>| list.into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(indexes(&village, "weather").await), ["id", "time", "both", "temp"]);
        // The index on the time is the one by which buckets expire, and the one on both was there.
        let stored = indexes(&village, "weather_buckets").await;
        assert_eq!(names(stored.clone()), ["_id_", "station_1_day_1", "day_1", "id", "temp"]);
        assert_eq!(stored[4].1, doc! { "readings.temp": -1 });
        let coarser = doc! { "timeseries": { "granularity": "hours" }, "expireAfterSeconds": "off" };
        define(&village, AdminOp::CollMod { ns: ns("weather"), change: Doc::from(coarser) }).await.unwrap();
        assert_eq!(village.collections().await, ["weather:timeseries", "weather_buckets"]);
        assert_eq!(names(indexes(&village, "weather").await), ["id", "time", "both", "temp"]);
        assert_eq!(
            names(indexes(&village, "weather_buckets").await),
            ["_id_", "station_1_month_1", "id", "time", "temp"]
        );
        let which = document::Value::from("*");
        define(&village, AdminOp::DropIndexes { ns: ns("weather"), which }).await.unwrap();
        assert_eq!(names(indexes(&village, "weather_buckets").await), ["_id_", "station_1_month_1"]);
        village.close().await;
    });
}
