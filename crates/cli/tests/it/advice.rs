//! What verbs say helps, and about whom: rules that are switched off, databases, work that nobody does, values that are not cut.

use crate::audits::Place;
use crate::doors::{At, at_each_door};
use crate::mongod::{Mongod, initiate};
use crate::serving::{Serving, pleach};
use crate::shop::{Shop, text};
use bson::doc;

at_each_door!(rules_that_are_switched_off_are_said_to_be, buckets_of_several_databases_say_theirs,);

const COUNT: &str = "collections: { posts: { computed: { likes: { count: likes, by: postId } } } }\n";

fn rules_that_are_switched_off_are_said_to_be(at: At) {
    let mut place = Place::new(at, "switched-off");
    place.must(doc! { "insert": "posts", "documents": [{ "_id": 1, "likes": 5 }] });
    place.must(doc! { "insert": "likes", "documents": [{ "_id": 1, "postId": 1 }] });
    place.declare(COUNT);
    let applied = place.declared(&["apply", "--overwrite"]);
    assert_eq!(text(&applied).0, Some(0), "{applied:?}");
    let raw = match place.serving.take() {
        Some(serving) => {
            place.shop.stop(serving);
            place.shop.serve(&["--raw"])
        }
        None => Serving::upstream(place.uri.as_ref().unwrap(), &["--raw"]),
    };
    let server = format!("mongodb://{}", raw.address);
    let run = |args: &[&str]| {
        place.shop.command(args).args(["--declare", "pleach.yaml", "--server", &server]).output().unwrap()
    };
    let told = run(&["status"]);
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(0), "{told:?}");
    assert!(out.contains("switched off") && out.contains("posts.likes") && out.contains(" off "), "{out}");
    assert!(!out.contains("no rules are kept") && !out.contains("gone"), "{out}");
    let status = raw.client().must(&doc! { "pleach": "status", "$db": &place.db }).unwrap();
    assert!(status.get_bool("raw").unwrap(), "{status}");
    let told = run(&["plan"]);
    assert_eq!(text(&told).0, Some(0), "{told:?}");
    assert!(text(&told).1.contains("switched off") && !text(&told).1.contains("new"), "{told:?}");
    let told = run(&["explain", "{ \"insert\": \"likes\", \"documents\": [{ \"postId\": 1 }] }"]);
    assert!(text(&told).1.contains("switched off"), "{told:?}");
    assert_eq!(raw.stop(), Some(0));
    if place.uri.is_none() {
        place.serving = Some(place.shop.serve(&[]));
    }
}

#[test]
fn rules_of_several_databases_say_theirs() {
    let shop = Shop::new("advice-databases", "");
    let serving = shop.serve(&[]);
    let mut client = serving.client();
    for db in ["one", "two"] {
        let declaration = format!("database: {db}\n{COUNT}");
        client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": db }).unwrap();
        client.must(&doc! { "insert": "posts", "documents": [{ "_id": 1 }], "$db": db }).unwrap();
        // Nothing leads anywhere yet.
        client.must(&doc! { "insert": "likes", "documents": [{ "_id": 1, "postId": if db == "one" { 1 } else { 2 } }], "$db": db }).unwrap();
    }
    let (code, report) = shop.json(&["audit"]);
    assert_eq!(code, Some(0), "{report}");
    let told = shop.run(&["audit"]);
    assert!(text(&told).1.contains("posts.likes (two)\n") && !text(&told).1.contains("posts.likes (one)"), "{told:?}");
    let told = shop.run(&["audit", "--db", "three"]);
    assert_eq!(text(&told).0, Some(2), "{told:?}");
    assert!(text(&told).1.contains("the database `three` does not exist"), "{told:?}");
    // A client's own error says what to do.
    let declaration = "database: one\ncollections: { a: { extended_reference: { b: { from: bs, by: c, fields: [n], when_deleted: reject } } } }\n";
    client
        .must(&doc! { "pleach": "apply", "declaration": format!("{declaration}"), "remove": true, "$db": "one" })
        .unwrap();
    client.must(&doc! { "insert": "bs", "documents": [{ "_id": 1, "n": 1 }], "$db": "one" }).unwrap();
    client.must(&doc! { "insert": "a", "documents": [{ "_id": 1, "c": 1 }], "$db": "one" }).unwrap();
    let refused = client
        .command(&doc! { "delete": "bs", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }], "$db": "one" })
        .unwrap()
        .document;
    let error = refused.get_array("writeErrors").unwrap()[0].as_document().unwrap();
    assert!(error.get_str("errmsg").unwrap().contains("; delete or re-point them first"), "{refused}");
    shop.stop(serving);
    let told =
        shop.command(&["status", "--server", "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=100"]).output().unwrap();
    assert!(text(&told).2.contains("pleach serve") && !text(&told).2.contains("mongod runs"), "{told:?}");
}

