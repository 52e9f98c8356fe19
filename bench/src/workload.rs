//! The named workloads: what each sends, and the data they run on.

use crate::connection::Connection;
use crate::target::Target;
use crate::template::ID_MARK;
use anyhow::Result;
use bson::{Document, doc};

pub(crate) const DB: &str = "pleach_bench";
pub(crate) const BATCH: i64 = 100;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Concern {
    /// None sent: acknowledged after a sync, on both sides.
    Default,
    /// `{ w: 1 }`: acknowledged when visible.
    Relaxed,
    Read,
}

impl Concern {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Concern::Default => "default",
            Concern::Relaxed => "w:1",
            Concern::Read => "-",
        }
    }
}

pub(crate) enum Ids {
    /// A random loaded document.
    Loaded,
    /// Never used before: inserts.
    Fresh,
    None,
}

pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) writes: bool,
    pub(crate) ids: Ids,
    /// How many ids one request takes.
    pub(crate) per_request: i64,
    pub(crate) command: fn() -> Document,
    /// Rows that a reply must hold, so that a server cannot win by answering wrongly.
    pub(crate) rows: Option<usize>,
}

impl Workload {
    pub(crate) fn clients(&self, asked: &[usize]) -> Vec<usize> {
        if self.name == "group" { vec![1] } else { asked.to_vec() }
    }

    pub(crate) fn concerns(&self) -> &'static [Concern] {
        if self.writes { &[Concern::Default, Concern::Relaxed] } else { &[Concern::Read] }
    }
}

fn document(id: i64, secondary: i64) -> Document {
    doc! { "_id": id, "k": secondary, "n": 0, "name": "a name of some length", "city": "Reykjavík", "filler": "x".repeat(90) }
}

pub(crate) fn all() -> Vec<Workload> {
    let read = |name, command, rows| Workload {
        name,
        writes: false,
        ids: Ids::Loaded,
        per_request: 1,
        command,
        rows: Some(rows),
    };
    let write =
        |name, ids, per_request, command| Workload { name, writes: true, ids, per_request, command, rows: None };
    vec![
        read("find", || doc! { "find": "read", "filter": { "_id": ID_MARK }, "limit": 1, "singleBatch": true }, 1),
        read(
            "find_secondary",
            || doc! { "find": "read", "filter": { "k": ID_MARK }, "limit": 1, "singleBatch": true },
            1,
        ),
        read(
            "range100",
            || doc! { "find": "read", "filter": { "_id": { "$gte": ID_MARK } }, "sort": { "_id": 1 }, "limit": 100, "singleBatch": true },
            100,
        ),
        write(
            "inc",
            Ids::Loaded,
            1,
            || doc! { "update": "read", "updates": [{ "q": { "_id": ID_MARK }, "u": { "$inc": { "n": 1 } } }] },
        ),
        write("upsert", Ids::Fresh, 1, || {
            doc! { "update": "upserted", "updates": [{ "q": { "_id": ID_MARK }, "u": { "$inc": { "n": 1 } }, "upsert": true }] }
        }),
        write("insert1", Ids::Fresh, 1, || doc! { "insert": "inserted", "documents": [document(ID_MARK, 1)] }),
        write("insert100", Ids::Fresh, BATCH, || {
            doc! { "insert": "inserted", "documents": (0..BATCH).map(|i| document(ID_MARK + i, 1)).collect::<Vec<_>>() }
        }),
        Workload {
            name: "group",
            writes: false,
            ids: Ids::None,
            per_request: 0,
            command: || {
                doc! { "aggregate": "grouped", "cursor": {}, "pipeline": [{ "$group": { "_id": "$g", "sum": { "$sum": "$v" }, "n": { "$sum": 1 } } }] }
            },
            rows: Some(100),
        },
        // Two words of some thousand documents each: the ten best.
        search("text_best", || {
            let score = doc! { "$meta": "textScore" };
            doc! { "find": "texts", "filter": { "$text": { "$search": "roasted beans" } }, "sort": { "s": score.clone() }, "projection": { "s": score }, "limit": 10, "singleBatch": true }
        }),
        search("text_phrase", || {
            doc! { "find": "texts", "filter": { "$text": { "$search": "\"roasted beans\" -milk" } }, "limit": 10, "singleBatch": true }
        }),
        Workload {
            name: "text_count",
            writes: false,
            ids: Ids::None,
            per_request: 0,
            command: || doc! { "aggregate": "texts", "cursor": {}, "pipeline": [{ "$match": { "$text": { "$search": "roasted" } } }, { "$count": "n" }] },
            rows: Some(1),
        },
        write("text_insert100", Ids::Fresh, BATCH, || {
            doc! { "insert": "texts_inserted", "documents": (0..BATCH).map(|i| text(ID_MARK + i, i)).collect::<Vec<_>>() }
        }),
    ]
}

