//! One connection's eye on its commands: [`Watch::begin`] before a command is answered, [`Watch::end`] after.

use super::Workload;
use super::ids::Asked;
use super::namespaces::{Activity, Kind};
use super::outcome::Outcome;
use super::second_reads::Answers;
use super::shapes::Shape;
use crate::client::Client;
use crate::commands;
use crate::state::Server;
use document::backend::Class;
use document::traffic::{Command, Statement, describe, fingerprint};
use document::{Doc, Text, Value};
use std::sync::Arc;
use std::time::Instant;
use wire::Header;

/// So many shapes a connection knows without looking into the common table.
const KNOWN: usize = 8;

/// What belongs to a connection alone.
#[derive(Default)]
pub(crate) struct Watch {
    known: [Option<(u64, Arc<Shape>)>; KNOWN],
    /// The place that the next unknown shape takes.
    next: usize,
    answers: Answers,
}

/// A command that is being answered.
pub(crate) struct Seen<'f> {
    pub(crate) began: Instant,
    pub(crate) class: Class,
    pub(crate) kind: Kind,
    pub(crate) db: Text<'f>,
    pub(crate) command: Command<'f>,
    pub(crate) statement: Statement<'f>,
    /// The length of the request.
    pub(crate) bytes: usize,
    /// Of a `getMore` the command that opened the cursor, while a profiler watches.
    pub(crate) original: Option<Doc<'static>>,
    counted: Counted,
}

/// Where it is counted.
enum Counted {
    Shape(Arc<Shape>),
    More(Arc<Shape>),
    Activity(Arc<Activity>),
    Nowhere,
}

impl Watch {
    /// Looks at a command. Returns `None` for those that are about no collection, and those of Pleach's own tools.
    pub(crate) fn begin<'f>(
        &mut self,
        server: &Server,
        client: &Client,
        header: &Header,
        frame: &'f [u8],
    ) -> Option<Seen<'f>> {
        let workload = &server.workload;
        if !workload.is_on || client.is_tool() {
            return None;
        }
        let began = Instant::now();
        let (_, body) = wire::message::peek(header, frame)?;
        let body = Doc::trusted(body);
        let (name, target) = body.iter().next()?;
        let class = commands::class(name.as_str());
        let kind = Kind::of(class)?;
        let Some(Value::String(db)) = body.get("$db") else { return None };
        let collection = match (&target, class) {
            (Value::String(collection), _) => collection.clone(),
            (_, Class::GetMore) => match body.get("collection") {
                Some(Value::String(collection)) => collection,
                _ => return None,
            },
            _ => return None,
        };
        client.examined.clear();
        let statement = match kind {
            Kind::Insert | Kind::Update | Kind::Remove => first_statement(header, frame),
            _ => None,
        };
        let counts = !is_internal(db.as_str(), collection.as_str());
        let command = Command { name, collection, body, statement };
        let statement = Statement::of(&command);
        let counted = match (counts, kind) {
            (false, _) => Counted::Nowhere,
            (true, Kind::GetMore) => match target {
                Value::Int64(id) => workload.of_cursor(id).map_or(Counted::Nowhere, Counted::More),
                _ => Counted::Nowhere,
            },
            (true, Kind::Command) => {
                Counted::Activity(workload.namespaces.of(db.as_str(), command.collection.as_str()))
            }
            (true, _) => {
                let now = server.started.elapsed().as_secs();
                Counted::Shape(self.shape(workload, db.as_str(), &command, &statement, now))
            }
        };
        Some(Seen { began, class, kind, db, command, statement, bytes: frame.len(), original: None, counted })
    }

    fn shape(
        &mut self,
        workload: &Workload,
        db: &str,
        command: &Command<'_>,
        statement: &Statement<'_>,
        now: u64,
    ) -> Arc<Shape> {
        let hash = fingerprint(db, command, statement);
        let known = self.known.iter().flatten().find(|(known, shape)| *known == hash && !shape.is_retired());
        if let Some((_, shape)) = known {
            return shape.clone();
        }
        let shape = workload.shapes.entry(hash, now, || {
            let activity = workload.namespaces.of(db, command.collection.as_str());
            let namespace = format!("{db}.{}", command.collection);
            Shape::new(describe(db, command, statement), &namespace, activity)
        });
        if let Some(place) = self.known.get_mut(self.next % KNOWN) {
            *place = Some((hash, shape.clone()));
        }
        self.next = (self.next + 1) % KNOWN;
        shape
    }

    /// Counts a command that was answered with these bytes.
    pub(crate) fn end(&mut self, server: &Server, client: &Client, seen: Option<Seen<'_>>, reply: &[u8]) {
        let Some(mut seen) = seen else { return };
        let took = seen.began.elapsed();
        let mut outcome = Outcome::of(reply, seen.kind.is_write());
        outcome.documents = client.examined.documents();
        outcome.keys = client.examined.keys();
        let workload = &server.workload;
        let now = server.started.elapsed().as_secs();
        let is_watched = server.profiler.is_watching();
        if let (true, Kind::GetMore, Some((_, Value::Int64(id)))) =
            (is_watched, seen.kind, seen.command.body.iter().next())
        {
            seen.original = workload.opened_by(id);
        }
        match &seen.counted {
            Counted::Shape(shape) | Counted::More(shape) => {
                let is_more = seen.kind == Kind::GetMore;
                shape.add(&outcome, took, seen.bytes, now, is_more);
                shape.activity.add(seen.kind, took);
                match (outcome.cursor, seen.kind, seen.command.body.iter().next()) {
                    (0, Kind::GetMore, Some((_, Value::Int64(id)))) => workload.cursor_ended(id),
                    (0, ..) | (_, Kind::GetMore, _) => {}
                    (id, ..) => {
                        let command = is_watched.then(|| seen.command.body.borrow().into_owned());
                        workload.cursor_opened(id, shape, command);
                    }
                }
                if seen.kind.is_read() && !is_more && outcome.ok {
                    let asked = match seen.class {
                        Class::Find | Class::Aggregate => seen.statement.leading_filter(),
                        _ => None,
                    };
                    let asked = asked.as_ref().and_then(Asked::of);
                    self.answers.read(workload, shape, asked, &outcome, now);
                }
            }
            Counted::Activity(activity) => activity.add(seen.kind, took),
            Counted::Nowhere => {}
        }
        if seen.class == Class::Drop && outcome.ok {
            workload.namespaces.dropped(seen.db.as_str(), Some(seen.command.collection.as_str()));
        }
        server.profiler.ended(client, &seen, &outcome, took);
    }
}

/// The server's own collections, and those of rules.
fn is_internal(db: &str, collection: &str) -> bool {
    matches!(db, "admin" | "config" | "local") || collection.starts_with("system.") || collection.starts_with("pleach.")
}

/// The first statement of a write whose statements travel beside its body.
fn first_statement<'f>(header: &Header, frame: &'f [u8]) -> Option<Doc<'f>> {
    let (name, documents) = wire::message::peek_sequence(header, frame)?;
    // Of an insert they are documents, which have no shape.
    (name != "documents" && documents.len() > 4).then(|| Doc::trusted(documents))
}