/// Of each database, also in the table of how buckets are filled.
fn buckets_of_several_databases_say_theirs(at: At) {
    let door = at.door("fl");
    let other = format!("{}b", door.db);
    let mut client = door.client();
    for (db, readings) in [(&door.db, 3), (&other, 5)] {
        let bucket = doc! { "bucket": { "into": "hours", "time": "ts", "by": ["s"], "every": "hour" } };
        let declaration = doc! { "database": db, "collections": { "m": bucket } };
        client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": db }).unwrap();
        let reading = |n: i64| doc! { "_id": n, "s": n % 2, "ts": bson::DateTime::from_millis(n * 60_000) };
        let documents: Vec<_> = (0..readings).map(reading).collect();
        client.must(&doc! { "insert": "m", "documents": documents, "$db": db }).unwrap();
    }
    let told = pleach().args(["status", "--server", &door.uri()]).output().unwrap();
    let (code, out, _) = text(&told);
    assert_eq!(code, Some(0), "{told:?}");
    let (_, filled) = out.split_once("full to").unwrap_or_else(|| panic!("{out}"));
    for (db, readings) in [(&door.db, 3), (&other, 5)] {
        let row = filled.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = row.into_iter().find(|words| words.first() == Some(&db.as_str())).unwrap_or_else(|| panic!("{out}"));
        assert_eq!(row[1..4], ["m.bucket", "2", &readings.to_string()], "{out}");
    }
    client.must(&doc! { "dropDatabase": 1, "$db": &other }).unwrap();
    door.finish();
}

#[test]
fn work_that_nobody_does_is_not_waited_for() {
    let shop = Shop::new("advice-idle", &format!("database: shop\n{COUNT}"));
    let serving = shop.serve(&[]);
    let mut client = serving.client();
    client.must(&doc! { "insert": "posts", "documents": [{ "_id": 1 }], "$db": "shop" }).unwrap();
    client.must(&doc! { "insert": "likes", "documents": [{ "_id": 1, "postId": 1 }], "$db": "shop" }).unwrap();
    let declaration = COUNT.replace("by: postId", "by: postId, lag: 10m");
    client
        .must(&doc! { "pleach": "apply", "declaration": format!("database: shop\n{declaration}"), "$db": "shop" })
        .unwrap();
    client.must(&doc! { "insert": "likes", "documents": [{ "_id": 2, "postId": 1 }], "$db": "shop" }).unwrap();
    let (code, report) = shop.json(&["audit"]);
    assert_eq!((code, &report["next"][0]["action"]), (Some(1), &"wait".into()), "{report}");
    shop.stop(serving);
    let (code, report) = shop.json(&["audit"]);
    assert_eq!((code, &report["next"][0]["action"]), (Some(1), &"resume".into()), "{report}");
    let told = shop.run(&["audit"]);
    assert!(
        text(&told).1.contains("  pleach serve --data data\n") && !text(&told).1.contains("pleach status"),
        "{told:?}"
    );
}

