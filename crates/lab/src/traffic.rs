//! What clients did, as the server of the data has it: the counters of a running Pleach, or the profiler's entries.

use crate::line::{self, Line, Rows};
use bson::{Bson, Document, doc};
use document::traffic::{Command, Statement, describe};
use document::{Doc, Text, Value};
use std::collections::BTreeMap;

/// So many of the profiler's entries are looked at, the newest first.
const ENTRIES: i64 = 10_000;

/// Command shapes and second reads, in the words of `serverStatus.pleach.workload`.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Where it comes from.
    pub source: &'static str,
    pub shapes: Vec<Document>,
    pub second_reads: Vec<Document>,
}

/// Empty if no source has anything of that database, or this user may not read it.
pub async fn of(line: &Line, db: &str) -> Traffic {
    let counted = of_counters(line, db).await;
    if counted.shapes.is_empty() { of_profile(line, db).await } else { counted }
}

async fn of_counters(line: &Line, db: &str) -> Traffic {
    let none = Traffic::default();
    let Ok(status) = line::run(line, "admin", doc! { "serverStatus": 1 }).await else { return none };
    let workload = status.get_document("pleach").and_then(|pleach| pleach.get_document("workload"));
    let Ok(workload) = workload else { return none };
    let list = |name: &str, namespace: &str| {
        let all = workload.get_array(name).into_iter().flatten().filter_map(Bson::as_document);
        let of_database = |doc: &&Document| {
            let ns = doc.get_str(namespace).unwrap_or_default();
            ns.strip_prefix(db).is_some_and(|rest| rest.starts_with('.'))
        };
        all.filter(of_database).cloned().collect()
    };
    Traffic {
        source: "serverStatus.pleach.workload",
        shapes: list("shapes", "ns"),
        second_reads: list("secondReads", "from"),
    }
}

async fn of_profile(line: &Line, db: &str) -> Traffic {
    let newest = doc! { "find": "system.profile", "sort": { "$natural": -1 }, "limit": ENTRIES };
    let mut shapes: BTreeMap<String, Document> = BTreeMap::new();
    let Ok(mut rows) = Rows::open(line, db, newest).await else { return Traffic::default() };
    while let Ok(Some(entry)) = rows.next().await {
        let Some(shape) = shape(&entry, db) else { continue };
        let returned = entry.get("nreturned").map_or(0, |number| number.as_i64_exact().unwrap_or_default());
        let known = shapes.entry(shape.to_string()).or_insert(shape);
        for (name, more) in [("count", 1), ("returned", returned)] {
            let sum = known.get_i64(name).unwrap_or_default() + more;
            known.insert(name, sum);
        }
    }
    Traffic { source: "system.profile", shapes: shapes.into_values().collect(), second_reads: Vec::new() }
}

/// The shape of a profiler's entry. Entries about writes have the statement, not the command.
fn shape(entry: &Doc<'_>, db: &str) -> Option<Document> {
    let text = |name: &str| entry.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let ns = text("ns")?;
    let collection = ns.strip_prefix(db)?.strip_prefix('.')?;
    let Some(Value::Document(body)) = entry.get("command") else { return None };
    let name = match (&*text("op")?, body.iter().next()) {
        ("query" | "command", Some((name, _))) => name.as_str().to_owned(),
        ("insert", _) => "insert".to_owned(),
        ("update", _) => "update".to_owned(),
        ("remove", _) => "delete".to_owned(),
        _ => return None,
    };
    if collection.starts_with("system.") || collection.starts_with("pleach.") {
        return None;
    }
    // A statement has no name: its fields are looked at from the second one on.
    let body = match &*name {
        "update" | "delete" => {
            let mut whole = doc! { &name: collection };
            whole.extend(Document::try_from(&body).ok()?);
            Doc::from(whole)
        }
        _ => body.into_owned(),
    };
    let command = Command {
        name: Text::from(name.clone()),
        collection: Text::from(collection.to_owned()),
        body,
        statement: None,
    };
    Document::try_from(&describe(db, &command, &Statement::of(&command))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_of_the_profiler_are_shapes() {
        let shown = |entry: Document| shape(&Doc::from(entry), "shop").map(|shape| shape.to_string());
        let find = doc! { "op": "query", "ns": "shop.orders", "command": { "find": "orders", "filter": { "a": 1 } } };
        assert!(shown(find).unwrap().contains("a $eq"));
        let update =
            doc! { "op": "update", "ns": "shop.orders", "command": { "q": { "_id": 1 }, "u": { "$set": { "b": 2 } } } };
        let said = shown(update).unwrap();
        assert!(said.contains("_id $eq") && said.contains("b $set") && said.contains("\"update\""), "{said}");
        for other in ["elsewhere.orders", "shop.system.views", "shop.pleach.catalog"] {
            assert_eq!(shown(doc! { "op": "query", "ns": other, "command": { "find": "x" } }), None);
        }
    }
}
