//! An audit of a stranger's MongoDB by a user who may only read: every listed field is compared with what is stored, the wrong ones
//! are named, and not a byte changes.

use super::everything;
use crate::mongod::{Mongod, initiate, key_file};
use crate::serving::pleach;
use crate::upstream::{log_in, rows};
use bson::{Bson, Document, doc};
use judge::client::Client;
use std::collections::BTreeSet;
use testing::registry::refreshed;
use testing::shop;
use testing::{Act, declaration};

fn customer(id: i32) -> Document {
    let mut customer = shop::customer(id, "Ada", 1);
    customer.remove("_id");
    customer
}

/// Everything that the server holds, its indexes too.
fn stored(root: &mut Client) -> Vec<(String, Vec<Bson>)> {
    let mut all = Vec::new();
    for db in ["shop", "admin"] {
        let list = root.must(&doc! { "listCollections": 1, "$db": db }).unwrap();
        all.push((db.to_owned(), rows(&list, "firstBatch")));
        for name in shop::COLLECTIONS.iter().filter(|_| db == "shop") {
            let find = doc! { "find": *name, "sort": { "_id": 1 }, "batchSize": 10_000, "$db": db };
            all.push(((*name).to_owned(), rows(&root.must(&find).unwrap(), "firstBatch")));
            let indexes = root.must(&doc! { "listIndexes": *name, "$db": db }).unwrap();
            all.push((format!("indexes of {name}"), rows(&indexes, "firstBatch")));
        }
    }
    all
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn who_may_only_read_sees_what_is_wrong_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mongod = Mongod::start(&["--replSet", "rs", "--keyFile", &key_file(folder.path())]);
    initiate(&[&mongod]);
    let mut root = mongod.client();
    let user = |name: &str, role: &str, db: &str| doc! { "createUser": name, "pwd": "s3cret", "roles": [{ "role": role, "db": db }], "$db": "admin" };
    root.must(&user("root", "root", "admin")).unwrap();
    log_in(&mut root, "root", "s3cret").unwrap();
    root.must(&user("reader", "read", "shop")).unwrap();
    for name in shop::COLLECTIONS {
        root.must(&doc! { "create": *name, "$db": "shop" }).unwrap();
    }
    let mut client = shop::Client::new(5);
    for at in 1..=80 {
        let mut command = client.act(at).command();
        command.insert("$db", "shop");
        root.must(&command).unwrap();
    }
    // What is referred to is there, and every collection has a document.
    let customers = (0..6).map(|id| Act::Update("customers", doc! { "_id": id }, shop::set(customer(id)), false, true));
    let others = ["contracts", "invoices", "notes", "receipts"].map(|name| {
        Act::Update(
            name,
            doc! { "_id": 1 },
            shop::set(doc! { "customerId": 1, "orderId": 1, "email": "1@example.org" }),
            false,
            true,
        )
    });
    let order = Act::Update("orders", doc! { "_id": 1 }, shop::set(doc! { "customerId": 1, "n": 2 }), false, true);
    for act in customers.chain(others).chain([order]) {
        let mut command = act.command();
        command.insert("$db", "shop");
        root.must(&command).unwrap();
    }
    // Hosts of roll-ups that nobody has made by hand, and a value that no rule gives, everywhere.
    let documents = vec![doc! { "_id": 0 }];
    for name in ["days", "shelves", "wanted"] {
        root.must(&doc! { "insert": name, "documents": documents.clone(), "$db": "shop" }).unwrap();
    }
    let mut wrong = BTreeSet::new();
    for (collection, path) in refreshed(&everything()) {
        let place = path.replace("items.", "items.$[].");
        let query = if place == path {
            doc! {}
        } else {
            doc! { "items": { "$type": "array" } }
        };
        let update = doc! { "q": query, "u": { "$set": { place: -9_000 } }, "multi": true };
        let reply = root.must(&doc! { "update": &collection, "updates": [update], "$db": "shop" }).unwrap();
        if reply.get_i32("n").unwrap() > 0 {
            wrong.insert(format!("{collection}.{path}"));
        }
    }
    let file = folder.path().join("pleach.yaml");
    std::fs::write(&file, declaration("shop", &everything())).unwrap();
    // As text: NaN differs from itself.
    let before = format!("{:?}", stored(&mut root));
    let uri = format!("mongodb://reader:s3cret@{}/?replicaSet=rs&authSource=admin", mongod.address());
    let output = pleach().args(["audit", "--json", "--upstream", &uri, "--declare"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let drifted = report["rules"].as_array().unwrap().iter().filter(|rule| rule["drifted"].as_i64().unwrap_or(0) > 0);
    let named: BTreeSet<String> = drifted.map(|rule| rule["rule"].as_str().unwrap().to_owned()).collect();
    let unnamed: Vec<&String> = wrong.difference(&named).collect();
    assert!(unnamed.is_empty() && wrong.len() > 40, "{unnamed:?} of {}: {report}", wrong.len());
    assert_eq!(format!("{:?}", stored(&mut root)), before);
    let refused: Document = {
        let mut reader = mongod.client();
        log_in(&mut reader, "reader", "s3cret").unwrap();
        reader.command(&doc! { "insert": "days", "documents": documents, "$db": "shop" }).unwrap().document
    };
    assert_eq!(refused.get_i32("code").ok(), Some(13), "the user may only read");
}
