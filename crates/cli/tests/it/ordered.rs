//! What keeps children in an order costs: `explain` shows that the whole list is read by the index that `apply` made, that a review is
//! one update of its product, that one outside the window is none, and that the first of many is found by one seek. On both doors.

use crate::doors::{At, Door, at_each_door};
use bson::{Bson, Document, doc};

at_each_door!(
    the_whole_list_is_read_by_the_index,
    a_review_of_many_rules_is_one_update_of_its_product,
    a_child_outside_the_window_leaves_its_host_unwritten,
    the_first_of_many_is_one_seek,
    the_first_of_many_that_count_is_one_seek,
    arrays_in_two_sorted_fields_are_refused,
    arrays_in_key_and_order_are_refused,
);

const PAGE: i32 = 20;

fn review(id: i32, product: i32) -> Document {
    doc! { "_id": id, "productId": product, "rating": id % 6, "at": id, "votes": id * 7 % 1009, "text": "fine" }
}

fn insert(reviews: impl Iterator<Item = Document>) -> Document {
    doc! { "insert": "reviews", "documents": reviews.collect::<Vec<_>>() }
}

fn number(value: &Bson) -> i64 {
    value.as_i64().or(value.as_i32().map(i64::from)).unwrap_or_else(|| panic!("{value}"))
}

/// All values of a field, wherever it stands.
fn values<'a>(of: &'a Bson, name: &str, found: &mut Vec<&'a Bson>) {
    match of {
        Bson::Document(document) => {
            found.extend(document.get(name));
            document.iter().for_each(|(_, inner)| values(inner, name, found));
        }
        Bson::Array(items) => items.iter().for_each(|inner| values(inner, name, found)),
        _ => {}
    }
}

/// Reads a page by an index, in its order; gives how many documents were looked at.
fn page(door: &Door, filter: Document, sort: Document) -> i64 {
    let find = doc! { "find": "reviews", "filter": filter, "sort": sort, "limit": PAGE };
    let told = door.must(doc! { "explain": find, "verbosity": "executionStats" });
    let plan = told.get_document("queryPlanner").unwrap().get("winningPlan").unwrap();
    let mut stages = Vec::new();
    values(plan, "stage", &mut stages);
    let stages: Vec<&str> = stages.into_iter().filter_map(Bson::as_str).collect();
    assert!(stages.contains(&"IXSCAN"), "{}: {plan}", door.at.name());
    assert!(!stages.contains(&"SORT") && !stages.contains(&"COLLSCAN"), "{}: {plan}", door.at.name());
    let stats = told.get_document("executionStats").unwrap();
    assert_eq!(number(&stats["nReturned"]), i64::from(PAGE), "{stats}");
    number(&stats["totalDocsExamined"])
}

fn the_whole_list_is_read_by_the_index(at: At) {
    let door = at.door("pages");
    door.must(insert((0..300).map(|id| review(id, id % 3))));
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    let good = doc! { "rating": { "$gte": 4 } };
    door.apply(doc! { "products": { "subset": {
        "recent": { "from": "reviews", "by": "productId", "sort": { "at": -1 }, "keep": 3, "fields": ["at"] },
        "best": { "from": "reviews", "by": "productId", "where": good, "sort": { "votes": -1 }, "keep": 2 },
    } } });
    let by_date = doc! { "at": -1, "_id": 1 };
    assert_eq!(page(&door, doc! { "productId": 1 }, by_date.clone()), i64::from(PAGE));
    let rows = door.rows(doc! { "find": "reviews", "filter": { "productId": 1 }, "sort": &by_date, "limit": PAGE });
    let last = rows.last().unwrap().get_i32("at").unwrap();
    assert_eq!(
        page(&door, doc! { "productId": 1, "at": { "$lt": last } }, by_date.clone()),
        i64::from(PAGE),
        "page two"
    );
    // Where several may have the same date, the next page begins behind the last `_id`. MongoDB may pass through the first page on the way.
    let behind = bson::bson!([{ "at": { "$lt": last } }, { "at": last, "_id": { "$gt": rows.last().unwrap().get("_id").unwrap() } }]);
    let looked_at = page(&door, doc! { "productId": 1, "$or": behind }, by_date);
    assert!(looked_at <= 2 * i64::from(PAGE), "page two with ties: {looked_at}");
    // The index has only what `where` leaves.
    let by_votes = doc! { "votes": -1, "_id": 1 };
    let good = |more: Document| {
        let mut filter = doc! { "productId": 1, "rating": { "$gte": 4 } };
        filter.extend(more);
        filter
    };
    assert_eq!(page(&door, good(doc! {}), by_votes.clone()), i64::from(PAGE));
    assert_eq!(page(&door, good(doc! { "votes": { "$lt": 900 } }), by_votes), i64::from(PAGE), "page two");
    door.finish();
}

