//! Rows that a client has written into the catalog of its database, past Pleach: they decide nothing elsewhere.

use super::{World, declaration, on, verb};
use crate::upstream::{log_in, rows};
use bson::{Bson, Document, doc};

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_row_of_one_catalog_concerns_no_other_database() {
    let mut world = World::new();
    let hidden =
        doc! { "insert": "hidden", "documents": [{ "_id": 1, "pw": "a" }, { "_id": 2, "pw": "b" }], "$db": "secret" };
    world.root.must(&hidden).unwrap();
    let catalog = world.root.must(&on("shop", doc! { "find": "pleach.catalog" })).unwrap();
    let known = rows(&catalog, "firstBatch").into_iter().filter_map(|row| row.as_document().cloned());
    let by = known.clone().find_map(|row| row.get_str("by").map(str::to_owned).ok()).unwrap();
    let row = |name: &str, declaration: Document, state: &str| {
        doc! { "_id": name, "kind": "computed", "declaration": declaration, "state": state, "with_data": true, "epoch": 610_i64, "by": &by }
    };
    let of = |db: &str| {
        let pw = doc! { "computed": { "pw": { "expr": { "$concat": ["OWNED", "$name"] } } } };
        doc! { "database": db, "collections": { "hidden": pw } }
    };
    // Directly, as a user of this database only.
    let mut writer = world.mongod.client();
    log_in(&mut writer, "writer", "s3cret").unwrap();
    let added = [
        row("hidden.pw", of("secret"), "retiring"),
        row("customers.pw", of("secret"), "on"),
        row("customers.other", of("shop"), "retiring"),
        row("customers.torn", doc! { "database": "shop", "collections": 1 }, "on"),
    ];
    writer.must(&on("shop", doc! { "insert": "pleach.catalog", "documents": added.to_vec() })).unwrap();
    let status = world.client("writer").must(&verb("status", doc! {})).unwrap();
    let ignored: Vec<&str> =
        status.get_array("ignored").unwrap().iter().filter_map(|row| row.as_document()?.get_str("rule").ok()).collect();
    assert_eq!(ignored, ["customers.other", "customers.pw", "customers.torn", "hidden.pw"], "{status}");
    // Rules are brought on and off as before, and so the background work has looked at all of them.
    let mut wider = declaration("shop");
    let margin = doc! { "computed": { "margin": { "expr": { "$add": ["$_id", 1] } } } };
    wider.get_document_mut("collections").unwrap().insert("customers", margin);
    world.client("writer").must(&verb("apply", doc! { "declaration": wider })).unwrap();
    world.client("writer").must(&verb("drop", doc! { "rule": "customers.margin", "with_data": true })).unwrap();
    let found = world.root.must(&on("secret", doc! { "find": "hidden", "sort": { "_id": 1 } })).unwrap();
    let stored: Vec<Bson> = vec![doc! { "_id": 1, "pw": "a" }.into(), doc! { "_id": 2, "pw": "b" }.into()];
    assert_eq!(rows(&found, "firstBatch"), stored);
    for db in ["shop", "secret"] {
        assert_eq!(world.states(db), ["orders.customer on", "products.reviewCount on", "readings.bucket on"]);
    }
}
