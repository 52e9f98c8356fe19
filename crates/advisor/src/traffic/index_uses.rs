//! How often each index was used since its server started: `$indexStats`. An index without a use is evidence, no finding.

use super::latency::{collections, refused, rows};
use super::{Traffic, UnusedIndex};
use crate::reader::Reader;
use crate::values::{figure, figures, text};
use document::{Code, Doc, Value};

pub(super) async fn read(reader: &Reader<'_>, databases: &[String], traffic: &mut Traffic) {
    let (mut unused, mut seen, mut since) = (Vec::new(), false, i64::MAX);
    for database in databases {
        for collection in collections(reader, database).await {
            if reader.cancel.is_set() {
                return;
            }
            let stage = figures([("$indexStats", Value::Document(Doc::empty()))]);
            match rows(reader, database, &collection, stage).await {
                Ok(rows) => {
                    for row in rows {
                        let Some(Value::Document(accesses)) = row.get("accesses") else { continue };
                        seen = true;
                        if let Some(Value::DateTime(at)) = accesses.get("since") {
                            since = since.min(at);
                        }
                        let name = text(&row, "name");
                        if figure(&accesses, "ops") == 0 && name != "_id_" {
                            let (database, collection) = (database.clone(), collection.clone());
                            unused.push(UnusedIndex { database, collection, name });
                        }
                    }
                }
                Err(error) if error.code() == Code::Unauthorized => {
                    traffic.source("$indexStats", 0.0, Some(refused(&error)));
                    return;
                }
                Err(_) => {}
            }
        }
    }
    if !seen {
        return;
    }
    #[expect(clippy::cast_precision_loss, reason = "seconds")]
    let seconds = if since == i64::MAX { 0.0 } else { (reader.now() - since).max(0) as f64 / 1_000.0 };
    traffic.source("$indexStats", seconds, Some(words(&unused)));
    traffic.unused_indexes = unused;
}

fn words(unused: &[UnusedIndex]) -> String {
    const NAMED: usize = 5;
    if unused.is_empty() {
        return "each index was used; it does not say by which command".to_owned();
    }
    let names: Vec<String> = unused
        .iter()
        .take(NAMED)
        .map(|index| format!("{}.{} {}", index.database, index.collection, index.name))
        .collect();
    let more = if unused.len() > NAMED { format!(" and {} more", unused.len() - NAMED) } else { String::new() };
    format!("never used: {}{more}; it does not say by which command an index is used", names.join(", "))
}
