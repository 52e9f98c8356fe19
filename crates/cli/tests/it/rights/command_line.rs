//! The command line, with the rights of the user in its connection string.

use super::{World, declaration, on, uri};
use crate::serving::{Serving, pleach};
use bson::{Bson, Document, doc};

/// What the command line says and its exit code.
fn run(arguments: &[&str], uri: &str) -> (Option<i32>, String) {
    let output = pleach().args(arguments).args(["--upstream", uri]).output().unwrap();
    (
        output.status.code(),
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)),
    )
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn the_command_line_has_the_rights_of_its_connection_string() {
    let mut world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, declaration: Document| {
        let path = folder.path().join(name);
        std::fs::write(&path, Bson::from(declaration).into_relaxed_extjson().to_string()).unwrap();
        path.display().to_string()
    };
    let shop = file("shop.yaml", declaration("shop"));
    let mut more = declaration("shop");
    more.get_document_mut("collections").unwrap().extend(doc! { "customers": { "computed": {
    "margin": { "expr": { "$add": ["$_id", 1] } }, "orderCount": { "count": "orders", "by": "customerId" } } } });
    let more = file("more.yaml", more);
    let mut expiring = declaration("shop");
    expiring.get_document_mut("collections").unwrap().extend(doc! { "customers": { "computed": {
    "visitCount": { "count": "visits", "by": "customerId" } } } });
    let expiring = file("expiring.yaml", expiring);
    world.root.must(&on("shop", doc! { "createIndexes": "visits", "indexes": [{ "key": { "at": 1 }, "name": "at_1", "expireAfterSeconds": 999_999 }] })).unwrap();
    world.root.must(&on("shop", doc! { "update": "orders", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "customer.name": "Bob" } } }] })).unwrap();
    let proxy = std::mem::replace(&mut world.proxy, Serving::start(&[]));
    assert_eq!(proxy.stop(), Some(0));
    let (reader, writer, admin) =
        (uri(&world.mongod, "reader"), uri(&world.mongod, "writer"), uri(&world.mongod, "admin"));
    // Reading verbs write nothing, and show the rules as they are.
    let before = world.stored("shop");
    for (arguments, exit, says) in [
        (vec!["status"], 0, "orders.customer"),
        (vec!["plan", "--declare", &shop], 0, ""),
        (vec!["plan", "--declare", &more], 1, "customers.margin"),
        (vec!["audit", "--declare", &shop], 1, "Bob"),
        (vec!["audit"], 1, "Bob"),
        (vec!["repair", "--declare", &shop], 2, "role readWrite on shop"),
        (vec!["apply", "--declare", &more], 2, "role readWrite on shop"),
        (vec!["drop", "orders.customer", "--db", "shop"], 2, "role readWrite on shop"),
    ] {
        let (code, told) = run(&arguments, &reader);
        assert_eq!(code, Some(exit), "{arguments:?}: {told}");
        assert!(told.contains(says), "{arguments:?}: {told}");
        assert_eq!(world.stored("shop"), before, "{arguments:?} has changed something");
    }
    let (code, told) = run(&["repair", "--declare", &shop], &writer);
    assert_eq!(code, Some(0), "{told}");
    let before = world.stored("shop");
    let (code, told) = run(&["apply", "--declare", &expiring], &writer);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("collMod") && told.contains("role dbAdmin on shop"), "{told}");
    assert_eq!(world.stored("shop"), before, "a refused apply has left something behind");
    let (code, told) = run(&["apply", "--declare", &more], &writer);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = run(&["apply", "--declare", &expiring, "--remove"], &admin);
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = run(&["audit", "--declare", &expiring], &reader);
    assert_eq!(code, Some(0), "{told}");
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn what_may_not_be_applied_is_not_adopted() {
    let mut world = World::new();
    let proxy = std::mem::replace(&mut world.proxy, Serving::start(&[]));
    assert_eq!(proxy.stop(), Some(0));
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = |declaration: Document| Bson::from(declaration).into_relaxed_extjson().to_string();
    std::fs::write(path("shop.yaml"), text(declaration("shop"))).unwrap();
    let report = doc! { "findings": [{
        "symptom": "counter_by_hand", "database": "shop", "collection": "customers", "field": "margin", "severity": "act",
        "declaration": "database: shop\ncollections:\n  customers:\n    computed:\n      margin: { expr: { $add: [$_id, 1] } }\n",
    }] };
    std::fs::write(path("advise.json"), text(report)).unwrap();
    let before = (std::fs::read_to_string(path("shop.yaml")).unwrap(), world.stored("shop"));
    let arguments = ["adopt", "--from", &path("advise.json"), "--declare", &path("shop.yaml"), "--yes"];
    let (code, told) = run(&arguments, &uri(&world.mongod, "reader"));
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("nothing was changed") && told.contains("is as it was"), "{told}");
    assert_eq!((std::fs::read_to_string(path("shop.yaml")).unwrap(), world.stored("shop")), before);
    let (code, told) = run(&arguments, &uri(&world.mongod, "writer"));
    assert_eq!(code, Some(0), "{told}");
}

#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn a_repair_once_needs_no_more_than_its_own_writes() {
    let mut world = World::new();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("once.yaml");
    std::fs::write(
        &file,
        "database: shop\ncollections:\n  visits:\n    computed:\n      seats: { count: seats, by: visitId }\n",
    )
    .unwrap();
    let once = ["repair", "--once", "--overwrite", "--declare", file.to_str().unwrap()];
    world.root.must(&on("shop", doc! { "insert": "visits", "documents": [{ "_id": 1, "seats": 7 }] })).unwrap();
    world.root.must(&on("shop", doc! { "insert": "seats", "documents": [{ "_id": 1, "visitId": 1 }] })).unwrap();
    let proxy = std::mem::replace(&mut world.proxy, Serving::start(&[]));
    assert_eq!(proxy.stop(), Some(0));
    let before = world.stored("shop");
    let (code, told) = run(&once, &uri(&world.mongod, "reader"));
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("role readWrite on shop"), "{told}");
    assert_eq!(world.stored("shop"), before);
    let (code, told) = run(&once, &uri(&world.mongod, "writer"));
    assert_eq!(code, Some(0), "{told}");
    // The value is changed, and nothing else.
    assert_ne!(world.stored("shop"), before);
    world
        .root
        .must(&on(
            "shop",
            doc! { "update": "visits", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "seats": 7 } } }] },
        ))
        .unwrap();
    assert_eq!(world.stored("shop"), before);
}
