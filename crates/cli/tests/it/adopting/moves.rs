//! What a move into buckets would lose: `_id`s that buckets do not keep, times that are cut, documents that have no place.

use super::Door;
use crate::doors::{At, at_each_door};
use bson::{Bson, Document, doc};

at_each_door!(
    an_id_that_says_more_or_otherwise_than_the_bucket_is_lost,
    an_id_in_a_slot_is_lost_if_it_is_another_or_if_documents_are_added_up,
    what_is_lost_of_slots_that_a_field_names,
    slots_beyond_the_bound_of_a_bucket_stop_the_move_before_it_begins,
    times_are_not_cut_without_a_word,
    a_move_that_could_not_end_does_not_begin,
);

/// Seconds after an hour.
fn at(seconds: i64) -> Bson {
    Bson::DateTime(bson::DateTime::from_millis(3_600_000 + seconds * 1_000))
}

fn declare(door: &Door, bucket: &str) {
    door.declare(&format!("{{ orders: {{ bucket: {{ time: ts, by: [s], every: hour, {bucket} }} }} }}"));
}

#[track_caller]
fn counted(door: &Door, name: &str) -> i64 {
    let (_, plan) = door.json(&["plan"]);
    plan["rules"][0][name].as_i64().unwrap_or_else(|| panic!("{name}: {plan:#}"))
}

/// Takes the documents away again, for the next case.
fn cleared(door: &Door, documents: Vec<Document>) {
    door.must(doc! { "drop": "orders" });
    door.insert("orders", documents);
}

fn an_id_that_says_more_or_otherwise_than_the_bucket_is_lost(place: At) {
    let door = Door::new(place, "whole-ids");
    door.insert("orders", vec![doc! { "_id": 0 }]);
    declare(&door, "reading_id: time");
    let own = |id: Document, seconds: i64| doc! { "_id": id, "s": 1, "ts": at(seconds), "v": 1 };
    for (id, lost) in [
        (doc! { "s": 1, "ts": at(1) }, 0),
        (doc! { "s": 1.0, "ts": at(1) }, 0),
        (doc! { "s": 1, "ts": at(1), "region": "eu" }, 1),
        (doc! { "ts": at(1), "s": 1 }, 1),
        (doc! { "s": 1 }, 1),
    ] {
        cleared(&door, vec![own(id.clone(), 1)]);
        assert_eq!(counted(&door, "ids_lost"), lost, "{id}");
        if lost > 0 {
            door.refused(&["apply"], &["the `_id` of 1 document of orders would be lost", "--overwrite"]);
        }
    }
    // One without a series has an `_id` without it.
    cleared(&door, vec![doc! { "_id": { "ts": at(1) }, "ts": at(1), "v": 1 }]);
    assert_eq!(counted(&door, "ids_lost"), 0);
    assert_eq!(door.told(&["apply"]).0, Some(0));
}

