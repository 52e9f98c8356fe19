//! Two transactions, interleaved statement by statement in every order, on a server and on the judge: the same conflicts must
//! appear at the same statements, with the same labels, and leave the same documents.

use anyhow::{Context, Result};
use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};

use crate::client::Client;
use crate::json;
use crate::random::Random;

const DB: &str = "judge_interleave";

/// One statement of a transaction, as a command without its session.
type Statement = Document;

pub struct Outcome {
    pub runs: usize,
    /// The first difference, as a readable schedule.
    pub difference: Option<String>,
}

/// Statements that touch few documents, so that transactions meet.
fn statements() -> Vec<Statement> {
    let update = |id: i32, update: Document| doc! { "update": "c", "updates": [{ "q": { "_id": id }, "u": update }] };
    vec![
        update(1, doc! { "$inc": { "n": 1 } }),
        update(2, doc! { "$inc": { "n": 1 } }),
        update(1, doc! { "$set": { "n": 1 } }),
        update(2, doc! { "$set": { "u": 1 } }),
        update(9, doc! { "$set": { "n": 1 } }),
        doc! { "update": "c", "updates": [{ "q": { "n": { "$gte": 1 } }, "u": { "$inc": { "n": 10 } }, "multi": true }] },
        doc! { "update": "c", "updates": [{ "q": { "_id": 3 }, "u": { "$set": { "n": 7 } }, "upsert": true }] },
        doc! { "insert": "c", "documents": [{ "_id": 3, "u": 3 }] },
        doc! { "insert": "c", "documents": [{ "_id": 4, "u": 4 }] },
        doc! { "insert": "c", "documents": [{ "_id": 5, "u": 4 }] },
        doc! { "insert": "c", "documents": [{ "_id": 1 }] },
        doc! { "delete": "c", "deletes": [{ "q": { "_id": 1 }, "limit": 1 }] },
        doc! { "delete": "c", "deletes": [{ "q": { "n": { "$lt": 5 } }, "limit": 0 }] },
        doc! { "find": "c", "filter": {}, "sort": { "_id": 1 } },
        doc! { "find": "c", "filter": { "_id": 1 } },
        doc! { "findAndModify": "c", "query": { "_id": 2 }, "update": { "$inc": { "n": 5 } }, "new": true },
        doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": null, "n": { "$sum": "$n" } } }], "cursor": {} },
    ]
}

/// Random pairs of transactions, every order of their statements, until `pairs` are done or one differs.
pub fn run(server: &str, judge: &str, pairs: usize, seed: u64) -> Result<Outcome> {
    let mut random = Random::new(seed);
    let statements = statements();
    let mut ours = Side::connect(server)?;
    let mut theirs = Side::connect(judge)?;
    let mut runs = 0;
    for _ in 0..pairs {
        let programs = [program(&mut random, &statements), program(&mut random, &statements)];
        for schedule in schedules(programs[0].len(), programs[1].len()) {
            let expected = theirs.play(&programs, &schedule).context("on the judge")?;
            let seen = ours.play(&programs, &schedule).context("on the server")?;
            runs += 1;
            if expected != seen {
                return Ok(Outcome { runs, difference: Some(describe(&programs, &schedule, &expected, &seen)) });
            }
        }
    }
    Ok(Outcome { runs, difference: None })
}

/// Two or three statements and an end.
fn program(random: &mut Random, statements: &[Statement]) -> Vec<Statement> {
    let mut program: Vec<Statement> =
        (0..2 + random.below(2)).filter_map(|_| random.pick(statements).cloned()).collect();
    let end = if random.one_in(5) { "abortTransaction" } else { "commitTransaction" };
    program.push(doc! { end: 1 });
    program
}

/// Every way to merge two sequences: false is the first's turn.
fn schedules(first: usize, second: usize) -> Vec<Vec<bool>> {
    if first == 0 || second == 0 {
        return vec![vec![first == 0; first + second]];
    }
    let extend = |turn: bool, rest: Vec<Vec<bool>>| rest.into_iter().map(move |tail| [vec![turn], tail].concat());
    extend(false, schedules(first - 1, second)).chain(extend(true, schedules(first, second - 1))).collect()
}

struct Side {
    connections: [Client; 2],
    number: i64,
    sessions: [Document; 2],
}

