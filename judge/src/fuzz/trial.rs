//! One trial: a collection and commands on it, played on both servers and compared.

use anyhow::Result;
use bson::{Bson, Document, doc};
use std::collections::{BTreeSet, HashMap};

use crate::client::Client;
use crate::compare::compare;
use crate::json;
use crate::normal::Normal;
use crate::script::{Case, Options};

/// A collection `c` and what is sent.
#[derive(Clone)]
pub(super) struct Trial {
    pub(super) documents: Vec<Document>,
    pub(super) indexes: Vec<Document>,
    pub(super) run: Vec<Document>,
}

impl Trial {
    pub(super) fn writes(&self) -> bool {
        self.run
            .iter()
            .any(|command| ["update", "delete", "findAndModify"].iter().any(|name| command.contains_key(*name)))
    }

    /// As a case of a compat script.
    pub(super) fn render(&self) -> String {
        let mut case = doc! { "name": "fuzz" };
        case.insert("setup", self.documents.clone());
        if !self.indexes.is_empty() {
            case.insert("indexes", self.indexes.clone());
        }
        let options = self.options();
        if options.unordered {
            case.insert("unordered", true);
        }
        if options.sets {
            case.insert("sets", true);
        }
        case.insert("run", self.run.clone());
        json::pretty(&case)
    }

    /// The operators it uses: two small trials with the same ones are probably one difference.
    pub(super) fn signature(&self) -> String {
        let mut names = BTreeSet::new();
        self.run.iter().for_each(|command| operators(command, &mut names));
        names.into_iter().collect::<Vec<_>>().join(" ")
    }

    fn options(&self) -> Options {
        let text = self.signature();
        let any = |names: &[&str]| names.iter().any(|name| text.split(' ').any(|part| part == *name));
        Options {
            unordered: any(&["$group", "$sortByCount", "distinct"]),
            sets: any(&["$addToSet", "$setUnion", "$setIntersection", "$setDifference", "$lookup"]),
            ..Options::default()
        }
    }
}

fn operators(document: &Document, names: &mut BTreeSet<String>) {
    for (name, value) in document {
        if name.starts_with('$')
            || ["find", "aggregate", "update", "distinct", "count", "findAndModify", "upsert", "multi"]
                .contains(&name.as_str())
        {
            names.insert(name.clone());
        }
        operators_of(value, names);
    }
}

fn operators_of(value: &Bson, names: &mut BTreeSet<String>) {
    match value {
        Bson::Document(document) => operators(document, names),
        Bson::Array(items) => items.iter().for_each(|item| operators_of(item, names)),
        _ => {}
    }
}

/// The two servers.
pub(super) struct Pair<'a> {
    ours: Side<'a>,
    theirs: Side<'a>,
    strict: bool,
    /// How many trials the judge answered with an error, or with nothing.
    pub(super) refused: usize,
    pub(super) empty: usize,
}

struct Side<'a> {
    client: &'a mut Client,
    database: String,
    /// What the collection holds, if it is known.
    filled: Option<(Vec<Document>, Vec<Document>)>,
}

impl<'a> Pair<'a> {
    pub(super) fn new(server: &'a mut Client, judge: &'a mut Client, strict: bool) -> Result<Self> {
        // Two names, so that a server can also be compared with itself.
        let database = |side: &str| format!("fuzz_{side}_{:x}", std::process::id());
        let mut ours = Side { client: server, database: database("ours"), filled: None };
        let mut theirs = Side { client: judge, database: database("theirs"), filled: None };
        ours.drop()?;
        theirs.drop()?;
        Ok(Self { ours, theirs, strict, refused: 0, empty: 0 })
    }

    pub(super) fn clean_up(&mut self) -> Result<()> {
        self.ours.drop()?;
        self.theirs.drop()
    }

