//! The page of an article: its comments counted, their mean and best score, and the five newest of them. Read and kept three ways:
//! aggregated on every read, by the one update that the literature shows, by four rules.

use super::cases::{Case, GROWING, Key, find, insert, update};
use super::data::is_plain;
use crate::connection::Connection;
use crate::template::{ID_MARK, KEY_MARK};
use crate::workload::fill_in;
use anyhow::Result;
use bson::{Document, doc};

/// Of how many comments the page shows the beginning.
const SHOWN: i32 = 5;

/// The rules of the page, part of the declaration.
pub(super) fn rules() -> Document {
    doc! {
        "computed": {
            "commentCount": { "count": "comments", "by": "articleId" },
            "meanScore": { "avg": "score", "from": "comments", "by": "articleId" },
            "bestScore": { "max": "score", "from": "comments", "by": "articleId" },
        },
        "subset": { "newest": {
            "from": "comments", "by": "articleId", "sort": { "at": -1 }, "keep": SHOWN,
            "fields": ["userId", "score", "text", "at"],
        } },
    }
}

fn comment(id: i64, article: i64, score: i64) -> Document {
    doc! { "_id": id, "articleId": article, "userId": 7, "score": score, "text": "x".repeat(80), "at": id }
}

/// An article with so many comments, on a side with rules or without.
pub(super) async fn load(connection: &mut Connection, db: &str, key: i64, size: i64, first: i64) -> Result<()> {
    let mut article = doc! { "_id": key, "title": "an article" };
    if is_plain(db) {
        article.extend(doc! { "commentCount": size, "scores": size * 3, "bestScore": 3_i64, "newest": [] });
    }
    connection.command(&doc! { "insert": "articles", "documents": [article], "$db": db }).await?;
    fill_in(connection, db, "comments", size, |i| comment(first + i, key, 3)).await
}

/// The index that the commands by hand need.
pub(super) fn index() -> Document {
    doc! { "key": { "articleId": 1, "at": -1 }, "name": "articleId_1_at_-1" }
}

pub(super) fn cases(size: i64) -> Vec<Case> {
    let growing = Key::One(GROWING + size);
    let mut cases: Vec<Case> = [1, 16].map(|clients| write(size, clients, growing)).into();
    cases.push(read(size));
    cases.push(remove(size, growing));
    cases
}

fn aggregate(stage: Document) -> Document {
    doc! { "aggregate": "comments", "cursor": {}, "pipeline": [{ "$match": { "articleId": KEY_MARK } }, { "$group": stage }] }
}

fn read(size: i64) -> Case {
    let newest = doc! { "find": "comments", "filter": { "articleId": KEY_MARK }, "sort": { "at": -1 }, "limit": SHOWN, "singleBatch": true };
    let count = aggregate(doc! { "_id": null, "n": { "$sum": 1 } });
    let scores = aggregate(doc! { "_id": null, "mean": { "$avg": "$score" }, "best": { "$max": "$score" } });
    Case {
        name: format!("page: read, {size} children"),
        clients: 1,
        writes: false,
        key: Key::One(size),
        none: vec![find("articles"), count, scores, newest],
        by_hand: vec![find("articles")],
        pleach: vec![find("articles")],
        same_door: false,
    }
}

/// What the literature writes beside a comment: one update of the article.
fn beside(score: i64) -> Document {
    let shown = doc! { "userId": 7, "score": score, "text": "x".repeat(80), "at": ID_MARK };
    let change = doc! {
        "$inc": { "commentCount": 1, "scores": score },
        "$max": { "bestScore": score },
        "$push": { "newest": { "$each": [shown], "$sort": { "at": -1 }, "$slice": SHOWN } },
    };
    update("articles", doc! { "_id": KEY_MARK }, change, false)
}

fn write(size: i64, clients: usize, key: Key) -> Case {
    let own = || insert("comments", comment(ID_MARK, KEY_MARK, 3));
    Case {
        name: format!("page: insert a child beside {size}"),
        clients,
        writes: true,
        key,
        none: vec![own()],
        by_hand: vec![own(), beside(3)],
        pleach: vec![own()],
        same_door: false,
    }
}

/// The newest and best comment comes and goes: what it took the place of is read again.
fn remove(size: i64, key: Key) -> Case {
    let come = || insert("comments", comment(ID_MARK, KEY_MARK, ID_MARK));
    let go = || doc! { "delete": "comments", "deletes": [{ "q": { "_id": ID_MARK }, "limit": 1 }] };
    let best = doc! { "find": "comments", "filter": { "articleId": KEY_MARK }, "sort": { "at": -1 }, "limit": SHOWN, "singleBatch": true };
    let change = doc! { "$inc": { "commentCount": -1, "scores": -3 }, "$set": { "bestScore": 3 }, "$pull": { "newest": { "at": ID_MARK } } };
    let back = update("articles", doc! { "_id": KEY_MARK }, change, false);
    Case {
        name: format!("page: the best child comes and goes, {size} children"),
        clients: 1,
        writes: true,
        key,
        none: vec![come(), go()],
        by_hand: vec![come(), beside(ID_MARK), go(), best, back],
        pleach: vec![come(), go()],
        same_door: false,
    }
}
