//! `$merge` into the collections that rules read and into those that they write: each result is a planned statement (R21).

use super::{Listed, errors, everything};
use crate::doors::{At, at_each_door};
use bson::{Bson, Document, bson, doc};
use testing::registry::owned;
use testing::shop::review;

at_each_door!(merges_into_sources_and_hosts_are_planned);

const OWN: i32 = 1_000_000;

fn merge(into: &str, matched: impl Into<Bson>, unmatched: &str) -> Document {
    let merge = doc! { "into": into, "whenMatched": matched.into(), "whenNotMatched": unmatched };
    doc! { "aggregate": "staged", "pipeline": [{ "$match": { "into": into } }, { "$unset": "into" }, { "$merge": merge }], "cursor": {} }
}

fn merges_into_sources_and_hosts_are_planned(at: At) {
    let listed = Listed::new(at, "merged", &everything(), 20);
    let door = &listed.door;
    for n in 0..6 {
        let mut staged = review(OWN + 1 + n, n % 4, 100 + n, 50 * n);
        staged.insert("into", "reviews");
        door.must(doc! { "insert": "staged", "documents": [staged] });
    }
    // Hosts that bring what rules keep, one of them new.
    for (n, id) in [0, OWN].into_iter().enumerate() {
        let mut staged = doc! { "_id": id, "price": 70, "cost": 1, "into": "products" };
        for (_, path) in owned(&everything()).iter().filter(|(of, path)| of == "products" && !path.contains('.')) {
            staged.insert(path, -1 - n as i32);
        }
        door.must(doc! { "insert": "staged", "documents": [staged] });
    }
    let bumped = bson!([{ "$set": { "rating": { "$add": [1, "$$new.rating"] }, "productId": 1 } }]);
    for (command, wanted) in [
        (merge("reviews", "fail", "insert"), 0),
        (merge("reviews", "fail", "insert"), 11000),
        (merge("reviews", "keepExisting", "insert"), 0),
        (merge("reviews", bumped, "discard"), 0),
        (merge("reviews", "replace", "insert"), 0),
        (merge("reviews", "merge", "fail"), 0),
        (merge("products", "merge", "insert"), 0),
        (merge("products", "replace", "insert"), 0),
        (merge("products", "keepExisting", "insert"), 0),
    ] {
        let reply = door.ask(command.clone());
        assert_eq!(errors(&reply).first().map_or(0, |(_, code)| *code), wanted, "{command}: {reply}");
        listed.assert_right(&format!("{command}"));
    }
    let host = door.rows(doc! { "find": "products", "filter": { "_id": OWN } }).remove(0);
    assert_eq!(host.get("price").zip(host.get("reviewCount")), Some((&70.into(), &0.into())), "{host}");
    let reviews = door.rows(doc! { "find": "reviews", "filter": { "_id": { "$gt": OWN } } });
    assert_eq!(reviews.len(), 6);
    listed.door.finish();
}