/// What a command would do, before it does it: the derived statements, and how many documents they change.
fn derived(door: &Door, command: Document) -> (usize, i64) {
    let told = door.must(doc! { "pleach": "explain", "command": command.clone() });
    let steps = told.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap());
    let derived: Vec<&Document> = steps.filter(|step| step.get_str("kind").unwrap() == "derived").collect();
    assert!(derived.iter().all(|step| step.get_str("namespace").unwrap().ends_with(".products")), "{told}");
    let reply = door.must(command);
    assert!(reply.get_array("writeErrors").is_err(), "{reply}");
    (derived.len(), number(&told.get_document("cost").unwrap()["written"]) - 1)
}

fn a_review_of_many_rules_is_one_update_of_its_product(at: At) {
    let door = at.door("once");
    let from = |fold: &str, path: &str| doc! { fold: path, "from": "reviews", "by": "productId" };
    let mut first = from("first", "rating");
    first.insert("sort", doc! { "at": -1 });
    door.apply(doc! { "products": {
        "computed": {
            "reviewCount": { "count": "reviews", "by": "productId" }, "avgRating": from("avg", "rating"),
            "best": from("max", "rating"), "texts": from("distinct", "text"), "newest": first,
        },
        "subset": {
            "recent": { "from": "reviews", "by": "productId", "sort": { "at": -1 }, "keep": 3, "fields": ["at", "rating"] },
        },
    } });
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    door.must(insert((0..10).map(|id| review(id, 1))));
    let mut best = review(11, 1);
    best.insert("rating", 9);
    let name = door.at.name();
    assert_eq!(derived(&door, insert(std::iter::once(best))), (1, 1), "{name}: a new best");
    let edit = doc! { "q": { "_id": 11 }, "u": { "$set": { "rating": 7 } } };
    assert_eq!(derived(&door, doc! { "update": "reviews", "updates": [edit] }), (1, 1), "{name}: an edit");
    let delete = doc! { "delete": "reviews", "deletes": [{ "q": { "_id": 11 }, "limit": 1 }] };
    assert_eq!(derived(&door, delete), (1, 1), "{name}: the best goes");
    let mut product = door.all("products").remove(0);
    product.remove("_pleach");
    let recent: Vec<Document> = [9, 8, 7].map(|id| doc! { "at": id, "rating": id % 6 }).into();
    let expected = doc! {
        "_id": 1, "avgRating": 2.1, "best": 5, "newest": 3, "recent": recent, "reviewCount": 10, "texts": 1,
    };
    let sorted = |document: &Document| document.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let (product, expected): (std::collections::BTreeMap<_, _>, std::collections::BTreeMap<_, _>) =
        (sorted(&product), sorted(&expected));
    assert_eq!(product, expected, "{name}");
    door.finish();
}

fn a_child_outside_the_window_leaves_its_host_unwritten(at: At) {
    let door = at.door("outside");
    door.apply(doc! { "products": {
        "computed": {
            "best": { "max": "rating", "from": "reviews", "by": "productId" },
            "newest": { "last": "rating", "from": "reviews", "by": "productId", "sort": { "at": 1 } },
        },
        "subset": {
            "recent": { "from": "reviews", "by": "productId", "sort": { "at": -1 }, "keep": 3, "fields": ["at"] },
            "popular": { "from": "reviews", "by": "productId", "sort": { "votes": -1 }, "keep": 2, "fields": ["text"] },
        },
    } });
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    door.must(insert((10..20).map(|id| review(id, 1))));
    let before = door.all("products");
    let none = doc! { "_id": 1, "productId": 1, "rating": 2, "at": 1, "votes": 1, "text": "fine" };
    assert_eq!(derived(&door, insert(std::iter::once(none))).1, 0);
    let edit = doc! { "q": { "_id": 1 }, "u": { "$set": { "rating": 3, "text": "better", "at": 2 } } };
    assert_eq!(derived(&door, doc! { "update": "reviews", "updates": [edit] }).1, 0);
    assert_eq!(derived(&door, doc! { "delete": "reviews", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] }).1, 0);
    assert_eq!(door.all("products"), before);
    door.finish();
}

