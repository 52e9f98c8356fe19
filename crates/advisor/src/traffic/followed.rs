//! Second reads where only commands are seen, not their answers: on one connection a read of one collection, then one of another by `_id`.
//!
//! Whether the ids really came out of the first answer is found out from the data: the finding looks for a relation between the two, and
//! for some pairs whether the first filter finds a document that holds the id.

use super::SecondRead;
use super::described;
use super::operation::Operation;
use document::traffic::describe;
use document::{Doc, Value};
use hashbrown::HashMap;

/// The second read comes so soon, in milliseconds.
const SOON: i64 = 5_000;
/// So many connections are followed at once.
const LINES: usize = 2_000;
/// So many pairs of collections are kept, and so many examples of each.
const PAIRS: usize = 1_000;
const EXAMPLES: usize = 10;
/// Of an `$in` so many ids are kept.
const IDS: usize = 3;
/// A larger filter is no example.
const FILTER_BYTES: usize = 4 << 10;

#[derive(Default)]
pub(super) struct Followed {
    lines: HashMap<String, Line>,
    found: HashMap<(String, String, String), SecondRead>,
}

/// What one connection read last.
#[derive(Default)]
struct Line {
    /// The last read that was no second one: a list, perhaps, whose references are followed one by one.
    first: Option<Read>,
    /// The one after it.
    latest: Option<Read>,
}

struct Read {
    database: String,
    collection: String,
    at: i64,
    filter: Doc<'static>,
    /// The collections that were read by `_id` after it.
    followed: Vec<String>,
}

impl Followed {
    /// Operations come in the order of time.
    pub(super) fn see(&mut self, operation: &Operation<'_>) {
        if operation.is_more || !operation.is_read() || operation.line.is_empty() {
            return;
        }
        let filter =
            operation.with_command(|_, statement| statement.leading_filter().map_or_else(Doc::empty, Doc::into_owned));
        if self.lines.len() >= LINES && !self.lines.contains_key(&operation.line) {
            self.lines.clear();
        }
        let line = self.lines.entry_ref(&*operation.line).or_default();
        let ids = match &*operation.name {
            "find" | "aggregate" => ids(&filter),
            _ => Vec::new(),
        };
        let mut is_second = false;
        for before in [line.latest.as_mut(), line.first.as_mut()].into_iter().flatten() {
            let is_other = before.database == operation.database && before.collection != operation.collection;
            if !ids.is_empty() && is_other && (0..=SOON).contains(&(operation.at - before.at)) {
                is_second = true;
                add(&mut self.found, before, operation, &ids);
            }
        }
        let read = Read {
            database: operation.database.clone(),
            collection: operation.collection.clone(),
            at: operation.at,
            filter: if filter.as_bytes().len() <= FILTER_BYTES { filter } else { Doc::empty() },
            followed: Vec::new(),
        };
        if is_second {
            line.latest = Some(read);
        } else {
            *line = Line { first: Some(read), latest: None };
        }
    }

    pub(super) fn finish(self, source: usize) -> Vec<SecondRead> {
        let mut all: Vec<_> = self.found.into_iter().collect();
        all.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        all.into_iter().map(|(_, read)| SecondRead { source, ..read }).collect()
    }
}

fn add(
    found: &mut HashMap<(String, String, String), SecondRead>,
    before: &mut Read,
    operation: &Operation<'_>,
    ids: &[Value<'static>],
) {
    let key = (operation.database.clone(), before.collection.clone(), operation.collection.clone());
    if found.len() >= PAIRS && !found.contains_key(&key) {
        return;
    }
    let read = found.entry(key).or_insert_with(|| SecondRead {
        database: operation.database.clone(),
        from: before.collection.clone(),
        to: operation.collection.clone(),
        key: "_id".to_owned(),
        fields: Some(Vec::new()),
        ..SecondRead::default()
    });
    read.count += 1;
    if !before.followed.contains(&operation.collection) {
        before.followed.push(operation.collection.clone());
        read.answers += 1;
    }
    let shape = operation
        .with_command(|command, statement| described::shape(&describe(&operation.database, command, statement)));
    // Fields of all such reads; one that takes all of them decides.
    match (&mut read.fields, shape.and_then(|shape| shape.fields)) {
        (Some(known), Some(fields)) => {
            for field in fields.iter().filter(|field| *field != "_id") {
                if !known.contains(field) {
                    known.push(field.clone());
                }
            }
        }
        (known, _) => *known = None,
    }
    if read.pairs.len() < EXAMPLES {
        read.pairs.push((before.filter.clone(), ids.to_vec()));
    }
}

/// The ids that a filter names: `{ _id: … }`, alone or among other conditions.
fn ids(filter: &Doc<'_>) -> Vec<Value<'static>> {
    let is_id =
        |value: &Value<'_>| !matches!(value, Value::Null | Value::Bool(_) | Value::Regex { .. } | Value::Array(_));
    let mut found: Vec<Value<'static>> = Vec::new();
    match filter.get("_id") {
        Some(Value::Document(operators)) => match (operators.get("$in"), operators.get("$eq")) {
            (Some(Value::Array(ids)), _) => {
                found.extend(ids.iter().filter(is_id).take(IDS).map(Value::into_owned));
            }
            (_, Some(id)) => found.push(id.into_owned()),
            _ => {}
        },
        Some(id) => found.push(id.into_owned()),
        None => {}
    }
    found.retain(is_id);
    found
}
