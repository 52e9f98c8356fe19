//! Both doors of Pleach: the embedded store, and a real MongoDB behind it. A test that goes through both is one function of [`At`];
//! [`at_each_door`] makes two tests of it, so that the second is seen to be left out where there is no MongoDB.

use crate::serving::Serving;
use crate::upstream::{database, rows};
use bson::{Document, doc};
use judge::client::Client;

/// Which door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum At {
    Embedded,
    Upstream,
}

macro_rules! at_each_door {
    ($($test:ident),* $(,)?) => {
        $(mod $test {
            #[test]
            fn embedded() {
                super::$test(crate::doors::At::Embedded);
            }

            #[test]
            #[cfg_attr(not(real_mongodb), ignore = "needs PLEACH_TEST_MONGODB_URI")]
            fn upstream() {
                super::$test(crate::doors::At::Upstream);
            }
        })*
    };
}
pub(crate) use at_each_door;

/// A running Pleach and a database of the test's own.
pub(crate) struct Door {
    pub(crate) at: At,
    pub(crate) serving: Serving,
    pub(crate) db: String,
}

impl At {
    pub(crate) fn name(self) -> &'static str {
        if self.is_real() { "upstream" } else { "embedded" }
    }

    pub(crate) fn is_real(self) -> bool {
        self == At::Upstream
    }

    /// The address of the MongoDB, if that is where the data is.
    pub(crate) fn uri(self) -> Option<String> {
        self.is_real().then(|| judge::real::uri().unwrap())
    }

    /// A server.
    pub(crate) fn serve(self) -> Serving {
        match self.uri() {
            Some(uri) => Serving::upstream(&uri, &[]),
            None => Serving::start(&[]),
        }
    }

    /// A server, and a database whose name begins so.
    pub(crate) fn door(self, name: &str) -> Door {
        Door { at: self, serving: self.serve(), db: database(name) }
    }
}

impl Door {
    pub(crate) fn is_real(&self) -> bool {
        self.at.is_real()
    }

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

    pub(crate) fn must(&self, command: Document) -> Document {
        self.run(&mut self.client(), command)
    }

    pub(crate) fn apply(&self, collections: Document) {
        let applied = self.applied(&mut self.client(), collections);
        assert_eq!(applied.get_f64("ok").unwrap(), 1.0, "{applied}");
    }

    /// The reply to `apply`, whatever it is.
    pub(crate) fn applied(&self, client: &mut Client, collections: Document) -> Document {
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

    /// The first batch of what a read finds.
    pub(crate) fn rows(&self, command: Document) -> Vec<Document> {
        let reply = self.must(command);
        rows(&reply, "firstBatch").iter().map(|row| row.as_document().unwrap().clone()).collect()
    }

    /// All documents of a collection, by `_id`.
    pub(crate) fn all(&self, collection: &str) -> Vec<Document> {
        self.rows(doc! { "find": collection, "sort": { "_id": 1 }, "batchSize": 10_000 })
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
    pub(crate) fn finish(self) {
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
