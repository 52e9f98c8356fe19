//! `pleach uninstall`: the data stays, and nothing else of Pleach does.

use crate::doors::{At, Door, at_each_door};
use crate::serving::pleach;
use bson::{DateTime, Document, doc};
use judge::client::Client;

at_each_door!(all_rules_go_and_the_data_stays,);

fn rules() -> Document {
    doc! {
        "products": { "computed": {
            "reviewCount": { "count": "reviews", "by": "productId" },
            "avgRating": { "avg": "rating", "from": "reviews", "by": "productId" },
        } },
        "orders": { "extended_reference": {
            "product": { "from": "products", "by": "sku", "match": "sku", "fields": ["name"] },
        } },
        "data": { "bucket": { "into": "hours", "time": "ts", "by": ["sensor"], "every": "hour", "at_most": 3 } },
    }
}

fn fill(door: &Door, client: &mut Client) {
    door.insert(
        client,
        "products",
        (1..=3).map(|id| doc! { "_id": id, "sku": id, "name": format!("p{id}") }).collect(),
    );
    door.insert(
        client,
        "reviews",
        (0..7).map(|id| doc! { "_id": id, "productId": id % 3 + 1, "rating": id }).collect(),
    );
    door.insert(client, "orders", (0..4).map(|id| doc! { "_id": id, "sku": id }).collect());
    let index = doc! { "key": { "rating": 1 }, "name": "own" };
    door.run(client, doc! { "createIndexes": "reviews", "indexes": [index] });
    let index = doc! { "key": { "written": 1 }, "name": "old", "expireAfterSeconds": 1_000_000 };
    door.run(client, doc! { "createIndexes": "reviews", "indexes": [index] });
    let applied = door.applied(client, rules());
    assert_eq!(applied.get_f64("ok").ok(), Some(1.0), "{applied}");
    let reading = |id: i64| doc! { "_id": id, "ts": DateTime::from_millis(id * 60_000), "sensor": id % 2, "temp": id };
    door.insert(client, "data", (0..20).map(reading).collect());
}

/// Without `_pleach`, which goes with the rules.
fn plain(mut documents: Vec<Document>) -> Vec<Document> {
    for document in &mut documents {
        document.remove("_pleach");
    }
    documents
}

fn uninstall(door: &Door, arguments: &[&str]) -> (Option<i32>, String, String) {
    let server = format!("mongodb://{}", door.serving.address);
    let output = pleach().args(["uninstall", "--server", &server]).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn all_rules_go_and_the_data_stays(at: At) {
    let door = at.door("uninstall");
    let mut client = door.client();
    fill(&door, &mut client);
    let before: Vec<_> = ["products", "reviews", "orders", "data"].map(|name| (name, plain(door.all(name)))).into();
    assert_eq!(door.indexes(&mut client, "reviews"), ["old", "own", "productId_1"], "{}", door.at.name());

    // Nobody is there to ask: it needs to be said.
    let (code, out, error) = uninstall(&door, &["--db", &door.db]);
    assert_eq!((code, &*out), (Some(2), ""), "{error}");
    assert!(error.contains("--yes") && error.contains("products.reviewCount"), "{error}");
    assert_eq!(door.indexes(&mut client, "reviews"), ["old", "own", "productId_1"]);

    let (code, out, error) = uninstall(&door, &["--db", &door.db, "--yes"]);
    assert_eq!(code, Some(0), "{}: {out}{error}", door.at.name());
    for said in ["products.reviewCount", "data.bucket", "reviews.productId_1", "pleach.catalog"] {
        assert!(out.contains(said), "{said}: {out}");
    }
    for (name, documents) in before {
        assert_eq!(door.all(name), documents, "{} {name}", door.at.name());
    }
    // MongoDB keeps its collection of views, empty.
    let mut all = door.listed(&mut client, doc! { "name": { "$regex": "^(pleach|.)" } });
    all.retain(|name| name != "system.views");
    assert_eq!(all, ["data", "orders", "products", "reviews"], "{}", door.at.name());
    assert_eq!(door.indexes(&mut client, "reviews"), ["old", "own"]);
    assert_eq!(door.indexes(&mut client, "products"), [""; 0]);
    assert_eq!(door.indexes(&mut client, "orders"), [""; 0]);
    // Ordinary data: no rule counts, refuses or owns anything.
    door.insert(&mut client, "reviews", vec![doc! { "productId": 1 }]);
    door.run(
        &mut client,
        doc! { "update": "products", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "reviewCount": 77 } } }] },
    );
    door.run(&mut client, doc! { "drop": "reviews" });

    let (code, out, error) = uninstall(&door, &["--db", &door.db, "--yes"]);
    assert_eq!((code, &*out), (Some(0), "nothing of Pleach is here\n"), "{error}");
    door.finish();
}

#[test]
#[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
fn what_rules_have_replaced_stays_until_it_is_to_be_forgotten() {
    let door = At::Upstream.door("forget");
    let mut client = door.client();
    fill(&door, &mut client);
    let mut direct = Client::connect(&door.at.uri().unwrap()).unwrap();
    direct.must(&doc! { "insert": "pleach.replaced", "documents": [{ "_id": 1 }], "$db": &door.db }).unwrap();
    let (code, out, error) = uninstall(&door, &["--db", &door.db, "--yes"]);
    assert_eq!(code, Some(1), "{out}{error}");
    assert!(out.contains("stays: pleach.replaced (it keeps 1 values"), "{out}");
    assert_eq!(door.listed(&mut client, doc! { "name": { "$regex": "^pleach" } }), ["pleach.replaced"]);
    let (code, out, error) = uninstall(&door, &["--db", &door.db, "--yes", "--forget", "--json"]);
    assert_eq!(code, Some(0), "{out}{error}");
    let said: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(said["databases"][0]["collections"], serde_json::json!(["pleach.replaced"]), "{said}");
    assert_eq!(door.listed(&mut client, doc! { "name": { "$regex": "^pleach" } }), [""; 0]);
    door.finish();
}
