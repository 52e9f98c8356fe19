//! Runs one case on one server: set-up, placeholders, commands, replies made comparable.

use anyhow::{Context, Result};
use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::client::Client;
use crate::normal::Normal;
use crate::script::Case;

/// A server with a database of its own, for one case or for all cases of a shared script.
pub struct Run<'a> {
    client: &'a mut Client,
    database: String,
    sessions: HashMap<String, bson::Uuid>,
    cursor: i64,
}

impl<'a> Run<'a> {
    pub fn new(client: &'a mut Client) -> Self {
        Self { client, database: fresh_name(), sessions: HashMap::new(), cursor: 0 }
    }

    /// Inserts the documents and creates the indexes of a case.
    pub fn set_up(&mut self, case: &Case) -> Result<()> {
        for (collection, documents) in &case.setup {
            let command = if documents.is_empty() {
                doc! { "create": collection, "$db": &self.database, "writeConcern": quick() }
            } else {
                doc! { "insert": collection, "documents": documents.clone(), "$db": &self.database, "writeConcern": quick() }
            };
            self.client.must(&command).context("set-up")?;
        }
        for (collection, indexes) in &case.indexes {
            let command = doc! { "createIndexes": collection, "indexes": indexes.clone(), "$db": &self.database, "writeConcern": quick() };
            self.client.must(&command).context("set-up")?;
        }
        Ok(())
    }

    /// Goes on with another database.
    pub fn start_afresh(&mut self) {
        self.database = fresh_name();
        self.sessions.clear();
    }

    /// Empties the collection of a plain case and fills it for the next one.
    pub fn refill(&mut self, case: &Case) -> Result<()> {
        let all = doc! { "q": {}, "limit": 0 };
        for (collection, documents) in &case.setup {
            let empty =
                doc! { "delete": collection, "deletes": [&all], "$db": &self.database, "writeConcern": quick() };
            self.client.must(&empty).context("set-up")?;
            if !documents.is_empty() {
                let fill = doc! {
                    "insert": collection, "documents": documents.clone(), "$db": &self.database, "writeConcern": quick(),
                };
                self.client.must(&fill).context("set-up")?;
            }
        }
        Ok(())
    }

    /// Sends the commands of a case. A reply that cannot be had stands as `{ "@lost": why }`.
    pub fn replies(&mut self, case: &Case) -> Vec<Document> {
        let database = self.database.clone();
        let normal = Normal::new(case, &database);
        let mut replies = Vec::new();
        for command in &case.run {
            let mut command = self.fill(command);
            if !command.contains_key("$db") {
                command.insert("$db", &self.database);
            }
            let reply = match self.client.command(&command) {
                Ok(reply) => reply.document,
                Err(error) => {
                    // The next command reports it if this fails too.
                    let _ = self.client.reconnect();
                    doc! { "@lost": format!("{error:#}") }
                }
            };
            if let Some(id) = reply.get_document("cursor").ok().and_then(|cursor| cursor.get_i64("id").ok()) {
                self.cursor = id;
            }
            replies.push(normal.reply(reply, &self.sessions));
        }
        replies
    }

    /// Ends what the case may have left open, and drops its database.
    pub fn tear_down(&mut self) -> Result<()> {
        for session in self.sessions.values() {
            let kill = doc! { "killSessions": [{ "id": *session }], "$db": "admin" };
            self.client.command(&kill)?;
        }
        self.client.command(&doc! { "dropDatabase": 1, "$db": &self.database, "writeConcern": quick() })?;
        Ok(())
    }

    fn fill(&mut self, command: &Document) -> Document {
        command.iter().map(|(key, value)| (key.clone(), self.fill_value(value))).collect()
    }

    fn fill_value(&mut self, value: &Bson) -> Bson {
        match value {
            Bson::Document(document) => self.fill(document).into(),
            Bson::Array(items) => items.iter().map(|item| self.fill_value(item)).collect::<Vec<_>>().into(),
            Bson::String(text) if text == "@cursor" => self.cursor.into(),
            Bson::String(text) if text == "@db" || text.starts_with("@db.") => {
                text.replacen("@db", &self.database, 1).into()
            }
            Bson::String(text) => match text.split_once(':') {
                Some(("@session", name)) => {
                    let id = *self.sessions.entry(name.to_owned()).or_default();
                    let id = Binary { subtype: BinarySubtype::Uuid, bytes: id.bytes().to_vec() };
                    doc! { "id": id }.into()
                }
                Some(("@deep", levels)) => {
                    (0..levels.parse().unwrap_or(0)).fold(Bson::Int32(1), |inner, _| doc! { "a": inner }.into())
                }
                Some(("@text", length)) => "x".repeat(length.parse().unwrap_or(0)).into(),
                _ => value.clone(),
            },
            other => other.clone(),
        }
    }
}

/// What a case only prepares need not wait for the disk.
fn quick() -> Document {
    doc! { "w": 1 }
}

/// A database name that nobody else uses at the same time.
fn fresh_name() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("compat_{:x}_{:x}_{number}", std::process::id(), since.as_micros())
}