    /// Plays a trial on both; what differs, if anything does.
    pub(super) fn difference(&mut self, trial: &Trial) -> Result<Option<String>> {
        // Indexes that such documents cannot have are no trial.
        if !self.theirs.fill(trial)? {
            return Ok(None);
        }
        if !self.ours.fill(trial)? {
            return Ok(Some("ours: set-up failed".to_owned()));
        }
        let case = Case {
            name: String::new(),
            setup: vec![("c".to_owned(), trial.documents.clone())],
            indexes: Vec::new(),
            run: trial.run.clone(),
            options: trial.options(),
            digest: String::new(),
        };
        let theirs = self.theirs.play(trial, &case);
        let ours = self.ours.play(trial, &case);
        self.refused += usize::from(theirs.first().is_some_and(fails));
        self.empty += usize::from(theirs.first().is_some_and(is_empty));
        let mut report = String::new();
        for (theirs, ours) in theirs.iter().zip(&ours) {
            // A real server's messages may cut characters apart: such a reply cannot be read.
            if theirs.get_str("@lost").is_ok_and(|why| why.contains("Invalid UTF-8")) {
                continue;
            }
            if !self.strict && fails(theirs) && fails(ours) {
                // After an error the rest may differ in what a batch had done before it.
                continue;
            }
            for difference in compare(theirs, ours, false).iter().take(4) {
                report += &format!(
                    "  at {}\n    theirs: {}\n    ours:   {}\n",
                    difference.path, difference.theirs, difference.ours
                );
            }
            if !report.is_empty() {
                for (who, reply) in [("theirs", theirs), ("ours", ours)] {
                    if let Some(text) = message(reply) {
                        report += &format!("  {who} said: {text}\n");
                    }
                }
                break;
            }
        }
        Ok((!report.is_empty()).then_some(report))
    }
}

impl Side<'_> {
    fn drop(&mut self) -> Result<()> {
        self.filled = None;
        self.client.must(&doc! { "dropDatabase": 1, "$db": &self.database })?;
        Ok(())
    }

    /// False if the collection cannot be made.
    fn fill(&mut self, trial: &Trial) -> Result<bool> {
        let wanted = (trial.documents.clone(), trial.indexes.clone());
        let held = self.filled.take();
        if held.as_ref() == Some(&wanted) {
            self.filled = held;
            return Ok(true);
        }
        let concern = doc! { "w": 1 };
        if held.is_none_or(|(_, indexes)| indexes != wanted.1) {
            self.client.command(&doc! { "drop": "c", "$db": &self.database, "writeConcern": concern.clone() })?;
            self.client.must(&doc! { "create": "c", "$db": &self.database, "writeConcern": concern.clone() })?;
            if !wanted.1.is_empty() {
                self.client.must(&doc! { "createIndexes": "c", "indexes": wanted.1.clone(), "$db": &self.database, "writeConcern": concern.clone() })?;
            }
        } else {
            self.client.must(&doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }], "$db": &self.database, "writeConcern": concern.clone() })?;
        }
        if !wanted.0.is_empty() {
            let insert =
                doc! { "insert": "c", "documents": wanted.0.clone(), "$db": &self.database, "writeConcern": concern };
            if self.client.must(&insert).is_err() {
                return Ok(false);
            }
        }
        self.filled = Some(wanted);
        Ok(true)
    }

    fn play(&mut self, trial: &Trial, case: &Case) -> Vec<Document> {
        if trial.writes() {
            // The indexes are still known, the documents are not.
            self.filled = self.filled.take().map(|(_, indexes)| (vec![doc! { "@": "changed" }], indexes));
        }
        let normal = Normal::new(case, &self.database);
        let mut replies = Vec::new();
        for command in &trial.run {
            let mut command = command.clone();
            command.insert("$db", &self.database);
            let reply = self.client.command(&command).map(|reply| reply.document).unwrap_or_else(|error| {
                // The next command reports it if this fails too.
                let _ = self.client.reconnect();
                doc! { "@lost": format!("{error:#}") }
            });
            replies.push(normal.reply(reply, &HashMap::new()));
        }
        replies
    }
}

fn fails(reply: &Document) -> bool {
    reply.contains_key("code") || reply.contains_key("writeErrors")
}

fn is_empty(reply: &Document) -> bool {
    let batch = reply.get_document("cursor").and_then(|cursor| cursor.get_array("firstBatch"));
    let none = batch.is_ok_and(Vec::is_empty) || reply.get_array("values").is_ok_and(Vec::is_empty);
    none || reply.get_i32("n").is_ok_and(|n| n == 0)
}

fn message(reply: &Document) -> Option<&str> {
    let write = || reply.get_array("writeErrors").ok()?.first()?.as_document()?.get_str("errmsg").ok();
    reply.get_str("errmsg").ok().or_else(write)
}
