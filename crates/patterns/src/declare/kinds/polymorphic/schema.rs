//! `schema`: a JSON Schema, checked as MongoDB checks it.

use crate::declare::block::BlockItem;
use crate::declare::finding::Findings;
use crate::mql;
use document::filter::Filter;
use document::pipeline::expr::Names;
use document::{Doc, Value};

pub(super) fn read(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Doc<'static>> {
    let schema = item.document("{ properties: { pages: { bsonType: int } } }", findings)?;
    let filter = mql::document([("$jsonSchema", Value::Document(schema.borrow()))]);
    match Filter::parse(&filter, &mut Names::new()) {
        Ok(_) => Some(schema),
        Err(error) => {
            let message = format!("MongoDB would refuse this schema: {}", error.message());
            findings.error(&item.at, message, "write it as MongoDB's $jsonSchema takes it");
            None
        }
    }
}
