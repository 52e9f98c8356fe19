//! Fixtures: collections on an engine of their own, and what the advisor says about them.

use crate::{Finding, Log, Options, Report, Severity, Unwatched, advise};
use bson::{Document, doc, oid::ObjectId};
use std::io::{BufRead, Cursor};
use std::sync::Arc;
use testing::{World, insert};

/// So many documents are inserted at once.
const BATCH: usize = 1_000;

pub(crate) struct Fixture {
    pub(crate) world: World,
    /// A log of MongoDB with these lines.
    log: Vec<String>,
}

impl Fixture {
    /// On an engine of its own, database `shop`, without rules.
    pub(crate) fn new() -> Fixture {
        Fixture::of(World::new("{}"))
    }

    pub(crate) fn of(world: World) -> Fixture {
        Fixture { world, log: Vec::new() }
    }

    pub(crate) async fn with(self, collection: &str, documents: impl IntoIterator<Item = Document>) -> Fixture {
        let mut documents = documents.into_iter().peekable();
        while documents.peek().is_some() {
            let batch: Vec<Document> = documents.by_ref().take(BATCH).collect();
            self.world.did(insert(self.world.ns(collection), batch)).await;
        }
        self
    }

    /// With these operations in a log, see [`slow`].
    pub(crate) fn logged(mut self, lines: impl IntoIterator<Item = String>) -> Fixture {
        self.log.extend(lines);
        self
    }

    pub(crate) async fn report(&self) -> Report {
        let logs = if self.log.is_empty() { Vec::new() } else { vec![log(self.log.join("\n"))] };
        self.report_with(&Options { logs, ..Options::default() }).await
    }

    pub(crate) async fn report_with(&self, options: &Options) -> Report {
        let context = document::op::Context {
            env: document::Env { now: NOW, ..self.world.context().env },
            ..self.world.context()
        };
        advise(&self.world.front, &context, options, &Unwatched).await.unwrap()
    }

    /// The findings of a symptom.
    pub(crate) async fn found(&self, symptom: &str) -> Vec<Finding> {
        let findings = self.report().await.findings;
        for finding in &findings {
            if let Some(text) = &finding.declaration {
                let checked = patterns::declare::from_yaml("proposed", text);
                assert!(checked.declaration.is_some(), "{text}\n{:?}", checked.findings);
            }
        }
        findings.into_iter().filter(|finding| finding.symptom == symptom).collect()
    }

    /// The only finding of a symptom.
    pub(crate) async fn one(&self, symptom: &str) -> Finding {
        let mut found = self.found(symptom).await;
        assert_eq!(found.len(), 1, "{found:#?}");
        found.remove(0)
    }

    /// Nothing of the symptom that is more than a note.
    pub(crate) async fn assert_none(&self, symptom: &str) {
        let found = self.found(symptom).await;
        assert!(found.iter().all(|finding| finding.severity == Severity::Note), "{found:#?}");
    }
}

/// A log with this text.
pub(crate) fn log(text: String) -> Log {
    let open =
        move || -> std::io::Result<Box<dyn BufRead + Send>> { Ok(Box::new(Cursor::new(text.clone().into_bytes()))) };
    Log { name: "mongod.log".to_owned(), open: Arc::new(open) }
}

/// A line of the log about an operation in `shop`: so many milliseconds after [`NOW`], on a connection, with MongoDB's own figures.
pub(crate) fn slow(at: i64, connection: &str, collection: &str, command: Document, figures: Document) -> String {
    let mut attributes = doc! { "type": "command", "ns": format!("shop.{collection}"), "command": command };
    attributes.extend(figures);
    attributes.extend(doc! { "durationMillis": 120 });
    let line = doc! {
        "t": bson::DateTime::from_millis(NOW + at), "s": "I", "c": "COMMAND", "id": 51803, "ctx": connection,
        "msg": "Slow query", "attr": attributes,
    };
    bson::Bson::Document(line).into_relaxed_extjson().to_string()
}

/// The time of all fixtures: 2026-01-01.
pub(crate) const NOW: i64 = 1_767_225_600_000;
pub(crate) const DAY: i64 = 86_400_000;

/// An ObjectId that was made so many days ago.
pub(crate) fn id_of_age(days: i64, number: u32) -> ObjectId {
    let seconds = u32::try_from((NOW - days * DAY) / 1_000).unwrap();
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&seconds.to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    ObjectId::from_bytes(bytes)
}

pub(crate) fn date(days_ago: i64) -> bson::DateTime {
    bson::DateTime::from_millis(NOW - days_ago * DAY)
}

/// The finding's figures as a plain document.
pub(crate) fn evidence(finding: &Finding) -> Document {
    Document::try_from(&finding.evidence).unwrap_or_else(|_| doc! {})
}
