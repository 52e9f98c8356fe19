//! Both doors: the embedded store and, where a real MongoDB is named, Pleach in front of it.

use crate::serving::Serving;
use crate::upstream::{database, rows};
use bson::{Document, doc};
use judge::client::Client;

pub(crate) struct Door {
    pub(crate) name: &'static str,
    pub(crate) serving: Serving,
    /// The MongoDB behind.
    pub(crate) upstream: Option<String>,
    pub(crate) db: String,
}

/// A server at each door, and a database of the test's own.
pub(crate) fn both(test: &str) -> Vec<Door> {
    let embedded = Door { name: "embedded", serving: Serving::start(&[]), upstream: None, db: database(test) };
    let mut doors = vec![embedded];
    if let Some(uri) = judge::real::uri_or_skip(test) {
        let serving = Serving::upstream(&uri, &[]);
        doors.push(Door { name: "upstream", serving, upstream: Some(uri), db: database(test) });
    }
    doors
}

impl Door {
    pub(crate) fn client(&self) -> Client {
        self.serving.client()
    }

    /// Applies the collections' block of a declaration.
    pub(crate) fn apply(&self, client: &mut Client, collections: Document) -> Document {
        let declaration = doc! { "database": &self.db, "collections": collections };
        client.command(&doc! { "pleach": "apply", "declaration": declaration, "$db": "admin" }).unwrap().document
    }

    pub(crate) fn run(&self, client: &mut Client, mut command: Document) -> Document {
        command.insert("$db", &self.db);
        client.must(&command).unwrap()
    }

    pub(crate) fn insert(&self, client: &mut Client, collection: &str, documents: Vec<Document>) {
        self.run(client, doc! { "insert": collection, "documents": documents });
    }

    pub(crate) fn find(&self, client: &mut Client, collection: &str) -> Vec<Document> {
        let reply = self.run(client, doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 1_000 });
        rows(&reply, "firstBatch").iter().map(|row| row.as_document().unwrap().clone()).collect()
    }

    /// The names of what `listCollections` lists.
    pub(crate) fn listed(&self, client: &mut Client, filter: Document) -> Vec<String> {
        let reply = self.run(client, doc! { "listCollections": 1, "nameOnly": true, "filter": filter });
        names(&reply)
    }

    /// The names of a collection's indexes but the one of `_id`.
    pub(crate) fn indexes(&self, client: &mut Client, collection: &str) -> Vec<String> {
        let reply = client.command(&doc! { "listIndexes": collection, "$db": &self.db }).unwrap().document;
        match reply.get_document("cursor") {
            Ok(_) => names(&reply).into_iter().filter(|name| name != "_id_").collect(),
            Err(_) => Vec::new(),
        }
    }

    /// Removes the database and stops the server, so that others that serve the same MongoDB need not wait for its lease to end.
    pub(crate) fn clean(self) {
        let mut client = self.client();
        let _ = client.command(&doc! { "pleach": "uninstall", "forget": true, "$db": &self.db });
        let _ = client.command(&doc! { "dropDatabase": 1, "$db": &self.db });
        drop(client);
        self.serving.stop();
    }
}

fn names(reply: &Document) -> Vec<String> {
    let name = |row: &bson::Bson| row.as_document().unwrap().get_str("name").unwrap().to_owned();
    let mut names: Vec<String> = rows(reply, "firstBatch").iter().map(name).collect();
    names.sort();
    names
}
