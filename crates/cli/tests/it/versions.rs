//! Documents of several versions at both doors, through the catalog: declared, applied, changed, taken back, dropped, after a restart
//! and a kill; and fields that read what versions change.

use crate::doors::{At, at_each_door};
use crate::serving::{Serving, pleach};
use crate::shop::Shop;
use crate::upstream::{database, rows};
use bson::{Document, doc};
use judge::client::Client;
use std::time::{Duration, Instant};

at_each_door!(
    old_documents_are_migrated_and_the_rule_outlives_a_restart,
    a_server_adds_only_what_changes_no_document,
    a_version_is_added_behind_the_others,
    a_changed_step_needs_a_word_and_brings_documents_back,
    a_version_is_taken_back,
    the_number_keeps_its_name,
    drop_leaves_documents_as_they_are_stored,
    fields_that_read_changed_paths_are_computed_anew,
    a_migration_goes_on_after_a_kill,
    documents_come_back_after_a_kill,
    a_plan_shows_the_updates,
);

const RENAME: &str = "{ rename: { mail: email } }";
const NEST: &str = "{ nest: { phone: { into: phone.number, with: { phone.code: \"+1\" } } } }";

/// `users` with these steps, and what else is declared.
fn users(steps: &[&str], more: &str) -> String {
    format!("users: {{ versions: {{ field: v, steps: [{}]{more} }} }}", steps.join(", "))
}

/// Data that outlives its servers.
struct Home {
    shop: Shop,
    uri: Option<String>,
    db: String,
}

impl Home {
    fn new(at: At, name: &str) -> Home {
        let shop = Shop::new(&format!("versions-{name}-{}", at.name()), "");
        Home { shop, uri: at.uri(), db: database(&format!("versions_{name}")) }
    }

    fn serve(&self, args: &[&str]) -> Running<'_> {
        let serving = match &self.uri {
            Some(uri) => Serving::upstream(uri, args),
            None => self.shop.serve(args),
        };
        Running { home: self, serving }
    }

    fn declare(&self, rules: &str) -> String {
        self.shop.declare(&format!("database: {}\ncollections: {{ {rules} }}\n", self.db));
        self.shop.data().parent().unwrap().join("pleach.yaml").display().to_string()
    }
}

struct Running<'h> {
    home: &'h Home,
    serving: Serving,
}

