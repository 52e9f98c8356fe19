//! The data under the cases: the same on the plain side and, declared, on the kept one.

use super::cases::GROWING;
use super::{KEPT, PLAIN, page, readings};
use crate::connection::Connection;
use crate::doors::Door;
use crate::report;
use crate::seeding::all_on;
use crate::workload::fill_in;
use anyhow::{Result, bail};
use bson::{Document, doc};
use std::time::{Duration, Instant};

/// The ids of the parents that are chosen at random; below are those whose id is the number of their children.
pub(crate) const FIRST_PARENT: i64 = 1_000_000;

fn declaration() -> Document {
    let mut collections = doc! {
        "products": { "computed": { "reviewCount": { "count": "reviews", "by": "productId" } } },
        "orders": { "extended_reference": {
            "customer": { "from": "customers", "by": "customerId", "fields": ["name", "tier", "rank"] } } },
        "articles": page::rules(),
    };
    collections.extend(readings::rules());
    doc! { "database": KEPT, "collections": collections }
}

/// Whether a database is the one without rules.
pub(super) fn is_plain(db: &str) -> bool {
    db == PLAIN
}

pub(super) async fn load(door: &Door, sizes: &[i64], parents: i64) -> Result<()> {
    let mut plain = Connection::open(&door.plain.address).await?;
    let mut kept = Connection::open(&door.kept.address).await?;
    for (connection, db) in [(&mut plain, PLAIN), (&mut kept, KEPT)] {
        connection.command(&doc! { "dropDatabase": 1, "$db": db }).await?;
        for (collection, field) in [("reviews", "productId"), ("orders", "customerId")] {
            let index = doc! { "key": { field: 1 }, "name": format!("{field}_1") };
            connection.command(&doc! { "createIndexes": collection, "indexes": [index], "$db": db }).await?;
        }
        connection.command(&doc! { "createIndexes": "comments", "indexes": [page::index()], "$db": db }).await?;
        for (source, ..) in readings::SOURCES {
            connection.command(&doc! { "createIndexes": source, "indexes": [readings::index()], "$db": db }).await?;
        }
        let hot = doc! { "_id": 1_i64, "reviewCount": 0 };
        connection.command(&doc! { "insert": "products", "documents": [hot], "$db": db }).await?;
        fill_in(connection, db, "products", parents, |i| doc! { "_id": FIRST_PARENT + i, "name": "a product" }).await?;
        let keys = sizes.iter().flat_map(|size| [(*size, *size), (GROWING + *size, *size)]);
        for (at, (key, size)) in (1_i64..).zip(keys) {
            let first = at * 10_000_000;
            connection.command(&doc! { "insert": "products", "documents": [{ "_id": key }], "$db": db }).await?;
            page::load(connection, db, key, size, first).await?;
            readings::load(connection, db, key, size, first).await?;
            let source = doc! { "_id": key, "name": "a name", "tier": "gold", "email": "a@b" };
            connection.command(&doc! { "insert": "customers", "documents": [source], "$db": db }).await?;
            fill_in(
                connection,
                db,
                "reviews",
                size,
                |i| doc! { "_id": first + i, "productId": key, "rating": 3, "text": "x".repeat(80) },
            )
            .await?;
            // The order that the read cases look up has the key itself as its id.
            fill_in(connection, db, "orders", size, |i| {
                let id = if i == 0 { key } else { first + i };
                let mut order = doc! { "_id": id, "customerId": key, "total": 5, "text": "x".repeat(80) };
                if is_plain(db) {
                    order.insert("customer", doc! { "name": "a name", "tier": "gold" });
                }
                order
            })
            .await?;
        }
    }
    seed(door, &mut kept).await
}

/// Declares the rules on the data that is there, and says how fast they were seeded and audited.
async fn seed(door: &Door, kept: &mut Connection) -> Result<()> {
    let mut documents = 0;
    for collection in [
        "products",
        "reviews",
        "orders",
        "customers",
        "articles",
        "comments",
        "sensors",
        "gauges",
        "readings",
        "samples",
    ] {
        documents += kept.command(&doc! { "count": collection, "$db": KEPT }).await?.get_i32("n").unwrap_or_default();
    }
    let start = Instant::now();
    kept.command(&doc! { "pleach": "apply", "declaration": declaration(), "$db": KEPT }).await?;
    loop {
        let status = kept.command(&doc! { "pleach": "status", "$db": KEPT }).await?;
        if all_on(&status)? {
            break;
        }
        if start.elapsed() > Duration::from_secs(300) {
            bail!("the rules are still not on: {status}");
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let rate = |start: Instant| f64::from(documents) / start.elapsed().as_secs_f64();
    report::progress(&format!("{}: seeding {documents} documents, {:.0} a second", door.name, rate(start)));
    let start = Instant::now();
    let audit = kept.command(&doc! { "pleach": "audit", "$db": KEPT }).await?;
    report::progress(&format!(
        "{}: audit, {:.0} documents a second: {} drifted",
        door.name,
        rate(start),
        audit.get("drifted").map_or_else(|| "?".into(), ToString::to_string)
    ));
    Ok(())
}
