//! `plan` and `apply` on data that exists: what they say about it, what they refuse, and that a refusal leaves nothing behind.
//! Each test runs on the embedded store and in front of a real MongoDB.

mod counts;
mod moves;
mod obstacles;
mod refused;
mod ways;

use crate::doors::At;
use crate::shop::Shop;
use bson::{Bson, Document, doc};
use judge::client::Client;
use std::process::Output;

/// Where the data is: a folder that a server holds open, or a real MongoDB that the verbs reach by themselves.
struct Door {
    shop: Shop,
    server: Option<crate::serving::Serving>,
    uri: Option<String>,
    db: String,
}

impl Door {
    fn new(at: At, name: &str) -> Door {
        if let Some(uri) = at.uri() {
            let db = format!("{}_{}", name.replace('-', "_"), std::process::id());
            let door = Door { shop: Shop::new(&format!("{name}-up"), ""), server: None, uri: Some(uri), db };
            door.client().must(&doc! { "dropDatabase": 1, "$db": &door.db }).unwrap();
            return door;
        }
        let embedded = Shop::new(name, "");
        let server = embedded.serve(&[]);
        Door { shop: embedded, server: Some(server), uri: None, db: "shop".to_owned() }
    }

    fn client(&self) -> Client {
        match (&self.server, &self.uri) {
            (Some(server), _) => server.client(),
            (_, Some(uri)) => Client::connect(uri).unwrap(),
            _ => unreachable!(),
        }
    }

    fn must(&self, mut command: Document) -> Document {
        command.insert("$db", &self.db);
        self.client().must(&command).unwrap()
    }

    fn insert(&self, collection: &str, documents: Vec<Document>) {
        self.must(doc! { "insert": collection, "documents": documents });
    }

    fn all(&self, collection: &str) -> Vec<Bson> {
        let reply = self.must(doc! { "find": collection, "sort": { "_id": 1 } });
        reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone()
    }

    fn declare(&self, collections: &str) {
        self.shop.declare(&format!("database: {}\ncollections: {collections}\n", self.db));
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = self.shop.command(args);
        match &self.uri {
            Some(uri) => command.args(["--upstream", uri]),
            None => command.args(["--data", "data"]),
        };
        command.output().unwrap()
    }

    /// Exit code, stdout and stderr, with lines that were folded made whole.
    fn told(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let Output { status, stdout, stderr } = self.run(args);
        let whole = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        (status.code(), whole(stdout), whole(stderr))
    }

    fn json(&self, args: &[&str]) -> (Option<i32>, serde_json::Value) {
        let output = self.run(&[args, &["--json"]].concat());
        let json = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        (output.status.code(), json)
    }

    /// Every collection and index of the database, and what is ours elsewhere.
    fn inventory(&self) -> String {
        let listed = |reply: Document| {
            let mut rows: Vec<String> = reply
                .get_document("cursor")
                .unwrap()
                .get_array("firstBatch")
                .unwrap()
                .iter()
                .map(|row| {
                    let mut row = row.as_document().unwrap().clone();
                    row.remove("info");
                    row.to_string()
                })
                .collect();
            rows.sort();
            rows
        };
        let collections = self.must(doc! { "listCollections": 1, "nameOnly": false });
        let names: Vec<String> = collections
            .get_document("cursor")
            .unwrap()
            .get_array("firstBatch")
            .unwrap()
            .iter()
            .map(|row| row.as_document().unwrap().get_str("name").unwrap().to_owned())
            .collect();
        let mut all = listed(collections);
        for name in names {
            all.extend(listed(self.must(doc! { "listIndexes": name })));
        }
        all.join("\n")
    }

    /// Refused with exit code 2 and these words; nothing has changed.
    #[track_caller]
    fn refused(&self, args: &[&str], words: &[&str]) {
        let before = (self.inventory(), self.all("orders"));
        let (code, out, said) = self.told(args);
        assert_eq!((code, &*out), (Some(2), ""), "{said}");
        for word in words {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(said.contains("hint: "), "{said}");
        assert_eq!(before, (self.inventory(), self.all("orders")));
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if self.uri.is_some() {
            let _ = self.client().command(&doc! { "dropDatabase": 1, "$db": &self.db });
        }
    }
}

const COPY: &str =
    "{ orders: { extended_reference: { customer: { from: customers, by: customerId, fields: [name] } } } }";

/// Ten orders: six right, one wrong, two without a copy, one whose customer does not exist and that has no copy.
fn orders(door: &Door) {
    door.insert("customers", (1..=3).map(|id| doc! { "_id": id, "name": format!("c{id}") }).collect());
    let order = |id: i32| {
        let mut order =
            doc! { "_id": id, "customerId": id % 3 + 1, "customer": { "name": format!("c{}", id % 3 + 1) } };
        match id {
            6 => drop(order.insert("customer", doc! { "name": "stale" })),
            7 | 8 => drop(order.remove("customer")),
            9 => {
                order.insert("customerId", 99);
                order.remove("customer");
            }
            _ => {}
        }
        order
    };
    door.insert("orders", (0..10).map(order).collect());
}
