//! Buckets as a person would write them: the collection with its index and view, a function that inserts, one that reads a
//! range, one that brings in documents that are there.
//!
//! The languages have a template per kind of bucket; what goes into it is made here.

mod javascript;
mod python;

use crate::languages::Language;
use crate::languages::javascript::{MONGOSH, NODE};
use crate::languages::literals::{Style, quoted, render};
use crate::mql::document;
use crate::rule::ShapeCode;
use crate::shapes::bucket::{Bucket, Dialect, Readings, Slots};
use document::{Array, Value};

/// The code for buckets of a collection that clients call `logical`.
pub(super) fn code(bucket: &Bucket, logical: &str, language: Language) -> ShapeCode {
    let bucketed = Bucketed { bucket, logical: logical.to_owned(), view: bucket.view(Dialect::MongoDb) };
    match language {
        Language::Mongosh => javascript::code(&bucketed, &MONGOSH),
        Language::Node => javascript::code(&bucketed, &NODE),
        Language::Python => python::code(&bucketed),
    }
}

/// What the languages have to say about one bucket.
struct Bucketed<'b> {
    bucket: &'b Bucket,
    /// What clients call the collection.
    logical: String,
    view: Array<'static>,
}

impl Bucketed<'_> {
    /// All documents of a collection into buckets.
    fn gathering(&self) -> Vec<Value<'static>> {
        let mut stages = self.bucket.gather("_id");
        stages.push(self.bucket.merged());
        stages
    }

    /// The words that every template has.
    fn words(&self, style: &Style) -> Vec<(&'static str, String)> {
        let bucket = self.bucket;
        let view = render(&Value::Array(self.view.borrow()), style, 0);
        let series = || bucket.by.iter().map(|series| &*series.field);
        let hexed = names(bucket.by.iter().filter(|series| series.hex).map(|series| &*series.field));
        // The series' fields of a document, as they are stored: the same in all languages.
        let stored = |of: &str| match bucket.by.iter().any(|series| series.hex) {
            true => format!("hexed(pick({of}, {}), {hexed})", names(series())),
            false => format!("pick({of}, {})", names(series())),
        };
        vec![
            ("logical", quoted(&self.logical)),
            ("stored", quoted(&bucket.into.collection)),
            ("time", quoted(&bucket.time)),
            ("period", quoted(bucket.every.name())),
            ("aside", quoted(&format!("{}_plain", self.logical))),
            ("view", view),
            ("gather", render(&Value::Array(self.gathering().into_iter().collect()), style, 0)),
            ("validator", render(&Value::Document(bucket.validator()), style, 2)),
            ("stored_series", stored("reading")),
            ("asked_series", stored("series")),
            ("first", bucket.by.first().map(|series| quoted(&series.field)).unwrap_or_default()),
        ]
    }
}

/// `template` once for each index of the stored collection, its keys as `‹index›`.
fn indexes(bucketed: &Bucketed<'_>, style: &Style, template: &str) -> String {
    let needs = bucketed.bucket.needs(&bucketed.bucket.into);
    let keys = needs.indexes.iter().map(|need| render(&Value::Document(need.key()), style, 2));
    keys.map(|key| template.replace("‹index›", &key)).collect()
}

/// `["a", "b"]`
fn names<'n>(names: impl Iterator<Item = &'n str>) -> String {
    format!("[{}]", names.map(quoted).collect::<Vec<_>>().join(", "))
}

/// What a template for readings needs besides.
fn reading_words(readings: &Readings, bucket: &Bucket, style: &Style) -> Vec<(&'static str, String)> {
    // What is not a reading's own, or is written anew.
    let left = bucket.by.iter().map(|series| &*series.field).chain([&*bucket.time, "_id"]);
    vec![
        ("unit", quoted(&readings.unit.name)),
        ("millis", readings.unit.size.millis().unwrap_or(1).to_string()),
        ("at_most", readings.at_most.to_string()),
        ("left", names(left)),
        ("offsets", quoted(&format!("readings.{}", readings.unit.name))),
        ("stats", render(&readings.stats_expression(), style, 0)),
    ]
}

/// What a template for slots needs besides.
fn slot_words(slots: &Slots, bucket: &Bucket, style: &Style) -> Vec<(&'static str, String)> {
    let sums = document(slots.sums.iter().map(|(logical, short)| (&**logical, Value::string(&**short))));
    let group = slots
        .sums
        .iter()
        .map(|(logical, _)| (&**logical, crate::mql::call("$sum", Value::string(format!("${logical}")))));
    let group = document([("_id", Value::Null)].into_iter().chain(group));
    let field = slots.slot.field().unwrap_or(&bucket.time);
    vec![
        ("sums", render(&Value::Document(sums), style, 0)),
        ("group", render(&Value::Document(group), style, 4)),
        ("slot_field", quoted(field)),
        ("slot_path", quoted(&format!("items.{field}"))),
    ]
}