fn an_id_in_a_slot_is_lost_if_it_is_another_or_if_documents_are_added_up(place: At) {
    let door = Door::new(place, "slot-ids");
    let own = |id: Bson, seconds: i64| doc! { "_id": id, "s": 1, "ts": at(seconds), "v": 1 };
    let whole = |seconds: i64| bson::bson!({ "s": 1, "ts": at(seconds) });
    door.insert("orders", vec![own(whole(65), 65), own(whole(90), 90)]);
    declare(&door, "slot: minute, sum: [v]");
    assert_eq!(counted(&door, "ids_lost"), 2);
    assert_eq!(counted(&door, "times_cut"), 2);
    door.refused(&["apply"], &["the `_id` of 2 documents of orders would be lost", "--overwrite"]);
    // Two of one minute, one alone with its own `_id`.
    cleared(&door, vec![own(whole(60), 60), own(Bson::Int32(1), 60), own(whole(180), 180)]);
    assert_eq!((counted(&door, "ids_lost"), counted(&door, "times_cut")), (2, 0));
    let (_, out, _) = door.told(&["plan"]);
    assert!(out.contains("2 `_id`s lost"), "{out}");
    let (code, _, said) = door.told(&["apply", "--overwrite"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(door.all("orders").len(), 2);
}

fn what_is_lost_of_slots_that_a_field_names(place: At) {
    let door = Door::new(place, "named-slots");
    let id = |at: Bson| bson::bson!({ "s": 1, "ts": at, "kind": "a" });
    let own = |id: Bson, seconds: i64| doc! { "_id": id, "s": 1, "ts": at(seconds), "kind": "a", "v": 1 };
    door.insert("orders", vec![own(id(at(0)), 0)]);
    declare(&door, "slot: { field: kind, keys: \"^[a-z]$\", at_most: 5 }, sum: [v]");
    assert_eq!((counted(&door, "ids_lost"), counted(&door, "times_cut")), (0, 0));
    cleared(&door, vec![own(id(at(5)), 5)]);
    assert_eq!((counted(&door, "ids_lost"), counted(&door, "times_cut")), (1, 1));
}

fn slots_beyond_the_bound_of_a_bucket_stop_the_move_before_it_begins(place: At) {
    let door = Door::new(place, "slot-bound");
    let own = |id: i32, s: i32, kind: &str| doc! { "_id": id, "s": s, "ts": at(0), "kind": kind, "v": 1 };
    // Four kinds in the first series, one of them twice; two in the second.
    let all = vec![
        own(1, 1, "a"),
        own(2, 1, "b"),
        own(3, 1, "c"),
        own(4, 1, "c"),
        own(5, 1, "a"),
        own(6, 1, "d"),
        own(7, 2, "x"),
        own(8, 2, "y"),
    ];
    door.insert("orders", all.clone());
    for layout in ["array", "field_names"] {
        let slots = |most: i32| {
            format!("slot: {{ field: kind, keys: \"^[a-z]$\", at_most: {most} }}, sum: [v], layout: {layout}")
        };
        declare(&door, &slots(2));
        // All of the bucket that is too small.
        assert_eq!(counted(&door, "cannot_move"), 6, "{layout}");
        door.refused(
            &["apply", "--overwrite"],
            &["6 documents of orders cannot be moved", "_id 1: its bucket would have more than 2 slots of 'kind'"],
        );
        assert_eq!(door.all("orders").len(), 8);
        declare(&door, &slots(4));
        assert_eq!(counted(&door, "cannot_move"), 0, "{layout}");
        let (code, _, said) = door.told(&["apply", "--overwrite"]);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(door.all("orders").len(), 6);
        // From buckets into smaller ones.
        declare(&door, &slots(3));
        assert_eq!(counted(&door, "cannot_move"), 4, "{layout}");
        let (code, _, said) = door.told(&["apply", "--overwrite"]);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains("4 documents of orders cannot be moved"), "{said}");
        assert_eq!(door.all("orders").len(), 6);
        let (code, _, said) = door.told(&["drop", "orders.bucket", "--with-data", "--db", &door.db]);
        assert_eq!(code, Some(0), "{said}");
        door.insert("orders", all.clone());
    }
}

fn times_are_not_cut_without_a_word(place: At) {
    let door = Door::new(place, "cut-times");
    door.insert("orders", (0..5).map(|n| doc! { "_id": n, "s": 1, "ts": at(n * 60 + 30), "v": n }).collect());
    door.insert("orders", vec![doc! { "_id": 9, "s": 1, "ts": at(60), "v": 9 }]);
    declare(&door, "unit: { minute: m }, inexact: truncate");
    assert_eq!(counted(&door, "times_cut"), 5);
    let (_, out, _) = door.told(&["plan"]);
    assert!(out.contains("5 times cut") && out.contains("needs --overwrite"), "{out}");
    door.refused(&["apply"], &["the `ts` of 5 documents of orders would be cut to the minute", "--overwrite"]);
    let (code, _, said) = door.told(&["apply", "--overwrite"]);
    assert_eq!(code, Some(0), "{said}");
    // What the buckets hold is whole already.
    declare(&door, "unit: { minute: m }, inexact: truncate, at_most: 3");
    assert_eq!(counted(&door, "times_cut"), 0);
    let (code, _, said) = door.told(&["apply"]);
    assert_eq!(code, Some(0), "{said}");
}

fn a_move_that_could_not_end_does_not_begin(place: At) {
    let door = Door::new(place, "misfits");
    let good = doc! { "_id": 1, "s": 1, "ts": at(60), "v": 1 };
    door.insert("orders", vec![good.clone(), doc! { "_id": 2, "s": 1, "v": 1 }, doc! { "_id": 3, "ts": "now" }]);
    declare(&door, "unit: { minute: m }");
    assert_eq!(counted(&door, "cannot_move"), 2);
    door.refused(&["apply", "--overwrite"], &["2 documents of orders cannot be moved", "'ts' is no date", "_id "]);
    cleared(&door, vec![good.clone(), doc! { "_id": 2, "s": 1, "ts": at(61) }]);
    door.refused(
        &["apply", "--overwrite"],
        &["1 document of orders cannot be moved", "_id 2: 'ts' is no whole minute"],
    );
    // Two readings of a series and time.
    cleared(
        &door,
        vec![good.clone(), doc! { "_id": 2, "s": 1.0, "ts": at(60) }, doc! { "_id": 3, "s": 2, "ts": at(60) }],
    );
    declare(&door, "reading_id: time");
    assert_eq!(counted(&door, "cannot_move"), 1);
    door.refused(
        &["apply", "--overwrite"],
        &["1 document of orders cannot be moved", "_id 2: there is another reading of its series and time"],
    );
    let (_, plan) = door.json(&["plan"]);
    assert!(plan["rules"][0]["refused"].as_array().unwrap().iter().any(|one| one.get("flag").is_none()), "{plan:#}");
    declare(&door, "unit: { minute: m }");
    assert_eq!(counted(&door, "cannot_move"), 0);
    assert_eq!(door.told(&["apply"]).0, Some(0));
    assert_eq!(door.all("orders").len(), 3);
    // From buckets into others that take one reading of a time only.
    declare(&door, "reading_id: time");
    assert_eq!(counted(&door, "cannot_move"), 1);
}