/// How many index entries and documents of children a command looks at, by what MongoDB says of each of its reads.
fn looked_at(door: &Door, command: Document) -> (i64, i64) {
    let told = door.must(doc! { "pleach": "explain", "command": command });
    let steps = told.get_array("steps").unwrap().iter().map(|step| step.as_document().unwrap());
    let of_children = |step: &&Document| {
        step.get_str("kind").unwrap() == "read" && step.get_str("namespace").unwrap().ends_with(".reviews")
    };
    let (mut seen, mut reads) = ((0, 0), 0);
    for step in steps.filter(of_children) {
        let read = step.get_document("command").unwrap().clone();
        let stats = Bson::Document(door.must(doc! { "explain": read, "verbosity": "executionStats" }));
        let sum = |name: &str| {
            let mut found = Vec::new();
            values(&stats, name, &mut found);
            assert!(!found.is_empty(), "{stats}");
            found.into_iter().map(number).sum::<i64>()
        };
        seen = (seen.0 + sum("totalKeysExamined"), seen.1 + sum("totalDocsExamined"));
        reads += 1;
    }
    assert!(reads > 0, "{told}");
    seen
}

fn the_first_of_many_is_one_seek(at: At) {
    const MANY: i32 = 10_000;
    let door = at.door("seeks");
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }, { "_id": 2 }] });
    door.must(insert((0..10).map(|id| review(id, 1))));
    for part in 0..10 {
        let from = 1_000 + part * MANY / 10;
        door.must(insert((from..from + MANY / 10).map(|id| review(id, 2))));
    }
    let last =
        |direction: i32| doc! { "last": "rating", "from": "reviews", "by": "productId", "sort": { "at": direction } };
    door.apply(doc! { "products": { "computed": { "newest": last(1), "oldest": last(-1) } } });
    let insert_into = |product: i32| insert(std::iter::once(doc! { "_id": 50_000, "productId": product, "at": 500 }));
    // Of few children any index will do.
    let (few, many) = (looked_at(&door, insert_into(1)), looked_at(&door, insert_into(2)));
    let name = door.at.name();
    assert!(many <= few && many.0 <= 8, "{name}: one seek for each of two rules: {few:?}, {many:?}");
    // One that is taken away is looked up again, as cheaply.
    let delete = doc! { "delete": "reviews", "deletes": [{ "q": { "_id": 999 + MANY }, "limit": 1 }] };
    let many = looked_at(&door, delete);
    assert!(many.0 <= 8, "{name}: {many:?}");
    door.finish();
}

/// With `where`, and where the key is an element of an array: a window is filled again by as many entries as it shows.
fn the_first_of_many_that_count_is_one_seek(at: At) {
    const MANY: i32 = 3_000;
    let door = at.door("counted_seeks");
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    door.must(doc! { "insert": "tags", "documents": [{ "_id": "a" }] });
    let tagged = |id: i32| {
        let mut review = review(id, 1);
        review.insert("tags", vec!["a", "b"]);
        review.insert("status", if id % 50 == 0 { "shown" } else { "hidden" });
        review
    };
    for part in 0..3 {
        door.must(insert((part * MANY / 3..(part + 1) * MANY / 3).map(tagged)));
    }
    let window = |by: &str| doc! { "from": "reviews", "by": by, "sort": { "at": -1 }, "keep": 3, "fields": ["at"] };
    let (mut shown, mut latest) = (window("productId"), window("tags"));
    shown.insert("where", doc! { "status": "shown" });
    latest.insert("each", true);
    door.apply(doc! { "products": { "subset": { "shown": shown } }, "tags": { "subset": { "latest": latest } } });
    let name = door.at.name();
    for id in [MANY - 50, MANY - 1] {
        let delete = doc! { "delete": "reviews", "deletes": [{ "q": { "_id": id }, "limit": 1 }] };
        let looked = looked_at(&door, delete);
        assert!(looked.0 <= 10 && looked.1 <= 10, "{name}: the next after {id}: {looked:?}");
    }
    door.finish();
}