/// In a MongoDB that no other test serves, since any server that is there would do the work.
#[test]
#[cfg_attr(not(own_mongod), ignore = "needs PLEACH_TEST_MONGODB_URI and the mongod of judge/start")]
fn work_that_nobody_does_in_a_mongodb_is_not_waited_for() {
    let mongod = Mongod::start(&["--replSet", "rs"]);
    initiate(&[&mongod]);
    let uri = format!("mongodb://{}/?replicaSet=rs", mongod.address());
    let shop = Shop::new("advice-idle-mongodb", "");
    let serving = Serving::upstream(&uri, &[]);
    let mut client = serving.client();
    client.must(&doc! { "insert": "posts", "documents": [{ "_id": 1 }], "$db": "shop" }).unwrap();
    client.must(&doc! { "insert": "likes", "documents": [{ "_id": 1, "postId": 1 }], "$db": "shop" }).unwrap();
    let declaration = format!("database: shop\n{}", COUNT.replace("by: postId", "by: postId, lag: 10m"));
    client.must(&doc! { "pleach": "apply", "declaration": declaration, "$db": "shop" }).unwrap();
    client.must(&doc! { "insert": "likes", "documents": [{ "_id": 2, "postId": 1 }], "$db": "shop" }).unwrap();
    let audit = |flags: &[&str]| {
        shop.command(&[&["audit", "--db", "shop", "--upstream", &uri], flags].concat()).output().unwrap()
    };
    let action = || {
        let told = audit(&["--json"]);
        assert_eq!(told.status.code(), Some(1), "{told:?}");
        let report: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
        report["next"][0]["action"].clone()
    };
    assert_eq!(action(), "wait");
    assert_eq!(serving.stop(), Some(0));
    assert_eq!(action(), "resume");
    let told = audit(&[]);
    let (_, out, _) = text(&told);
    assert!(out.contains("Nobody works on it now") && out.contains("  pleach serve --upstream "), "{out}");
    assert!(!out.contains("pleach status"), "{out}");
}

#[test]
fn buckets_say_what_was_moved_and_show_their_flaws_whole() {
    let rule = "collections: { m: { bucket: { into: hours, by: [s], time: ts, every: hour } } }\n";
    let shop = Shop::new("advice-buckets", &format!("database: shop\n{rule}"));
    let serving = shop.serve(&[]);
    let mut client = serving.client();
    let reading = |n: i64| doc! { "_id": n, "s": "a sensor with a long name", "ts": bson::DateTime::from_millis(n * 60_000), "v": n };
    client.must(&doc! { "insert": "m", "documents": (0..4).map(reading).collect::<Vec<_>>(), "$db": "shop" }).unwrap();
    let told = shop.run(&["apply"]);
    assert!(text(&told).1.contains("m.bucket: 4 moved into buckets\n"), "{told:?}");
    shop.stop(serving);
    let raw = shop.serve(&["--raw"]);
    let mut client = raw.client();
    client
        .must(&doc! { "insert": "hours", "documents": [{ "_id": 7 }], "bypassDocumentValidation": true, "$db": "shop" })
        .unwrap();
    let wrong = doc! { "$set": { "hour": bson::DateTime::from_millis(7_200_000) } };
    client
        .must(&doc! { "update": "hours", "updates": [{ "q": { "_id": { "$ne": 7 } }, "u": wrong }], "$db": "shop" })
        .unwrap();
    let (_, report) = shop.json(&["audit"]);
    let foreign = report["drift"].as_array().unwrap().iter().find(|drift| drift["_id"] == 7).unwrap();
    assert!(foreign.get("expected").is_none() && foreign["flaws"][0].get("expected").is_none(), "{report}");
    let told = shop.run(&["audit"]);
    let (_, out, _) = text(&told);
    let whole = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(whole.contains("1970-01-01T02:00:00Z") && whole.contains("a sensor with a long name"), "{out}");
    assert!(!out.contains('…'), "{out}");
    out.lines().for_each(|line| assert!(line.chars().count() <= 80, "{line}\n{out}"));
    shop.stop(raw);
}
