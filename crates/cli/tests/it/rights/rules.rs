//! Who may change rules, and that a refused change leaves nothing behind.

use super::{USERS, World, code, declaration, on, verb};
use bson::{Document, doc};

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn rules_are_changed_by_whom_mongodb_lets_change_the_data() {
    let mut world = World::new();
    // The rule `margin` needs no index; the count a new index; the one over a collection that expires a collMod.
    let only = |rule: Document| {
        let mut all = declaration("shop");
        all.get_document_mut("collections").unwrap().extend(rule);
        verb("apply", doc! { "declaration": all, "remove": true })
    };
    let margin = only(doc! { "customers": { "computed": { "margin": { "expr": { "$add": ["$_id", 1] } } } } });
    let visits = only(doc! { "customers": { "computed": { "visits": { "count": "visits", "by": "customerId" } } } });
    world.client("root").must(&on("shop", doc! { "createIndexes": "visits", "indexes": [{ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 999_999 }] })).unwrap();
    let drop = |rule: &str| verb("drop", doc! { "rule": rule, "with_data": true });
    let restore = |rule: &str| verb("drop", doc! { "rule": rule, "restore": true });
    for (what, command, expected) in [
        ("a field", &margin, [13, 13, 13, 0, 0]),
        ("a field over documents that expire", &visits, [13, 13, 13, 13, 0]),
        ("a drop", &drop("orders.customer"), [13, 13, 13, 0, 0]),
        ("a drop that restores", &restore("orders.customer"), [13, 13, 13, 0, 0]),
        ("a drop of buckets that restores", &restore("readings.bucket"), [13, 13, 13, 0, 0]),
        ("a drop of buckets", &drop("readings.bucket"), [13, 13, 13, 0, 0]),
    ] {
        for (user, expected) in USERS.iter().zip(expected) {
            let before = world.settled("shop");
            let reply = world.client(user).command(command).unwrap().document;
            assert_eq!(code(&reply), expected, "{what} by {user}: {reply}");
            if expected == 13 {
                let after = world.stored("shop");
                let changed = before.iter().zip(&after).find(|(before, after)| before != after);
                assert_eq!(changed, None, "{what} by {user} was refused and has changed something");
                assert_eq!(before.len(), after.len(), "{what} by {user} was refused and has changed something");
            } else {
                let again = verb("apply", doc! { "declaration": declaration("shop"), "remove": true });
                world.client("root").must(&again).unwrap();
            }
        }
    }
    for user in ["nobody", "elsewhere", "reader", "writer"] {
        let reply = world.client(user).command(&on("shop", doc! { "dropDatabase": 1 })).unwrap().document;
        assert_eq!(code(&reply), 13, "{user}: {reply}");
        assert_eq!(
            world.states("shop"),
            ["orders.customer on", "products.reviewCount on", "readings.bucket on"],
            "{user}"
        );
    }
    world.client("admin").must(&on("shop", doc! { "dropDatabase": 1 })).unwrap();
    assert_eq!(world.states("shop"), ["orders.customer on", "products.reviewCount on", "readings.bucket on"]);
}
