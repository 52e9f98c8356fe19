//! A collation on a statement about an array with overflow: refused, since items are compared byte by byte; elsewhere it works.

use crate::doors::{At, at_each_door};
use bson::{Document, doc};

at_each_door!(items_are_not_compared_by_a_collation);

fn items_are_not_compared_by_a_collation(at: At) {
    let door = at.door("outlier_collations");
    door.apply(doc! { "users": { "outlier": { "tags": { "keep": 1, "overflow": "more" } } } });
    door.insert(&mut door.client(), "users", vec![doc! { "_id": 1, "name": "Ada", "tags": ["a", "B"] }]);
    let before = door.all("users");
    let collation = doc! { "locale": "en", "strength": 2 };
    let update = |filter: Document, change: Document| {
        let statement = doc! { "q": filter, "u": change, "collation": collation.clone() };
        doc! { "update": "users", "updates": [statement] }
    };
    let refused = [
        update(doc! { "tags": "b" }, doc! { "$set": { "x": 1 } }),
        update(doc! { "name": "ada" }, doc! { "$pull": { "tags": "b" } }),
        doc! { "delete": "users", "deletes": [{ "q": { "tags": "b" }, "limit": 0, "collation": collation.clone() }] },
        doc! { "findAndModify": "users", "query": { "tags": "b" }, "remove": true, "collation": collation.clone() },
    ];
    for command in refused {
        let reply = door.ask(command.clone());
        assert!(reply.to_string().contains("238"), "{command}: {reply}");
    }
    assert_eq!(door.all("users"), before);
    if at != At::Embedded {
        let reply = door.must(update(doc! { "name": "ada" }, doc! { "$set": { "x": 1 } }));
        assert_eq!(reply.get_i32("n").unwrap(), 1, "{reply}");
    }
    door.finish();
}
