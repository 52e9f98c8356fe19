//! Clients of an older version, at both doors: they work under the database's name and their number, and see and write documents of
//! their version, whatever is stored (SEMANTICS R19, R34).

mod arrays;
mod names;
mod reads;
mod writes;

use crate::doors::{At, Door};
use bson::{Bson, Document, doc};
use judge::client::Client;

/// Three versions of users; posts have two; notes have none.
fn users() -> Document {
    doc! {
        "users": { "versions": { "field": "v", "migrate": { "background": false }, "steps": [
            { "nest": { "phone": { "into": "phone.number", "with": { "phone.countryCode": "+1" } } } },
            [
                { "rename": { "mail": "email" } },
                { "split": { "name": { "into": ["first", "last"], "on": " " } } },
                { "wrap": ["nick"] },
                { "default": { "active": true } },
            ],
        ] } },
        "posts": { "versions": { "field": "v", "steps": [{ "rename": { "text": "body" } }] } },
    }
}

/// A client of a version.
struct Older<'d> {
    door: &'d Door,
    client: Client,
    db: String,
}

impl<'d> Older<'d> {
    fn of(door: &'d Door, version: &str) -> Older<'d> {
        Older { door, client: door.client(), db: format!("{}@{version}", door.db) }
    }

    fn ask(&mut self, mut command: Document) -> Document {
        command.insert("$db", &self.db);
        self.client.command(&command).unwrap().document
    }

    fn must(&mut self, command: Document) -> Document {
        let reply = self.ask(command.clone());
        let is_fine = reply.get_f64("ok").ok() == Some(1.0) && !reply.contains_key("writeErrors");
        assert!(is_fine, "{command}: {reply}");
        reply
    }

    fn rows(&mut self, command: Document) -> Vec<Document> {
        let reply = self.must(command);
        let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        batch.into_iter().map(|row| sorted(row.as_document().unwrap().clone())).collect()
    }

    fn find(&mut self, filter: Document) -> Vec<Document> {
        self.rows(doc! { "find": "users", "filter": filter, "sort": { "_id": 1 } })
    }

    fn update(&mut self, filter: Document, update: impl Into<Bson>) -> Document {
        self.must(doc! { "update": "users", "updates": [{ "q": filter, "u": update.into() }] })
    }

    /// What the database itself has.
    fn newest(&self, filter: Document) -> Vec<Document> {
        let rows = self.door.rows(doc! { "find": "users", "filter": filter, "sort": { "_id": 1 } });
        rows.into_iter().map(sorted).collect()
    }
}

fn sorted(doc: Document) -> Document {
    let mut fields: Vec<(String, Bson)> = doc.into_iter().collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.into_iter().collect()
}

/// A database with documents that are stored in all versions.
fn filled(at: At, name: &str) -> Door {
    let door = at.door(name);
    let mut client = door.client();
    door.insert(
        &mut client,
        "users",
        vec![
            doc! { "_id": 1, "name": "Ada L", "phone": "1", "mail": "a@x", "nick": "a" },
            doc! { "_id": 2, "name": "Bob M", "phone": { "number": "2", "countryCode": "+44" }, "mail": "b@x", "nick": "b", "v": 2 },
        ],
    );
    door.apply(users());
    door.insert(
        &mut client,
        "users",
        vec![
            doc! { "_id": 3, "first": "Cyd", "last": "N", "phone": { "number": "3", "countryCode": "+49" }, "email": "c@x", "nick": ["c", "d"], "active": false },
        ],
    );
    door
}

fn ids(rows: &[Document]) -> Vec<i32> {
    rows.iter().map(|row| row.get_i32("_id").unwrap()).collect()
}