impl Running<'_> {
    fn client(&self) -> Client {
        self.serving.client()
    }

    fn must(&self, mut command: Document) -> Document {
        command.insert("$db", &self.home.db);
        self.client().must(&command).unwrap()
    }

    fn insert(&self, collection: &str, documents: Vec<Document>) {
        self.must(doc! { "insert": collection, "documents": documents });
    }

    fn all(&self, collection: &str) -> Vec<Document> {
        let reply = self.must(doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 10_000 });
        rows(&reply, "firstBatch").iter().map(|row| row.as_document().unwrap().clone()).collect()
    }

    fn one(&self, collection: &str, id: i32) -> Document {
        self.all(collection).into_iter().find(|doc| doc.get_i32("_id").ok() == Some(id)).unwrap()
    }

    /// Runs a verb; its exit code and what it says.
    fn verb(&self, args: &[&str]) -> (Option<i32>, String) {
        let uri = format!("mongodb://{}", self.serving.address);
        let output = pleach().args(args).args(["--server", &uri]).output().unwrap();
        let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
        // Lines are folded at any word.
        (output.status.code(), text.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    /// Runs a verb with a declaration.
    fn declared(&self, verb: &str, rules: &str, args: &[&str]) -> (Option<i32>, String) {
        let file = self.home.declare(rules);
        self.verb(&[&[verb, "--declare", &file], args].concat())
    }

    fn apply(&self, rules: &str, args: &[&str]) -> String {
        let (code, text) = self.declared("apply", rules, args);
        assert_eq!(code, Some(0), "{text}");
        text
    }

    /// How the versions are.
    fn health(&self) -> Document {
        let status = self.must(doc! { "pleach": "status" });
        let rules = status.get_array("rules").unwrap();
        let rule = rules.iter().map(|rule| rule.as_document().unwrap());
        let of_versions = |rule: &&Document| rule.get_str("rule").ok() == Some("users.versions");
        rule.clone().find(of_versions).unwrap_or_else(|| panic!("{status}")).get_document("health").unwrap().clone()
    }

    fn versions(&self) -> Document {
        self.health().get_document("versions").unwrap().clone()
    }

    /// Waits until there are rules, and all are on.
    fn settle(&self) {
        let began = Instant::now();
        loop {
            let status = self.must(doc! { "pleach": "status" });
            let is_on = |rule: &bson::Bson| rule.as_document().unwrap().get_str("state").ok() == Some("on");
            let rules = status.get_array("rules").unwrap();
            if !rules.is_empty() && rules.iter().all(is_on) {
                return;
            }
            assert!(began.elapsed() < Duration::from_secs(30), "{status}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Nothing is wrong with any value.
    fn audited(&self) {
        let (code, text) = self.verb(&["audit", "--db", &self.home.db]);
        assert_eq!(code, Some(0), "{text}");
    }

    /// Stops the server; the database stays.
    fn stop(self) {
        self.serving.stop();
    }

    fn finish(self) {
        let mut client = self.client();
        let _ = client.command(&doc! { "pleach": "uninstall", "forget": true, "$db": &self.home.db });
        let _ = client.command(&doc! { "dropDatabase": 1, "$db": &self.home.db });
        drop(client);
        self.serving.stop();
    }
}

fn mails(ids: std::ops::Range<i32>) -> Vec<Document> {
    ids.map(|id| doc! { "_id": id, "mail": format!("m{id}"), "phone": format!("{id}") }).collect()
}

fn email(id: i32, version: i32) -> Document {
    doc! { "_id": id, "phone": format!("{id}"), "email": format!("m{id}"), "v": version }
}

fn old_documents_are_migrated_and_the_rule_outlives_a_restart(at: At) {
    let home = Home::new(at, "life");
    let running = home.serve(&[]);
    running.insert("users", mails(0..50));
    let told = running.apply(&users(&[RENAME], ""), &[]);
    assert!(told.contains("users.versions: 50 of version 2"), "{told}");
    assert_eq!(running.one("users", 7), email(7, 2));
    running.insert("users", vec![doc! { "_id": 100, "email": "new" }, doc! { "_id": 101, "mail": "old", "v": 1 }]);
    running.stop();
    let running = home.serve(&[]);
    assert_eq!(running.one("users", 100), doc! { "_id": 100, "email": "new", "v": 2 });
    assert_eq!(running.one("users", 101), doc! { "_id": 101, "v": 2, "email": "old" });
    let found = running.must(doc! { "count": "users", "query": { "email": "m3" } });
    assert_eq!(found.get_i32("n").ok(), Some(1));
    assert_eq!(running.declared("plan", &users(&[RENAME], ""), &[]).0, Some(0), "nothing is left to do");
    running.audited();
    running.finish();
}

fn a_server_adds_only_what_changes_no_document(at: At) {
    let home = Home::new(at, "declare");
    let file = home.declare(&users(&[RENAME], ""));
    let running = home.serve(&["--declare", &file]);
    running.settle();
    running.insert("users", vec![doc! { "_id": 1, "mail": "a", "v": 1 }, doc! { "_id": 2, "email": "b" }]);
    assert_eq!(running.one("users", 1), doc! { "_id": 1, "v": 2, "email": "a" });
    running.stop();
    // Another version makes others of documents that are there: the one that is kept stays.
    let file = home.declare(&users(&[RENAME, NEST], ""));
    let running = home.serve(&["--declare", &file]);
    assert_eq!(running.one("users", 2), doc! { "_id": 2, "email": "b", "v": 2 });
    running.apply(&users(&[RENAME, NEST], ""), &[]);
    assert_eq!(running.one("users", 2), doc! { "_id": 2, "email": "b", "v": 3 });
    running.finish();
    // So does the first one over documents that are there.
    let running = home.serve(&[]);
    running.insert("users", mails(0..1));
    running.stop();
    let running = home.serve(&["--declare", &file]);
    assert_eq!(running.all("users"), mails(0..1));
    running.finish();
}

fn a_version_is_added_behind_the_others(at: At) {
    let home = Home::new(at, "added");
    let running = home.serve(&[]);
    running.insert("users", mails(0..20));
    running.apply(&users(&[RENAME], ""), &[]);
    let more = users(&[RENAME, NEST], "");
    let (code, told) = running.declared("plan", &more, &[]);
    assert_eq!(code, Some(1));
    assert!(told.contains("documents are read as version 3: 20 of version 2; 20 migrated"), "{told}");
    let told = running.apply(&more, &[]);
    assert!(told.contains("users.versions: 20 of version 3"), "{told}");
    let expected = doc! { "_id": 3, "phone": { "number": "3", "code": "+1" }, "email": "m3", "v": 3 };
    assert_eq!(running.one("users", 3), expected);
    running.finish();
}

fn a_changed_step_needs_a_word_and_brings_documents_back(at: At) {
    let home = Home::new(at, "changed");
    let running = home.serve(&[]);
    running.insert("users", mails(0..600));
    running.apply(&users(&[NEST, RENAME], ""), &[]);
    running.insert("users", vec![doc! { "_id": 1_000, "email": "new" }]);
    let other = users(&[NEST, "{ rename: { mail: address } }"], "");
    let (code, told) = running.declared("apply", &other, &[]);
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("601 documents are stored in a version that is no longer declared so"), "{told}");
    assert!(told.contains("brought back to version 2 by `down`") && told.contains("--overwrite"), "{told}");
    assert_eq!(running.one("users", 1_000), doc! { "_id": 1_000, "email": "new", "v": 3 }, "nothing was applied");
    running.apply(&other, &["--overwrite"]);
    let expected = doc! { "_id": 5, "phone": { "number": "5", "code": "+1" }, "address": "m5", "v": 3 };
    assert_eq!(running.one("users", 5), expected);
    assert_eq!(running.one("users", 1_000), doc! { "_id": 1_000, "v": 3, "address": "new" });
    assert_eq!(running.versions(), doc! { "1": 0_i64, "2": 0_i64, "3": 601_i64 });
    running.finish();
}

fn a_version_is_taken_back(at: At) {
    let home = Home::new(at, "back");
    let running = home.serve(&[]);
    running.insert("users", mails(0..700));
    running.apply(&users(&[RENAME, "{ drop: [phone] }"], ""), &["--overwrite"]);
    let less = users(&[RENAME], "");
    let (code, told) = running.declared("plan", &less, &[]);
    assert_eq!(code, Some(1));
    assert!(told.contains("700 of version 3; 700 brought back"), "{told}");
    assert!(told.contains("`phone` is gone"), "what no way leads back to: {told}");
    running.apply(&less, &["--overwrite"]);
    assert_eq!(running.one("users", 9), doc! { "_id": 9, "email": "m9", "v": 2 });
    assert_eq!(running.versions(), doc! { "1": 0_i64, "2": 700_i64 });
    // And all of them.
    running.apply(&users(&["{ rename: { mail: eMail } }"], ""), &["--overwrite"]);
    assert_eq!(running.one("users", 9), doc! { "_id": 9, "v": 2, "eMail": "m9" });
    running.finish();
}

fn the_number_keeps_its_name(at: At) {
    let home = Home::new(at, "field");
    let running = home.serve(&[]);
    running.insert("users", mails(0..3));
    running.apply(&users(&[RENAME], ""), &[]);
    let (code, told) =
        running.declared("apply", &users(&[RENAME], "").replace("field: v", "field: w"), &["--overwrite"]);
    assert_eq!(code, Some(2));
    assert!(told.contains("documents have their version in `v`, and would have version 1 by `w`"), "{told}");
    assert!(told.contains("$rename: { v: \"w\" }"), "the way out: {told}");
    assert_eq!(running.one("users", 1), email(1, 2));
    // Only how they are migrated is no other version.
    let (code, told) = running.declared("plan", &users(&[RENAME], ", migrate: { rate: 5/s }"), &[]);
    assert!(code == Some(1) && told.contains("only how it is kept"), "{told}");
    running.finish();
}

fn drop_leaves_documents_as_they_are_stored(at: At) {
    let home = Home::new(at, "drop");
    let running = home.serve(&[]);
    running.insert("users", mails(0..3));
    let told = running.apply(&users(&[RENAME], ", migrate: { background: false }"), &[]);
    assert!(told.contains("3 documents stay as they are stored until they are written"), "{told}");
    running.insert("users", vec![doc! { "_id": 9, "email": "new" }]);
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(running.versions(), doc! { "1": 3_i64, "2": 1_i64 }, "nothing is migrated by itself");
    let (code, told) = running.verb(&["drop", "users.versions", "--db", &home.db, "--restore"]);
    assert!(code == Some(2) && told.contains("there is nothing to restore"), "{told}");
    let (code, told) = running.verb(&["drop", "users.versions", "--db", &home.db]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("documents stay as they are stored"), "{told}");
    assert!(told.contains("3 documents are not of the newest version") && told.contains("3 of version 1"), "{told}");
    assert_eq!(running.all("users")[..3], mails(0..3));
    assert_eq!(running.one("users", 9), doc! { "_id": 9, "email": "new", "v": 2 });
    running.finish();
}

/// A copy from the versioned collection, a count by one of its paths, and an expression over another.
fn fields(steps: &[&str], name: &str) -> String {
    let steps = steps.join(", ");
    format!(
        "users: {{ versions: {{ field: v, steps: [{steps}], migrate: {{ background: false }} }}, \
           computed: {{ shout: {{ expr: {{ $toUpper: ${name} }} }} }} }}, \
         posts: {{ extended_reference: {{ author: {{ from: users, by: userId, fields: [{name}] }} }} }}, \
         mails: {{ computed: {{ users: {{ count: users, by: {name}, match: text }} }}, \
           subset: {{ last: {{ from: users, by: {name}, match: text, sort: {{ _id: -1 }}, keep: 2, fields: [_id, {name}] }} }} }}"
    )
}

fn fields_that_read_changed_paths_are_computed_anew(at: At) {
    let home = Home::new(at, "fields");
    let running = home.serve(&[]);
    running.insert("users", (0..30).map(|id| doc! { "_id": id, "mail": format!("m{}", id % 3) }).collect());
    running.insert("posts", (0..40).map(|id| doc! { "_id": id, "userId": id % 30 }).collect());
    running.insert("mails", (0..3).map(|id| doc! { "_id": id, "text": format!("m{id}") }).collect());
    let check = |name: &str, count: i32| {
        assert_eq!(running.one("users", 4).get_str("shout").ok(), Some("M1"));
        assert_eq!(running.one("posts", 34).get_document("author").ok(), Some(&doc! { name: "m1" }));
        let mail = running.one("mails", 1);
        assert_eq!(mail.get_i32("users").ok(), Some(count));
        let last = mail.get_array("last").unwrap();
        assert_eq!(last[0].as_document().unwrap().get_str(name).ok(), Some("m1"), "{mail}");
        running.audited();
    };
    running.apply(&fields(&[RENAME], "email"), &["--create-missing"]);
    check("email", 10);
    assert_eq!(running.versions().get_i64("1").ok(), Some(0), "a host is brought up where its field is written");
    // The same fields over a path of the next version: what the documents are is another thing, and nobody writes to them.
    running.insert("users", vec![doc! { "_id": 40, "email": "m1" }]);
    let next = fields(&[RENAME, "{ rename: { email: address } }"], "address");
    running.apply(&next, &["--overwrite", "--create-missing"]);
    check("address", 11);
    // Names that stay, over other values.
    let lower = "{ up: [{ $set: { address: { $concat: [$address, \"!\"] } } }], down: [{ $set: { address: { $substrCP: [$address, 0, 2] } } }] }";
    running.must(doc! { "update": "mails", "updates": [{ "q": { "_id": 1 }, "u": { "$set": { "text": "m1!" } } }] });
    running.audited();
    let (code, told) =
        running.declared("plan", &fields(&[RENAME, "{ rename: { email: address } }", lower], "address"), &[]);
    assert!(code == Some(1) && told.contains("users.versions is made first"), "{told}");
    running.apply(&fields(&[RENAME, "{ rename: { email: address } }", lower], "address"), &["--overwrite"]);
    assert_eq!(running.one("users", 4).get_str("shout").ok(), Some("M1!"));
    assert_eq!(running.one("posts", 34).get_document("author").ok(), Some(&doc! { "address": "m1!" }));
    assert_eq!(running.one("mails", 1).get_i32("users").ok(), Some(11));
    running.audited();
    // And back.
    running.apply(&next, &["--overwrite"]);
    assert_eq!(running.one("users", 4).get_str("shout").ok(), Some("M1"));
    assert_eq!(running.one("mails", 1).get_i32("users").ok(), Some(0), "its text is another");
    running.audited();
    running.verb(&["drop", "users.versions", "--db", &home.db]);
    running.settle();
    running.audited();
    running.finish();
}

fn a_migration_goes_on_after_a_kill(at: At) {
    let home = Home::new(at, "kill");
    let running = home.serve(&[]);
    for part in 0..4 {
        running.insert("users", mails(part * 1_000..(part + 1) * 1_000));
    }
    let file = home.declare(&users(&[RENAME], ", migrate: { rate: 800/s }"));
    let declaration = std::fs::read_to_string(&file).unwrap();
    running.must(doc! { "pleach": "apply", "declaration": declaration });
    let began = Instant::now();
    loop {
        let done = running.versions().get_i64("2").unwrap();
        if done > 300 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{}", running.health());
        std::thread::sleep(Duration::from_millis(50));
    }
    running.serving.signal("KILL");
    drop(running);
    let running = home.serve(&[]);
    assert_eq!(running.one("users", 3_999), email(3_999, 2), "as if it were done");
    let began = Instant::now();
    let before = running.versions().get_i64("2").unwrap();
    assert!(before >= 300, "{before}");
    while running.health().get_i64("left").unwrap() > 0 {
        // A writer beside Pleach, or one of the version before.
        running.insert("users", vec![doc! { "mail": "late", "v": 1 }]);
        assert!(began.elapsed() < Duration::from_secs(60), "{}", running.health());
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(began.elapsed() > Duration::from_millis(2_500), "no faster than declared: {:?}", began.elapsed());
    running.finish();
}

fn documents_come_back_after_a_kill(at: At) {
    let home = Home::new(at, "back_kill");
    let running = home.serve(&[]);
    running.insert("users", mails(0..1_500));
    running.apply(&users(&[NEST, RENAME], ""), &[]);
    let file = home.declare(&users(&[NEST, "{ rename: { mail: address } }"], ", migrate: { rate: 500/s }"));
    let declaration = std::fs::read_to_string(&file).unwrap();
    running.must(doc! { "pleach": "apply", "declaration": &declaration, "overwrite": true, "wait": false });
    std::thread::sleep(Duration::from_millis(1_000));
    running.serving.signal("KILL");
    drop(running);
    let running = home.serve(&[]);
    let nested = |id: i32| doc! { "number": id.to_string(), "code": "+1" };
    let is_back = |version: i64| running.versions().get_i64(version.to_string()).unwrap_or_default();
    assert!(is_back(3) > 0 && is_back(2) > 0, "half way: {}", running.health());
    for id in [0, 1_499] {
        assert_eq!(running.one("users", id), doc! { "_id": id, "phone": nested(id), "mail": format!("m{id}"), "v": 2 });
    }
    let found = running.must(doc! { "count": "users", "query": { "mail": { "$in": ["m0", "m1499"] } } });
    assert_eq!(found.get_i32("n").ok(), Some(2));
    let set = doc! { "q": { "mail": "m1499" }, "u": { "$set": { "mail": "other" } } };
    assert_eq!(running.must(doc! { "update": "users", "updates": [set] }).get_i32("nModified").ok(), Some(1));
    running.must(doc! { "pleach": "apply", "declaration": &declaration });
    running.settle();
    assert_eq!(running.one("users", 0), doc! { "_id": 0, "phone": nested(0), "address": "m0", "v": 3 });
    assert_eq!(running.one("users", 1_499), doc! { "_id": 1_499, "phone": nested(1_499), "address": "other", "v": 3 });
    running.finish();
}

fn a_plan_shows_the_updates(at: At) {
    let home = Home::new(at, "plan");
    let running = home.serve(&[]);
    running.insert("users", mails(0..2));
    let rules = users(&[RENAME, NEST], ", migrate: { hours: \"01:00-05:00\", rate: 2000/s }");
    let (code, told) = running.declared("plan", &rules, &["--full"]);
    assert_eq!(code, Some(1));
    assert!(told.contains("documents are migrated from 01:00 to 05:00 UTC"), "{told}");
    let (_, json) = running.declared("plan", &rules, &["--json"]);
    let plan: serde_json::Value = serde_json::from_str(&json).unwrap();
    let rule = &plan["rules"][0];
    assert_eq!((&rule["work"], &rule["migrated"]), (&"convert".into(), &2.into()), "{rule}");
    assert_eq!(rule["versions"], serde_json::json!({ "1": 2, "2": 0, "3": 0 }));
    let steps: Vec<&serde_json::Value> =
        plan["steps"].as_array().unwrap().iter().filter(|step| step["kind"] == "convert").collect();
    assert_eq!(steps.len(), 2, "one for each older version");
    // What it prints is what a person could run.
    for step in &steps {
        let command = bson::Bson::try_from(step["command"].clone()).unwrap();
        running.must(command.as_document().unwrap().clone());
    }
    let expected = doc! { "_id": 1, "phone": { "number": "1", "code": "+1" }, "email": "m1", "v": 3 };
    assert_eq!(running.one("users", 1), expected);
    running.finish();
}