impl Side {
    fn connect(address: &str) -> Result<Side> {
        let mut first = Client::connect(address)?;
        first.must(&doc! { "dropDatabase": 1, "$db": DB })?;
        first.must(&doc! { "createIndexes": "c", "indexes": [{ "key": { "u": 1 }, "name": "u", "unique": true, "sparse": true }], "$db": DB })?;
        let second = first.another()?;
        let session =
            || doc! { "id": Binary { subtype: BinarySubtype::Uuid, bytes: bson::Uuid::new().bytes().to_vec() } };
        Ok(Side { connections: [first, second], number: 0, sessions: [session(), session()] })
    }

    /// What each statement answered, in order, and what is stored at the end.
    fn play(&mut self, programs: &[Vec<Statement>; 2], schedule: &[bool]) -> Result<Vec<String>> {
        let [first, _] = &mut self.connections;
        first.must(&doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }], "$db": DB })?;
        first.must(&doc! { "insert": "c", "documents": [{ "_id": 1, "n": 1, "u": 1 }, { "_id": 2, "n": 2, "u": 2 }], "$db": DB })?;
        self.number += 1;
        let mut positions = [0; 2];
        let mut seen = Vec::new();
        for turn in schedule {
            let who = usize::from(*turn);
            let position = positions.get(who).copied().unwrap_or_default();
            let Some(statement) = programs.get(who).and_then(|program| program.get(position)) else { continue };
            if let Some(place) = positions.get_mut(who) {
                *place += 1;
            }
            let mut command = statement.clone();
            command.insert("lsid", self.sessions.get(who).cloned().unwrap_or_default());
            command.insert("txnNumber", self.number);
            command.insert("autocommit", false);
            if position == 0 {
                command.insert("startTransaction", true);
                command.insert("readConcern", doc! { "level": "snapshot" });
            }
            let ends = command.contains_key("commitTransaction") || command.contains_key("abortTransaction");
            command.insert("$db", if ends { "admin" } else { DB });
            let connection = self.connections.get_mut(who).context("two connections")?;
            seen.push(essence(&connection.command(&command)?.document));
        }
        // Whatever is still open goes, so that the next run starts clean.
        for (connection, session) in self.connections.iter_mut().zip(&self.sessions) {
            connection.command(&doc! { "abortTransaction": 1, "lsid": session.clone(), "txnNumber": self.number, "autocommit": false, "$db": "admin" })?;
        }
        let [first, _] = &mut self.connections;
        seen.push(essence(&first.must(&doc! { "find": "c", "sort": { "_id": 1 }, "$db": DB })?));
        Ok(seen)
    }
}

/// What must agree: success and its counts and rows, or code and labels.
fn essence(reply: &Document) -> String {
    let mut kept = Document::new();
    for name in ["ok", "code", "codeName", "errorLabels", "n", "nModified", "upserted", "value", "lastErrorObject"] {
        if let Some(value) = reply.get(name) {
            kept.insert(name, value.clone());
        }
    }
    if let Some(Ok(first)) = reply.get_document("cursor").ok().map(|cursor| cursor.get_array("firstBatch")) {
        kept.insert("rows", first.clone());
    }
    if let Ok(errors) = reply.get_array("writeErrors") {
        let codes: Vec<Bson> = errors.iter().filter_map(|error| error.as_document()?.get("code").cloned()).collect();
        kept.insert("writeErrors", codes);
    }
    json::line_of(&kept)
}

fn describe(programs: &[Vec<Statement>; 2], schedule: &[bool], expected: &[String], seen: &[String]) -> String {
    let mut positions = [0; 2];
    let mut text = String::new();
    for ((turn, theirs), ours) in schedule.iter().zip(expected).zip(seen) {
        let who = usize::from(*turn);
        let statement = positions.get_mut(who).and_then(|position| {
            *position += 1;
            programs.get(who)?.get(*position - 1)
        });
        let statement = statement.map(json::line_of).unwrap_or_default();
        text.push_str(&format!("{}: {statement}\n", if *turn { "B" } else { "A" }));
        match theirs == ours {
            true => text.push_str(&format!("     both   {theirs}\n")),
            false => text.push_str(&format!("  !  judge  {theirs}\n     server {ours}\n")),
        }
    }
    if let (Some(theirs), Some(ours)) = (expected.last(), seen.last())
        && theirs != ours
    {
        text.push_str(&format!("at the end\n  !  judge  {theirs}\n     server {ours}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_orders_are_there_once() {
        let all = schedules(3, 2);
        assert_eq!(all.len(), 10);
        assert!(all.iter().all(|schedule| schedule.iter().filter(|turn| **turn).count() == 2));
        let unique: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(unique.len(), 10);
    }
}
