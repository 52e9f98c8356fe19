//! Key order: values of all types, ordered by the judge, for tests that replay its verdicts without it.
//!
//! The judge compares every pair with `$cmp`. Since its answers turn out to be a total order with ties (this is
//! checked, pair by pair), they are written as a list of classes, ascending; values in one class are equal.

use std::cmp::Ordering;
use std::fmt::Write;

use anyhow::{Context, Result, ensure};
use bson::{Bson, Document, doc};

use crate::client::Client;
use crate::json;

/// How many documents one aggregate compares with all values.
const BATCH: usize = 50;

/// The judge's order of the given values: classes of equal values, ascending.
pub fn classes(judge: &mut Client, values: &[Bson]) -> Result<Vec<Vec<Bson>>> {
    let matrix = matrix(judge, values)?;
    // Rank of a value: how many values are less.
    let ranks: Vec<usize> = matrix.iter().map(|row| row.iter().filter(|answer| **answer == 1).count()).collect();
    for (row, rank) in matrix.iter().zip(&ranks) {
        for (answer, other) in row.iter().zip(&ranks) {
            let expected = match rank.cmp(other) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            };
            ensure!(*answer == expected, "the judge's answers are not a total order");
        }
    }
    let mut order: Vec<(usize, &Bson)> = ranks.into_iter().zip(values).collect();
    order.sort_by_key(|(rank, _)| *rank);
    let classes = order.chunk_by(|(a, _), (b, _)| a == b);
    Ok(classes.map(|class| class.iter().map(|(_, value)| (*value).clone()).collect()).collect())
}

/// For each value, how it compares with every value: -1, 0 or 1.
fn matrix(judge: &mut Client, values: &[Bson]) -> Result<Vec<Vec<i32>>> {
    let db = format!("order_{:x}", std::process::id());
    judge.must(&doc! { "dropDatabase": 1, "$db": &db })?;
    // Below another field, since a top-level empty timestamp is filled in by the server.
    let documents: Vec<Document> =
        (0i32..).zip(values).map(|(id, value)| doc! { "_id": id, "w": { "v": value.clone() } }).collect();
    for chunk in documents.chunks(1000) {
        judge.must(&doc! { "insert": "c", "documents": chunk.to_vec(), "$db": &db })?;
    }
    let mut rows = Vec::new();
    for start in (0..values.len()).step_by(BATCH) {
        let others = Bson::Array(values.to_vec());
        let compare = doc! { "$map": { "input": { "$literal": others }, "in": { "$cmp": ["$w.v", "$$this"] } } };
        let reply = judge.must(&doc! {
            "aggregate": "c",
            "pipeline": [
                { "$match": { "_id": { "$gte": i32::try_from(start)?, "$lt": i32::try_from(start + BATCH)? } } },
                { "$sort": { "_id": 1 } },
                { "$project": { "r": compare } },
            ],
            "cursor": { "batchSize": 1000 },
            "$db": &db,
        })?;
        for document in reply.get_document("cursor")?.get_array("firstBatch")? {
            let answers = document.as_document().context("not a document")?.get_array("r")?;
            rows.push(answers.iter().map(|answer| answer.as_i32().context("not a number")).collect::<Result<_>>()?);
        }
    }
    index_agrees(judge, &db, &rows)?;
    judge.must(&doc! { "dropDatabase": 1, "$db": &db })?;
    ensure!(rows.len() == values.len(), "{} rows for {} values", rows.len(), values.len());
    Ok(rows)
}

/// Fails if an index, or a sort without one, puts values in another order than `$cmp`. Arrays are left out: they sort by element.
fn index_agrees(judge: &mut Client, db: &str, rows: &[Vec<i32>]) -> Result<()> {
    judge.must(&doc! { "createIndexes": "c", "indexes": [{ "key": { "w.v": 1 }, "name": "i" }], "$db": db })?;
    for hint in ["i", "_id_"] {
        let reply = judge.must(&doc! {
            "find": "c", "filter": { "$expr": { "$not": { "$isArray": "$w.v" } } }, "projection": { "_id": 1 },
            "sort": { "w.v": 1 }, "hint": hint, "batchSize": 1_000_000, "$db": db,
        })?;
        let found = reply.get_document("cursor")?.get_array("firstBatch")?.iter();
        let ids: Vec<usize> = found
            .map(|found| Ok(usize::try_from(found.as_document().context("not a document")?.get_i32("_id")?)?))
            .collect::<Result<_>>()?;
        for (a, b) in ids.iter().zip(ids.iter().skip(1)) {
            let answer = rows.get(*a).and_then(|row| row.get(*b)).context("no such value")?;
            ensure!(*answer <= 0, "values {a} and {b} are in another order in {hint}");
        }
    }
    Ok(())
}

/// The data file: one class per line.
pub fn render(classes: &[Vec<Bson>]) -> String {
    let mut out = String::from("[\n");
    for (at, class) in classes.iter().enumerate() {
        let end = if at + 1 < classes.len() { "," } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(out, "{}{end}", json::line(&Bson::Array(class.clone())));
    }
    out + "]\n"
}

/// The classes of a data file.
pub fn parse(text: &str) -> Result<Vec<Vec<Bson>>> {
    let Bson::Array(classes) = json::parse_value(text)? else { anyhow::bail!("not an array") };
    classes.into_iter().map(|class| class.as_array().cloned().context("a class is not an array")).collect()
}

/// Fails unless the text reads back as exactly these values.
pub fn check(text: &str, classes: &[Vec<Bson>]) -> Result<()> {
    let read = parse(text)?;
    for (value, read) in classes.iter().flatten().zip(read.iter().flatten()) {
        let bytes = |value: &Bson| doc! { "v": value.clone() }.to_vec();
        ensure!(bytes(value)? == bytes(read)?, "{} would be read back as {}", json::line(value), json::line(read));
    }
    Ok(())
}
