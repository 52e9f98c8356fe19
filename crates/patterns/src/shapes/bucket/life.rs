//! The bucket over time: what each question of [`LifeShape`] comes to.

use crate::languages::Language;
use crate::mql;
use crate::rule::shape::Shape;
use crate::rule::{Flaw, LifeShape, LinkKey, Lookup, Losses, ShapeCode, Unserved};
use crate::shapes::bucket::{Body, Bucket, BucketShape, Encoded, Inexact, Layout, Readings, print};
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::value::Path;
use document::{Doc, Result, Value};

impl LifeShape for BucketShape {
    fn noun(&self) -> &'static str {
        "buckets"
    }

    fn describe(&self) -> String {
        format!("buckets in {}", self.bucket.into.collection)
    }

    fn takes_over(&self, earlier: &dyn Shape) -> bool {
        BucketShape::of(earlier).is_some_and(|earlier| self.bucket.takes_over(&earlier.bucket))
    }

    fn flaws(&self, stored: &Doc<'_>) -> Vec<Flaw> {
        self.bucket.flaws(stored)
    }

    fn mend(&self, stored: &Doc<'_>) -> Option<Doc<'static>> {
        self.bucket.canonical(stored)
    }

    fn logical_count(&self) -> Value<'static> {
        self.bucket.logical_count()
    }

    /// Series, time and the name of the slot.
    fn required(&self) -> Vec<Path> {
        let bucket = &self.bucket;
        let slot = match &bucket.body {
            Body::Slots(slots) => slots.slot.field(),
            Body::Readings(_) => None,
        };
        let series = bucket.by.iter().map(|series| &*series.field);
        [&*bucket.time].into_iter().chain(series).chain(slot).map(Path::new).collect()
    }

    fn unserved(&self, by: &LinkKey, lookup: &Lookup) -> Option<Unserved> {
        self.bucket.unserved(by, lookup)
    }

    /// Documents of a collection come in the order of their `_id`, as `apply` walks them; those of buckets by time.
    fn conversion(&self, from: &dyn Shape, _into: &Namespace) -> Vec<Value<'static>> {
        let mut stages = self.bucket.gather(if from.is_plain() { "_id" } else { &self.bucket.time });
        stages.push(self.bucket.merged());
        stages
    }

    fn code(&self, logical: &Namespace, language: Language) -> Option<ShapeCode> {
        Some(print::code(&self.bucket, &logical.collection, language))
    }

    fn assess(&self) -> Result<Option<Pipeline>> {
        self.bucket.assess().map(Some)
    }

    fn losses(&self, rows: &[Doc<'static>]) -> Losses {
        self.bucket.losses(rows)
    }

    fn changes_documents(&self) -> bool {
        let cuts_times = matches!(&self.bucket.body, Body::Readings(readings) if readings.inexact == Inexact::Truncate);
        self.bucket.derives_id() || cuts_times
    }

    fn adds_up(&self) -> bool {
        matches!(&self.bucket.body, Body::Slots(_))
    }

    fn seen_together(&self, documents: &[Doc<'static>], logical: &Doc<'static>) -> Option<Doc<'static>> {
        let bucket = &self.bucket;
        let key = bucket.encode(logical).ok()?.key;
        let encoded = documents.iter().map(|document| {
            let encoded = bucket.encode(document).ok().filter(|encoded| encoded.key.bytes() == key.bytes())?;
            Some(Encoded { key: key.clone(), ..encoded })
        });
        bucket.seen(&encoded.collect::<Option<Vec<_>>>()?)
    }
}

impl Bucket {
    /// Buckets that may hold more stay as they are, and so do readings when others are cut or refused than before.
    fn takes_over(&self, earlier: &Bucket) -> bool {
        let (Body::Readings(was), Body::Readings(is)) = (&earlier.body, &self.body) else { return false };
        let body = Body::Readings(Readings { at_most: was.at_most, inexact: was.inexact, ..is.clone() });
        was.at_most <= is.at_most && *earlier == (Bucket { body, ..self.clone() })
    }

    /// How many readings or slots a bucket holds, as an expression.
    pub(crate) fn logical_count(&self) -> Value<'static> {
        match &self.body {
            Body::Readings(_) => mql::field("count"),
            Body::Slots(slots) => match slots.layout {
                Layout::Array => mql::call("$size", mql::field("items")),
                Layout::FieldNames => mql::call("$size", mql::call("$objectToArray", mql::field("items"))),
            },
        }
    }

    /// What clients see of readings that are stored together: one logical document, or `None`.
    pub(super) fn seen(&self, encoded: &[Encoded]) -> Option<Doc<'static>> {
        let (first, mut logical) = (encoded.first()?, None);
        let entries: Vec<_> = encoded.iter().map(|encoded| encoded.entry.clone()).collect();
        let stored = self.build(&first.key, 0, &entries)?;
        let decoded = self.decode(&stored, &mut |document| {
            logical = Some(document);
            Ok(())
        });
        decoded.ok().and(logical)
    }
}
