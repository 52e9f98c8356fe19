//! Bulks of which statements fail: those that did not have their effect on every field, and the reply is that of a database without
//! rules.

use super::{Listed, errors, everything};
use crate::doors::{At, at_each_door};
use bson::{Document, doc};
use testing::shop::{review, set};

at_each_door!(what_did_not_fail_counts, what_a_rule_refuses_fails_alone);

/// Ids that the shop's clients do not use.
const OWN: i32 = 1_000_000;

/// Inserts, updates and deletes of sources and hosts; about half of the statements of each fail.
fn bulks() -> Vec<Document> {
    let reviews = |first: i32| -> Vec<Document> {
        let ids = [first, first + 1, first, first + 2, first + 1];
        ids.iter().zip(0..).map(|(id, n)| review(OWN + id, n % 3, 90 + n, 8 * n)).collect()
    };
    let sales = |first: i32| -> Vec<Document> {
        let sale = |id: i32| doc! { "_id": OWN + id, "sold": { "productId": 1, "amount": 500 + id }, "status": "paid" };
        vec![sale(first), sale(first), sale(first + 1)]
    };
    let hosts = |first: i32| vec![doc! { "_id": 1 }, doc! { "_id": OWN + first }, doc! { "_id": OWN + first }];
    let updates = |first: i32| {
        let one = |id: i32| doc! { "_id": OWN + id };
        let divided = doc! { "$set": { "weight": { "$divide": ["$weight", 0] } } };
        vec![
            doc! { "q": one(first), "u": set(doc! { "rating": 1 }) },
            doc! { "q": one(first), "u": set(doc! { "_id": 5 }) },
            doc! { "q": one(first + 1), "u": set(doc! { "productId": 2, "at": bson::DateTime::from_millis(9) }) },
            doc! { "q": one(first + 1), "u": { "$push": { "weight": 1 } } },
            doc! { "q": { "productId": 2 }, "u": { "$inc": { "rating": "no number" } }, "multi": true },
            doc! { "q": one(first + 2), "u": [divided] },
            doc! { "q": one(first + 2), "u": { "productId": 1, "rating": 77 } },
            doc! { "q": { "_id": OWN + first + 9, "rating": 3 }, "u": set(doc! { "productId": 0 }), "upsert": true },
            doc! { "q": { "_id": OWN + first + 9, "rating": 4 }, "u": set(doc! { "productId": 0 }), "upsert": true },
            doc! { "q": { "productId": 0 }, "u": set(doc! { "productId": 1 }), "multi": true },
        ]
    };
    let deletes = |first: i32| {
        vec![
            doc! { "q": { "_id": OWN + first }, "limit": 1 },
            doc! { "q": { "productId": 1, "rating": { "$gt": 80 } }, "limit": 0 },
        ]
    };
    [(100, true), (200, false)]
        .into_iter()
        .flat_map(|(first, ordered)| {
            [
                doc! { "insert": "reviews", "documents": reviews(first), "ordered": ordered },
                doc! { "insert": "sales", "documents": sales(first), "ordered": ordered },
                doc! { "insert": "products", "documents": hosts(first), "ordered": ordered },
                // What the ordered insert left out.
                doc! { "insert": "reviews", "documents": [review(OWN + first + 2, 1, 95, 3)], "ordered": ordered },
                doc! { "update": "reviews", "updates": updates(first), "ordered": ordered },
                doc! { "update": "reviews", "updates": updates(first).split_off(2), "ordered": ordered },
                doc! { "delete": "reviews", "deletes": deletes(first), "ordered": ordered },
            ]
        })
        .collect()
}

fn what_did_not_fail_counts(at: At) {
    let listed = Listed::new(at, "bulks", &everything(), 20);
    let plain = Listed::new(at, "bulks_plain", "{}", 20);
    let mut failed = 0;
    for bulk in bulks() {
        let (seen, wanted) = (listed.door.ask(bulk.clone()), plain.door.ask(bulk.clone()));
        let told = |reply: &Document| (reply.get("n").cloned(), reply.get("nModified").cloned(), errors(reply));
        assert_eq!(told(&seen), told(&wanted), "{bulk}: {seen} instead of {wanted}");
        failed += errors(&seen).len();
        listed.assert_right(&format!("{bulk}"));
    }
    assert!(failed > 15, "{failed} statements failed");
    assert_eq!(listed.door.all("reviews").len(), plain.door.all("reviews").len());
    plain.door.finish();
    listed.door.finish();
}

/// An array where `by` holds one key is refused (R27).
fn what_a_rule_refuses_fails_alone(at: At) {
    let listed = Listed::new(at, "bulks_refused", &everything(), 20);
    let mut wrong = review(OWN, 1, 5, 1);
    wrong.insert("productId", vec![1, 2]);
    for (ordered, n) in [(true, 1), (false, 2)] {
        let documents = [review(OWN + 1 + n, 1, 99, 1), wrong.clone(), review(OWN + 11 + n, 2, 99, 1)];
        let reply = listed.door.ask(doc! { "insert": "reviews", "documents": documents.to_vec(), "ordered": ordered });
        assert_eq!((reply.get_i32("n").unwrap(), errors(&reply).len()), (n, 1), "{reply}");
        let to_array = set(doc! { "productId": [1, 2] });
        let updates = [
            doc! { "q": { "_id": OWN + 1 + n }, "u": set(doc! { "rating": 3 }) },
            doc! { "q": { "_id": OWN + 1 + n }, "u": to_array },
            doc! { "q": { "productId": 2 }, "u": set(doc! { "productId": 1 }), "multi": true },
        ];
        let reply = listed.door.ask(doc! { "update": "reviews", "updates": updates.to_vec(), "ordered": ordered });
        assert_eq!((reply.get_i32("n").unwrap() > 1, errors(&reply).len()), (!ordered, 1), "{reply}");
        listed.assert_right("refused");
    }
    listed.door.finish();
}
