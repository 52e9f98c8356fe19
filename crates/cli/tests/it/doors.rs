//! Both doors of a test: the embedded store, and a real MongoDB behind a proxy if there is one.

use crate::serving::Serving;
use crate::upstream::{database, rows};
use bson::{Document, doc};
use judge::client::Client;

/// A running Pleach and a database of the test's own.
pub(crate) struct Door {
    pub(crate) serving: Serving,
    pub(crate) db: String,
    /// In front of a real MongoDB.
    pub(crate) real: bool,
}

/// The embedded store, and a real MongoDB if there is one.
pub(crate) fn doors(name: &str, test: &str) -> Vec<Door> {
    let mut doors = vec![Door { serving: Serving::start(&[]), db: database(name), real: false }];
    if let Some(uri) = judge::real::uri_or_skip(test) {
        doors.push(Door { serving: Serving::upstream(&uri, &[]), db: database(name), real: true });
    }
    doors
}

impl Door {
    pub(crate) fn client(&self) -> Client {
        self.serving.client()
    }

    pub(crate) fn uri(&self) -> String {
        format!("mongodb://{}", self.serving.address)
    }

    /// The reply, whatever it is.
    pub(crate) fn ask(&self, mut command: Document) -> Document {
        command.insert("$db", &self.db);
        self.client().command(&command).unwrap().document
    }

    pub(crate) fn must(&self, mut command: Document) -> Document {
        command.insert("$db", &self.db);
        self.client().must(&command).unwrap()
    }

    pub(crate) fn apply(&self, collections: Document) {
        let declaration = doc! { "database": &self.db, "collections": collections };
        self.must(doc! { "pleach": "apply", "declaration": declaration });
    }

    /// The first batch of what a read finds.
    pub(crate) fn rows(&self, command: Document) -> Vec<Document> {
        let reply = self.must(command);
        rows(&reply, "firstBatch").iter().map(|row| row.as_document().unwrap().clone()).collect()
    }

    /// All documents of a collection, by `_id`.
    pub(crate) fn all(&self, collection: &str) -> Vec<Document> {
        self.rows(doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 10_000 })
    }

    pub(crate) fn finish(self) {
        if self.real {
            self.must(doc! { "dropDatabase": 1 });
        }
    }
}
