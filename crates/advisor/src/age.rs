//! How old a document is: by the time in its ObjectId, or by a date field that every document has.

use crate::shape::Shape;
use crate::values::at;
use document::{Doc, Value};

/// What tells the age of a collection's documents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Age {
    ObjectId,
    Field(String),
    /// Nothing does.
    Unknown,
}

/// Names that say when a document was made; others may say when it was last changed.
const MADE: &[&str] =
    &["createdAt", "created_at", "created", "createdOn", "creationDate", "insertedAt", "date", "ts", "timestamp"];

impl Age {
    /// A date that was given when the document was made is better than an ObjectId, which an import makes anew.
    pub fn of(shape: &Shape) -> Age {
        let is_always_date =
            |path: &&&str| shape.path(path).is_some_and(|facts| facts.is_always("date", shape.documents));
        if let Some(path) = MADE.iter().find(is_always_date) {
            return Age::Field((*path).to_owned());
        }
        match shape.path("_id").is_some_and(|facts| facts.is_always("objectId", shape.documents)) {
            true => Age::ObjectId,
            false => Age::Unknown,
        }
    }

    /// When the document was made: milliseconds since 1970.
    pub fn made(&self, doc: &Doc<'_>) -> Option<i64> {
        match self {
            Age::ObjectId => match doc.get("_id") {
                Some(Value::ObjectId([a, b, c, d, ..])) => Some(i64::from(u32::from_be_bytes([a, b, c, d])) * 1_000),
                _ => None,
            },
            Age::Field(path) => match at(doc, path) {
                Some(Value::DateTime(millis)) => Some(millis),
                _ => None,
            },
            Age::Unknown => None,
        }
    }
}
