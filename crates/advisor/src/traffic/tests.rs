//! Sources: torn and foreign lines, bounded tables, what a running Pleach says, entries of the profiler; and that all say the same shape.

use super::log::seen;
use super::operation::Operation;
use super::table::{SHAPES, Table};
use super::{CommandShape, Traffic, described, workload};
use crate::options::Cancel;
use crate::testing::slow;
use bson::{Document, doc};
use document::Doc;
use std::io::Cursor;

const SHOP: &[&str] = &["shop"];

fn databases() -> Vec<String> {
    SHOP.iter().map(|name| (*name).to_owned()).collect()
}

fn shapes(lines: &str) -> Vec<CommandShape> {
    let read = seen(&mut Cursor::new(lines.as_bytes().to_vec()), &databases(), &Cancel::default()).unwrap();
    read.into_shapes()
}

fn find(at: i64, filter: Document) -> String {
    slow(
        at,
        "conn1",
        "orders",
        doc! { "find": "orders", "filter": filter },
        doc! { "docsExamined": 7, "keysExamined": 9, "nreturned": 3 },
    )
}

#[test]
fn slow_queries_are_counted_by_shape() {
    let lines: Vec<String> = (0..5).map(|n| find(n, doc! { "customerId": n, "state": "paid" })).collect();
    let all = shapes(&lines.join("\n"));
    assert_eq!(all.len(), 1);
    let shape = &all[0];
    assert_eq!((&*shape.kind, shape.count, shape.examined, shape.returned), ("find", 5, 45, 15));
    assert_eq!(shape.equal, ["customerId", "state"]);
    let constants: Vec<&str> = shape.constants.iter().map(|(path, _)| &**path).collect();
    assert_eq!(constants, ["state"], "the customer is another one each time");
}

#[test]
fn lines_that_are_torn_huge_or_foreign_do_no_harm() {
    let good = find(1, doc! { "a": 1 });
    let torn = &good[..good.len() / 2];
    let huge = format!("{{\"msg\":\"Slow query\",\"x\":\"{}\"}}", "x".repeat(600_000));
    let other = find(1, doc! { "a": 1 }).replace("shop.orders", "other.orders");
    let text = "2019-01-01T00:00:00.000+0000 I COMMAND [conn1] command shop.orders planSummary: COLLSCAN";
    let bytes = format!("{torn}\n{huge}\n\n{text}\n[1, 2]\n{{}}\n{other}\n{good}\n{torn}");
    let all = shapes(&bytes);
    assert_eq!((all.len(), all[0].count), (1, 1));
    for cut in (0..good.len()).step_by(7) {
        assert!(shapes(&format!("{}\n{good}", good.get(..cut).unwrap_or_default())).len() == 1);
    }
    assert!(shapes("").is_empty());
}

#[test]
fn a_log_covers_the_time_of_all_its_lines() {
    let other = |at: &str| format!("{{\"t\":{{\"$date\":\"{at}\"}},\"s\":\"I\",\"msg\":\"Connection accepted\"}}");
    let lines =
        [other("2026-01-01T00:00:00.000+00:00"), find(60_000, doc! { "a": 1 }), other("2026-01-01T02:00:00.000+01:00")];
    let open = crate::testing::log(lines.join("\n"));
    let mut traffic = Traffic::default();
    super::log::read(&open, &databases(), &Cancel::default(), &mut traffic);
    assert_eq!((&*traffic.sources[0].name, traffic.sources[0].seconds), ("log mongod.log", 3_600.0));
}

#[test]
fn shapes_are_bounded_and_those_that_run_often_stay() {
    let often = (0..50).map(|n| find(n, doc! { "often": n }));
    let seldom = (0..2_500).map(|n| find(n, doc! { format!("path{n}"): 1 }));
    let all = shapes(&often.chain(seldom).collect::<Vec<_>>().join("\n"));
    assert!(all.len() <= SHAPES && all.len() > SHAPES / 2, "{}", all.len());
    assert_eq!((&*all[0].filter[0], all[0].count), ("often", 50));
}

#[test]
fn a_write_is_its_statements_and_a_get_more_is_more_of_its_command() {
    let statement = doc! { "q": { "_id": 1 }, "u": { "$set": { "name": "x" } }, "multi": false, "upsert": false };
    let lines = [
        slow(1, "conn1", "orders", statement, doc! { "type": "update", "nMatched": 1, "docsExamined": 1 }),
        slow(1, "conn1", "orders", doc! { "update": "orders", "ordered": true }, doc! {}),
        slow(2, "conn1", "orders", doc! { "q": { "a": 1 }, "limit": 0 }, doc! { "type": "remove", "ndeleted": 4 }),
        find(3, doc! { "a": 1 }),
        slow(
            4,
            "conn1",
            "orders",
            doc! { "getMore": 5_i64, "collection": "orders" },
            doc! { "originatingCommand": { "find": "orders", "filter": { "a": 9 } }, "nreturned": 100 },
        ),
    ];
    let mut all = shapes(&lines.join("\n"));
    all.sort_by(|one, other| one.kind.cmp(&other.kind));
    let said: Vec<(&str, u64, u64, u64)> =
        all.iter().map(|shape| (&*shape.kind, shape.count, shape.returned, shape.written)).collect();
    assert_eq!(said, [("delete", 1, 0, 4), ("find", 1, 103, 0), ("update", 1, 0, 1)]);
    assert_eq!(all[2].changed, ["name"]);
    assert!(all[2].changes_any(&["name.first".to_owned()]) && !all[2].changes_any(&["names".to_owned()]));
}

