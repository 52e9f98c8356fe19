//! `serverStatus.pleach.workload`: what clients do is counted by shape at both doors, without values; second reads are seen.

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, Document, doc};

at_each_door!(
    commands_are_counted_by_shape,
    reads_by_ids_of_the_answer_before_are_second_reads,
    a_section_can_be_left_out,
    shapes_are_bounded,
);

fn workload(door: &Door) -> Document {
    let status = door.must(doc! { "serverStatus": 1 });
    status.get_document("pleach").unwrap().get_document("workload").unwrap().clone()
}

/// The shapes of one collection of the test's database.
fn shapes(door: &Door, collection: &str) -> Vec<Document> {
    let namespace = format!("{}.{collection}", door.db);
    list(&workload(door), "shapes").into_iter().filter(|shape| shape.get_str("ns").unwrap() == namespace).collect()
}

fn list(of: &Document, name: &str) -> Vec<Document> {
    of.get_array(name).unwrap().iter().map(|item| item.as_document().unwrap().clone()).collect()
}

fn texts(shape: &Document, name: &str) -> Vec<String> {
    shape.get_array(name).unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn commands_are_counted_by_shape(at: At) {
    let door = at.door("workload");
    let orders: Vec<Document> = (0..50).map(|at| doc! { "_id": at, "customerId": at % 5, "total": at }).collect();
    door.must(doc! { "insert": "orders", "documents": orders });
    for customer in 0..3 {
        door.must(doc! { "find": "orders", "filter": { "customerId": customer }, "sort": { "total": -1 } });
    }
    door.must(doc! { "update": "orders", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "total": 7 } } }] });
    door.must(doc! { "aggregate": "orders", "cursor": {}, "pipeline": [
        { "$match": { "customerId": 1 } }, { "$group": { "_id": Bson::Null, "n": { "$sum": 1 } } },
    ] });
    let all = shapes(&door, "orders");
    let of = |command: &str| all.iter().find(|shape| shape.get_str("command").unwrap() == command).unwrap();
    let find = of("find");
    assert_eq!((texts(find, "filter"), texts(find, "sort")), (vec!["customerId $eq".into()], vec!["total -1".into()]));
    assert_eq!(
        (find.get_i64("count").unwrap(), find.get_i64("returned").unwrap(), find.get_i64("errors").unwrap()),
        (3, 30, 0)
    );
    assert!(find.get_i64("micros").unwrap() > 0 && find.get_document("bytes").unwrap().get_i64("out").unwrap() > 600);
    let examined = find.get_document("examined").unwrap().get_i64("documents").unwrap();
    // A real MongoDB's answers do not say it.
    assert_eq!(examined, if door.is_real() { 0 } else { 150 });
    assert_eq!(of("insert").get_i64("written").unwrap(), 50);
    assert_eq!(texts(of("update"), "changes"), ["total $set"]);
    let stages = list(of("aggregate"), "stages");
    assert_eq!(texts(&stages[0], "$match"), ["customerId $eq"]);
    assert_eq!(texts(stages[1].get_document("$group").unwrap(), "fold"), ["n $sum ?"]);
    door.finish();
}

fn reads_by_ids_of_the_answer_before_are_second_reads(at: At) {
    let door = at.door("second");
    let orders: Vec<Document> =
        (0..40).map(|at| doc! { "_id": 1000 + at, "customerId": format!("c{}", at % 7) }).collect();
    door.must(doc! { "insert": "orders", "documents": orders });
    let customers: Vec<Document> =
        (0..7).map(|at| doc! { "_id": format!("c{at}"), "name": "n", "email": "e", "notes": "x".repeat(50) }).collect();
    door.must(doc! { "insert": "customers", "documents": customers });
    // The cursor lives on one connection: so do these commands.
    let mut client = door.client();
    let mut ask = |command: Document| door.run(&mut client, command);
    // One by one, as in a loop over a list …
    ask(doc! { "find": "orders", "limit": 3 });
    for customer in ["c0", "c1", "c2"] {
        ask(doc! { "find": "customers", "filter": { "_id": customer }, "projection": { "name": 1, "email": 1 } });
    }
    // … all at once, as populate does …
    ask(doc! { "find": "orders", "limit": 5 });
    ask(doc! { "find": "customers", "filter": { "_id": { "$in": ["c0", "c1", "c2"] } }, "projection": { "name": 1 } });
    // … and not: an id that was not in the answer, the same document again, a read by something else.
    ask(doc! { "find": "orders", "filter": { "_id": 1000 } });
    ask(doc! { "find": "customers", "filter": { "_id": "c6" } });
    ask(doc! { "find": "orders", "filter": { "_id": 1000 } });
    ask(doc! { "find": "orders", "filter": { "_id": 1000 } });
    ask(doc! { "find": "customers", "filter": { "name": "c0" } });
    let from = format!("{}.orders", door.db);
    let reads: Vec<Document> = list(&workload(&door), "secondReads")
        .into_iter()
        .filter(|read| read.get_str("from").unwrap() == from)
        .collect();
    assert_eq!(reads.len(), 1, "{reads:?}");
    let read = &reads[0];
    assert_eq!(read.get_str("path").unwrap(), "customerId");
    assert_eq!(read.get_str("read").unwrap(), &*format!("{}.customers", door.db));
    assert_eq!(
        (read.get_i64("answers").unwrap(), read.get_i64("count").unwrap(), read.get_i64("documents").unwrap()),
        (2, 4, 6)
    );
    assert_eq!(read.get_document("fields").unwrap(), &doc! { "email": 3_i64, "name": 4_i64 });
    door.finish();
}

fn a_section_can_be_left_out(at: At) {
    let door = at.door("sections");
    let status = door.must(doc! { "serverStatus": 1, "pleach": 0 });
    assert!(!status.contains_key("pleach"));
    let status = door.must(doc! { "serverStatus": 1, "pleach": { "workload": 0 } });
    assert!(!status.get_document("pleach").unwrap().contains_key("workload"));
    door.finish();
}

fn shapes_are_bounded(at: At) {
    let door = at.door("bounded");
    let mut client = door.client();
    for _ in 0..500 {
        door.run(&mut client, doc! { "find": "often", "filter": { "a": 1 } });
    }
    for number in 0..1_500 {
        door.run(&mut client, doc! { "find": "seldom", "filter": { format!("path{number}"): 1 } });
    }
    let counted = workload(&door);
    let kept = list(&counted, "shapes");
    let evicted = counted.get_document("evicted").unwrap().get_i64("shapes").unwrap();
    assert!(kept.len() <= 1_000 && kept.len() > 900, "{}", kept.len());
    assert!(evicted >= 500, "{evicted}");
    assert_eq!(shapes(&door, "often")[0].get_i64("count").unwrap(), 500, "what runs often stays");
    door.finish();
}