fn refusal(reply: &Document) -> i32 {
    let error = reply.get_array("writeErrors").ok().and_then(|errors| errors.first()?.as_document().cloned());
    error.unwrap_or_else(|| reply.clone()).get_i32("code").unwrap_or_default()
}

/// MongoDB does not sort by two arrays, so such a child has no place: it is refused, by the index, as it would be by an index of the
/// user's own; one that does not count is not.
fn arrays_in_two_sorted_fields_are_refused(at: At) {
    let door = at.door("two_arrays");
    let window = doc! { "from": "reviews", "by": "productId", "sort": { "votes": -1, "at": -1 }, "keep": 2, "where": { "status": "shown" } };
    let rules = doc! { "products": { "subset": { "best": window } } };
    let child =
        |id: i32, status: &str| doc! { "_id": id, "productId": 1, "votes": [1, 2], "at": [3, 4], "status": status };
    door.must(doc! { "insert": "products", "documents": [{ "_id": 1 }] });
    door.must(insert([child(1, "shown")].into_iter()));
    let refused = door.applied(&mut door.client(), rules.clone());
    assert_eq!(refused.get_i32("code").ok(), Some(171), "{refused}");
    let message = refused.get_str("errmsg").unwrap();
    assert!(message.contains("products.best") && message.contains("arrays in several"), "{refused}");
    assert_eq!(door.indexes(&mut door.client(), "reviews"), Vec::<String>::new());
    door.must(doc! { "delete": "reviews", "deletes": [{ "q": {}, "limit": 0 }] });
    door.apply(rules);
    let reply = door.ask(insert([child(1, "shown")].into_iter()));
    assert_eq!(refusal(&reply), 171, "{reply}");
    assert!(door.all("reviews").is_empty());
    door.must(insert(
        [child(2, "hidden"), doc! { "_id": 3, "productId": 1, "votes": [1, 2], "at": 3, "status": "shown" }]
            .into_iter(),
    ));
    assert_eq!(door.all("products")[0].get_array("best").unwrap().len(), 1);
    let shown = doc! { "q": { "_id": 2 }, "u": { "$set": { "status": "shown" } } };
    let reply = door.ask(doc! { "update": "reviews", "updates": [shown] });
    assert_eq!(refusal(&reply), 171, "{reply}");
    door.finish();
}

/// With `each: true` the key is an array: the index that fills a window again by a seek takes no second one.
fn arrays_in_key_and_order_are_refused(at: At) {
    let door = at.door("key_and_order");
    let window =
        doc! { "from": "reviews", "by": "tags", "each": true, "sort": { "at": -1 }, "keep": 2, "fields": ["at"] };
    let largest = doc! { "max": "votes", "from": "reviews", "by": "tags", "each": true };
    door.apply(doc! { "tags": { "subset": { "latest": window }, "computed": { "most": largest } } });
    door.must(doc! { "insert": "tags", "documents": [{ "_id": "a" }] });
    let reply = door.ask(insert([doc! { "_id": 1, "tags": ["a"], "at": [1, 2] }].into_iter()));
    assert_eq!(refusal(&reply), 171, "{reply}");
    // A value may be an array beside the key: what is looked up by value has an index on the key alone.
    door.must(insert(
        [doc! { "_id": 2, "tags": ["a", "b"], "at": 1, "votes": [1, 2] }, doc! { "_id": 3, "tags": "a", "at": [7] }]
            .into_iter(),
    ));
    let tag = door.all("tags").remove(0);
    assert_eq!(tag.get("most"), Some(&Bson::from(vec![1, 2])), "{tag}");
    assert_eq!(tag.get_array("latest").unwrap().len(), 2, "{tag}");
    door.finish();
}