#[test]
fn an_entry_of_the_profiler_is_the_same_shape_as_a_line_of_the_log() {
    let command = doc! { "find": "orders", "filter": { "a": 1 }, "sort": { "b": 1 }, "projection": { "c": 1, "items": { "$slice": 3 } }, "lsid": { "id": 7 } };
    let entry = Doc::from(
        doc! { "op": "query", "ns": "shop.orders", "command": command.clone(), "keysExamined": 2, "docsExamined": 1,
        "nreturned": 1, "responseLength": 300, "millis": 4, "ts": bson::DateTime::from_millis(5_000), "client": "127.0.0.1" },
    );
    let operation = Operation::of_entry(&entry).unwrap();
    let mut table = Table::default();
    table.add(&operation);
    assert_eq!((operation.at, operation.milliseconds, operation.bytes, operation.examined), (5_000, 4, 300, 2));
    let (of_entry, of_line) = (table.finish(0), shapes(&slow(1, "conn1", "orders", command, doc! {})));
    assert_eq!((&of_entry[0].filter, &of_entry[0].fields), (&of_line[0].filter, &of_line[0].fields));
    assert!(of_entry[0].takes_whole("c") && !of_entry[0].takes_whole("items") && !of_entry[0].takes_whole("d"));
    let own =
        Doc::from(doc! { "op": "query", "ns": "shop.orders", "command": { "find": "orders" }, "appName": "pleach" });
    assert!(Operation::of_entry(&own).is_none());
}

#[test]
fn a_lookup_says_where_it_leads_and_what_is_used() {
    let described = doc! { "ns": "shop.orders", "command": "aggregate", "stages": [
        { "$lookup": { "from": "customers", "localField": "c", "foreignField": "_id", "as": "customer" } },
        { "$unwind": "$customer" },
        { "$project": ["total", "city $customer.address.city", "customer.name"] },
        { "$lookup": { "from": "items", "localField": "_id", "foreignField": "orderId", "as": "items" } },
        { "$addFields": ["n $size $items"] },
    ] };
    let shape = described::shape(&Doc::from(described)).unwrap();
    let (first, second) = (&shape.stages[0], &shape.stages[3]);
    assert_eq!((first.local.as_deref(), first.foreign.as_deref()), (Some("c"), Some("_id")));
    assert_eq!(first.fields.as_deref(), Some(&["address.city".to_owned(), "name".to_owned()][..]));
    assert_eq!((second.folds.len(), &*second.folds[0].name), (1, "n"));
}

#[test]
fn a_running_pleach_says_what_it_has_counted() {
    let counted = doc! {
        "since": bson::DateTime::from_millis(0), "seconds": 1_200_i64, "limit": 1_000_i64, "evicted": { "shapes": 3_i64, "secondReads": 0_i64 },
        "shapes": [
            { "ns": "shop.orders", "command": "find", "filter": ["_id $eq"], "count": 40_i64, "examined": { "documents": 40_i64, "keys": 41_i64 },
              "returned": 40_i64, "written": 0_i64, "micros": 9_000_i64, "bytes": { "in": 1_i64, "out": 2_i64 } },
            { "ns": "other.orders", "command": "find", "count": 4_i64 },
        ],
        "secondReads": [
            { "from": "shop.orders", "path": "customerId", "read": "shop.customers", "by": "_id", "answers": 30_i64, "count": 31_i64,
              "documents": 31_i64, "fields": { "name": 31_i64, "rare": 1_i64 } },
        ],
    };
    let mut traffic = Traffic::default();
    workload::add(&Doc::from(counted), &databases(), &mut traffic);
    assert_eq!((traffic.sources.len(), traffic.shapes.len(), traffic.second_reads.len()), (1, 1, 1));
    assert!(traffic.sources[0].note.as_ref().unwrap().contains("3 rare shapes"));
    assert_eq!((traffic.shapes[0].count, traffic.shapes[0].examined), (40, 41));
    assert_eq!(
        (traffic.second_reads[0].answers, traffic.second_reads[0].fields.as_deref().unwrap()),
        (30, &["name".to_owned()][..])
    );
    assert_eq!(traffic.an_hour(0, 31), Some(93.0));
    traffic.sources[0].seconds = 599.0;
    assert_eq!(traffic.an_hour(0, 31), None, "too short a time says nothing about an hour");
}

#[test]
fn the_fields_of_finds_that_take_whole_documents_are_not_known() {
    let counted = |projection: &[&str]| {
        let find = doc! { "ns": "shop.customers", "command": "find", "filter": ["_id $eq"], "projection": projection.to_vec(), "count": 30_i64 };
        let read = doc! { "from": "shop.orders", "path": "customerId", "read": "shop.customers", "by": "_id", "answers": 30_i64,
        "count": 30_i64, "documents": 30_i64, "fields": { "name": 30_i64 } };
        let mut traffic = Traffic::default();
        workload::add(
            &Doc::from(doc! { "seconds": 5_i64, "shapes": [find], "secondReads": [read] }),
            &databases(),
            &mut traffic,
        );
        traffic.second_reads[0].fields.clone()
    };
    assert_eq!(counted(&["name"]), Some(vec!["name".to_owned()]));
    assert_eq!(counted(&["notes 0"]), None);
    assert_eq!(counted(&[]), None);
}
