//! Every verb and command that Pleach answers itself, against users with different rights, in front of a real MongoDB with
//! access control (SEMANTICS R37): allowed exactly if MongoDB lets the user do it itself.

mod catalog;
mod command_line;
mod deferred;
mod discreet;
mod forms;
mod memory;
mod restoring;
mod rules;
mod same_refusals;
mod table;

use crate::mongod::{Mongod, initiate, key_file, until};
use crate::serving::Serving;
use crate::upstream::{log_in, rows};
use bson::{Bson, Document, doc};
use judge::client::Client;

/// The columns of the table.
const USERS: [&str; 5] = ["nobody", "elsewhere", "reader", "writer", "admin"];

struct World {
    _folder: tempfile::TempDir,
    mongod: Mongod,
    root: Client,
    proxy: Serving,
}

fn declaration(db: &str) -> Document {
    doc! { "database": db, "collections": {
        "products": { "computed": { "reviewCount": { "count": "reviews", "by": "productId" } } },
        "orders": { "extended_reference": { "customer": { "from": "customers", "by": "customerId", "fields": ["name"] } } },
        "readings": { "bucket": { "time": "ts", "by": ["sensorId"], "every": "hour", "at_most": 60 } },
    } }
}

fn roles(roles: &[(&str, &str)]) -> Vec<Document> {
    roles.iter().map(|(role, db)| doc! { "role": *role, "db": *db }).collect()
}

impl World {
    /// A MongoDB with access control, its users, and data under rules in two databases.
    fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let key = key_file(folder.path());
        let mongod = Mongod::start(&["--replSet", "rs", "--keyFile", &key]);
        initiate(&[&mongod]);
        let mut root = mongod.client();
        let user = |name: &str, roles: Vec<Document>| doc! { "createUser": name, "pwd": "s3cret", "roles": roles, "$db": "admin" };
        root.must(&user("root", roles(&[("root", "admin")]))).unwrap();
        log_in(&mut root, "root", "s3cret").unwrap();
        for (name, of) in [
            ("elsewhere", roles(&[("read", "other")])),
            ("reader", roles(&[("read", "shop")])),
            ("writer", roles(&[("readWrite", "shop")])),
            ("admin", roles(&[("readWrite", "shop"), ("dbAdmin", "shop")])),
            ("operator", roles(&[("readWriteAnyDatabase", "admin"), ("dbAdminAnyDatabase", "admin")])),
        ] {
            root.must(&user(name, of)).unwrap();
        }
        let proxy = Serving::upstream(&uri(&mongod, "operator"), &[]);
        let mut world = World { _folder: folder, mongod, root, proxy };
        for db in ["shop", "secret"] {
            world.fill(db);
        }
        world
    }

    fn fill(&mut self, db: &str) {
        let mut client = self.client("root");
        client.must(&doc! { "insert": "customers", "documents": [{ "_id": 1, "name": "Ada" }], "$db": db }).unwrap();
        client.must(&doc! { "insert": "products", "documents": [{ "_id": 1 }], "$db": db }).unwrap();
        client.must(&doc! { "pleach": "apply", "declaration": declaration(db), "$db": db }).unwrap();
        let readings: Vec<Document> = (0..200_i64)
            .map(|n| doc! { "_id": n, "sensorId": n % 3, "ts": bson::DateTime::from_millis(n * 60_000), "v": 1 })
            .collect();
        client.must(&doc! { "insert": "readings", "documents": readings, "$db": db }).unwrap();
        client.must(&doc! { "insert": "orders", "documents": [{ "_id": 1, "customerId": 1 }], "$db": db }).unwrap();
    }

    /// A client of the proxy; `nobody` does not authenticate.
    fn client(&self, user: &str) -> Client {
        let mut client = self.proxy.client();
        if user != "nobody" {
            log_in(&mut client, user, "s3cret").unwrap();
        }
        client
    }

    /// Makes a user with these actions on collections (`db.collection`, or `db` for all of a database).
    fn add_user(&mut self, name: &str, grants: &[(&str, &[&str])]) {
        let privilege = |(on, actions): &(&str, &[&str])| {
            let (db, collection) = on.split_once('.').unwrap_or((on, ""));
            doc! { "resource": { "db": db, "collection": collection }, "actions": actions.to_vec() }
        };
        let privileges: Vec<Document> = grants.iter().map(privilege).collect();
        let role = doc! { "createRole": name, "privileges": privileges, "roles": Vec::<Bson>::new(), "$db": "admin" };
        self.root.must(&role).unwrap();
        let roles = roles(&[(name, "admin")]);
        self.root.must(&doc! { "createUser": name, "pwd": "s3cret", "roles": roles, "$db": "admin" }).unwrap();
    }

    fn states(&mut self, db: &str) -> Vec<String> {
        let status = self.client("root").must(&doc! { "pleach": "status", "$db": db }).unwrap();
        let rules = status.get_array("rules").unwrap().iter().filter_map(Bson::as_document);
        rules.map(|rule| format!("{} {}", rule.get_str("rule").unwrap(), rule.get_str("state").unwrap())).collect()
    }

    /// The same when what the last change of rules left to do is done.
    fn settled(&mut self, db: &str) -> Vec<(String, Vec<Bson>, Vec<Bson>)> {
        let mut last = self.stored(db);
        until("nothing changes any more", || {
            let before = std::mem::replace(&mut last, self.stored(db));
            before == last
        });
        last
    }

    /// All that is stored, as MongoDB itself tells it, but for what proves that processes live and when.
    fn stored(&mut self, db: &str) -> Vec<(String, Vec<Bson>, Vec<Bson>)> {
        let list = self.root.must(&doc! { "listCollections": 1, "nameOnly": true, "$db": db }).unwrap();
        let mut names: Vec<String> = rows(&list, "firstBatch")
            .iter()
            .filter_map(|row| Some(row.as_document()?.get_str("name").ok()?.to_owned()))
            .filter(|name| !matches!(&**name, "pleach.fences" | "pleach.processes" | "pleach.retries" | "system.views"))
            .collect();
        names.sort();
        let mut all = Vec::new();
        for name in names {
            let find = doc! { "find": &name, "sort": { "_id": 1 }, "batchSize": 10_000, "$db": db };
            let documents = rows(&self.root.must(&find).unwrap(), "firstBatch");
            let indexes = self.root.command(&doc! { "listIndexes": &name, "$db": db }).unwrap().document;
            let indexes = if indexes.contains_key("cursor") { rows(&indexes, "firstBatch") } else { Vec::new() };
            all.push((name, documents, indexes));
        }
        all
    }
}

fn uri(mongod: &Mongod, user: &str) -> String {
    format!("mongodb://{user}:s3cret@{}/?replicaSet=rs&authSource=admin", mongod.address())
}

/// The code of a refusal, of the command or of its first statement; 0 for success.
fn code(reply: &Document) -> i32 {
    if let Ok(errors) = reply.get_array("writeErrors")
        && let Some(error) = errors.first().and_then(Bson::as_document)
    {
        return error.get_i32("code").unwrap();
    }
    reply.get_i32("code").unwrap_or_default()
}

fn verb(name: &str, more: Document) -> Document {
    let mut command = doc! { "pleach": name };
    command.extend(more);
    command.insert("$db", "shop");
    command
}

fn on(db: &str, mut command: Document) -> Document {
    command.insert("$db", db);
    command
}
