//! `$merge` in front of a real MongoDB: what goes to no rule's collection is the server's own work, the rest is planned.

use crate::serving::Serving;
use crate::upstream::{database, rows};
use bson::{Bson, Document, doc};

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn a_merge_binds_its_variables_whoever_runs_it() {
    let uri = judge::real::uri().unwrap();
    let (proxy, db) = (Serving::upstream(&uri, &[]), database("sinks"));
    let mut client = proxy.client();
    let rule =
        doc! { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } };
    let declaration = doc! { "database": &db, "collections": { "orders": rule } };
    client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": &db }).unwrap();
    let mut insert = |collection: &str, documents: Vec<Document>| {
        client.must(&doc! { "insert": collection, "documents": documents, "$db": &db }).unwrap();
    };
    insert("customers", vec![doc! { "_id": 1, "name": "Ada" }]);
    insert("new", vec![doc! { "_id": 7, "amount": 2, "customerId": 1 }]);
    for target in ["plain", "orders"] {
        insert(target, vec![doc! { "_id": 7, "amount": 40 }]);
    }
    let added =
        doc! { "$set": { "customerId": "$$new.customerId", "amount": { "$add": ["$amount", "$$new.amount"] } } };
    let twice = doc! { "$set": { "amount": { "$multiply": ["$amount", "$$factor"] } } };
    for target in ["plain", "orders"] {
        for merge in [
            doc! { "into": target, "whenMatched": [added.clone()] },
            doc! { "into": { "db": &db, "coll": target }, "let": { "factor": "$amount" }, "whenMatched": [twice.clone()] },
        ] {
            client
                .must(&doc! { "aggregate": "new", "pipeline": [{ "$merge": merge }], "cursor": {}, "$db": &db })
                .unwrap();
        }
        let found =
            client.must(&doc! { "find": target, "projection": { "_id": 0, "amount": 1, "customer": 1 }, "$db": &db });
        let wanted = match target {
            "orders" => doc! { "amount": 84, "customer": { "name": "Ada" } },
            _ => doc! { "amount": 84 },
        };
        assert_eq!(rows(&found.unwrap(), "firstBatch"), [Bson::from(wanted)], "{target}");
    }
    client.must(&doc! { "dropDatabase": 1, "$db": &db }).unwrap();
}