/// A search whose ten first documents are wanted.
fn search(name: &'static str, command: fn() -> Document) -> Workload {
    Workload { name, writes: false, ids: Ids::None, per_request: 0, command, rows: Some(10) }
}

/// A document with a text of some twenty words, most of them rare.
fn text(id: i64, number: i64) -> Document {
    const WORDS: [&str; 8] = ["coffee", "morning", "kettle", "grinder", "filter", "water", "house", "market"];
    let mut text = String::new();
    for at in 0..16_usize {
        let word =
            WORDS.get((usize::try_from(number).unwrap_or_default() / (at + 1) + at) % WORDS.len()).unwrap_or(&"");
        text.push_str(word);
        text.push_str(if at % 3 == 0 { " " } else { ", " });
    }
    if number % 20 == 0 {
        text.push_str("roasted beans ");
    } else if number % 21 == 0 {
        text.push_str("roasted with beans ");
    }
    if number % 40 == 0 {
        text.push_str("and milk ");
    }
    text.push_str(&format!("lot{} batch{}", number % 1_000, number % 37));
    doc! { "_id": id, "t": text, "n": number }
}

/// `texts` with a text index, and `texts_inserted`, empty with the same.
pub(crate) async fn load_texts(target: &Target, documents: u64) -> Result<()> {
    let mut connection = Connection::open(&target.address).await?;
    for collection in ["texts", "texts_inserted"] {
        let index = doc! { "key": { "t": "text" }, "name": "t_text" };
        connection.command(&doc! { "createIndexes": collection, "indexes": [index], "$db": DB }).await?;
    }
    fill(&mut connection, "texts", documents, |id| text(id, id)).await
}

/// Fresh collections: `read` with a secondary index, empty `inserted` and `upserted`, and `grouped`.
pub(crate) async fn load(target: &Target, documents: u64, grouped: u64) -> Result<()> {
    let mut connection = Connection::open(&target.address).await?;
    connection.command(&doc! { "dropDatabase": 1, "$db": DB }).await?;
    connection
        .command(&doc! { "createIndexes": "read", "indexes": [{ "key": { "k": 1 }, "name": "k_1" }], "$db": DB })
        .await?;
    for collection in ["inserted", "upserted"] {
        connection.command(&doc! { "create": collection, "$db": DB }).await?;
    }
    // The range workload starts at any loaded id and must find a hundred.
    fill(&mut connection, "read", documents + 100, |id| document(id, id)).await?;
    fill(&mut connection, "grouped", grouped, |id| doc! { "_id": id, "g": id % 100, "v": id, "filler": "x".repeat(60) })
        .await
}

async fn fill(connection: &mut Connection, collection: &str, count: u64, make: impl Fn(i64) -> Document) -> Result<()> {
    fill_in(connection, DB, collection, i64::try_from(count)?, make).await
}

/// Inserts documents made from 0, 1, …
pub(crate) async fn fill_in(
    connection: &mut Connection,
    db: &str,
    collection: &str,
    count: i64,
    make: impl Fn(i64) -> Document,
) -> Result<()> {
    let mut next = 0;
    while next < count {
        let end = count.min(next + 2000);
        let documents: Vec<Document> = (next..end).map(&make).collect();
        connection
            .command(&doc! { "insert": collection, "documents": documents, "writeConcern": { "w": 1 }, "$db": db })
            .await?;
        next = end;
    }
    Ok(())
}
