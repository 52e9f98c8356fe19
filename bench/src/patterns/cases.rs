//! What is measured: per pattern reads and writes, each as the commands of the three ways.

use super::{page, readings};
use crate::template::{ID_MARK, KEY_MARK};
use bson::{Document, doc};

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) clients: usize,
    pub(crate) writes: bool,
    pub(crate) key: Key,
    pub(crate) none: Vec<Document>,
    pub(crate) by_hand: Vec<Document>,
    pub(crate) pleach: Vec<Document>,
    /// Whether `by hand` goes through Pleach too, to a collection without rules.
    pub(crate) same_door: bool,
}

/// The keys of parents and sources that are inserted to: behind those that only are read and changed.
pub(crate) const GROWING: i64 = 2_000_000;

/// Which parent or source an operation is about.
#[derive(Clone, Copy)]
pub(crate) enum Key {
    One(i64),
    /// One of so many, at random.
    Any(i64),
}

pub(super) fn find(collection: &str) -> Document {
    doc! { "find": collection, "filter": { "_id": KEY_MARK }, "limit": 1, "singleBatch": true }
}

pub(super) fn insert(collection: &str, document: Document) -> Document {
    doc! { "insert": collection, "documents": [document] }
}

pub(super) fn update(collection: &str, filter: Document, change: Document, multi: bool) -> Document {
    let statement = if multi {
        doc! { "q": filter, "u": change, "multi": true }
    } else {
        doc! { "q": filter, "u": change }
    };
    doc! { "update": collection, "updates": [statement] }
}

pub(crate) fn all(sizes: &[i64], parents: i64) -> Vec<Case> {
    let mut cases = Vec::new();
    for size in sizes {
        // A parent with so many children, a source with so many copies, has their number as its key; what is inserted goes
        // to another one that began with as many, so that the number stays what it says.
        let (key, growing) = (Key::One(*size), Key::One(GROWING + *size));
        for clients in [1, 16, 64] {
            cases.push(count_write(format!("count: insert a child beside {size}"), clients, growing));
            cases.push(copy_write(*size, clients, growing));
        }
        cases.push(count_read(*size, key));
        cases.push(copy_read(*size, key));
        cases.push(copy_change(*size, key));
        cases.push(copy_other(*size, key));
        cases.extend(page::cases(*size));
        cases.extend(readings::cases(*size));
    }
    cases.push(count_write("count: one hot parent".into(), 64, Key::One(1)));
    for clients in [1, 16, 64] {
        cases.push(count_write(format!("count: {parents} parents"), clients, Key::Any(parents)));
    }
    cases
}

fn count_write(name: String, clients: usize, key: Key) -> Case {
    let child =
        || insert("reviews", doc! { "_id": ID_MARK, "productId": KEY_MARK, "rating": 4, "text": "x".repeat(80) });
    let by_hand = update("products", doc! { "_id": KEY_MARK }, doc! { "$inc": { "reviewCount": 1 } }, false);
    Case {
        name,
        clients,
        writes: true,
        key,
        none: vec![child()],
        by_hand: vec![child(), by_hand],
        pleach: vec![child()],
        same_door: false,
    }
}

fn count_read(size: i64, key: Key) -> Case {
    let grouped = doc! { "aggregate": "reviews", "cursor": {}, "pipeline": [
    { "$match": { "productId": KEY_MARK } }, { "$group": { "_id": null, "n": { "$sum": 1 } } }] };
    Case {
        name: format!("count: read, {size} children"),
        clients: 1,
        writes: false,
        key,
        none: vec![grouped],
        by_hand: vec![find("products")],
        pleach: vec![find("products")],
        same_door: false,
    }
}

fn copy_write(size: i64, clients: usize, key: Key) -> Case {
    let order =
        || insert("orders", doc! { "_id": ID_MARK, "customerId": KEY_MARK, "total": 5, "text": "x".repeat(80) });
    let with_copy = insert(
        "orders",
        doc! { "_id": ID_MARK, "customerId": KEY_MARK, "total": 5, "text": "x".repeat(80),
        "customer": { "name": "a name", "tier": "gold" } },
    );
    Case {
        name: format!("copy: insert beside {size}"),
        clients,
        writes: true,
        key,
        none: vec![order()],
        by_hand: vec![find("customers"), with_copy],
        pleach: vec![order()],
        same_door: false,
    }
}

fn copy_read(size: i64, key: Key) -> Case {
    let joined = doc! { "aggregate": "orders", "cursor": {}, "pipeline": [
    { "$match": { "_id": KEY_MARK } },
    { "$lookup": { "from": "customers", "localField": "customerId", "foreignField": "_id", "as": "customer" } }] };
    Case {
        name: format!("copy: read, {size} copies"),
        clients: 1,
        writes: false,
        key,
        none: vec![joined],
        by_hand: vec![find("orders")],
        pleach: vec![find("orders")],
        same_door: false,
    }
}

/// The source changes: every copy does.
fn copy_change(size: i64, key: Key) -> Case {
    let source = || update("customers", doc! { "_id": KEY_MARK }, doc! { "$set": { "rank": ID_MARK } }, false);
    let copies = update("orders", doc! { "customerId": KEY_MARK }, doc! { "$set": { "customer.rank": ID_MARK } }, true);
    Case {
        name: format!("copy: change {size}"),
        clients: 1,
        writes: true,
        key,
        none: vec![source()],
        by_hand: vec![source(), copies],
        pleach: vec![source()],
        same_door: false,
    }
}

/// A field of the source changes that nobody copies.
fn copy_other(size: i64, key: Key) -> Case {
    let source = || update("customers", doc! { "_id": KEY_MARK }, doc! { "$set": { "seen": ID_MARK } }, false);
    Case {
        name: format!("copy: change of another field, {size} copies"),
        clients: 1,
        writes: true,
        key,
        none: vec![source()],
        by_hand: vec![source()],
        pleach: vec![source()],
        same_door: false,
    }
}
