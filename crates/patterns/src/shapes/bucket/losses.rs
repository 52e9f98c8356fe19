//! What a move into buckets does to documents, as [`Bucket::assess`] has counted it: whose `_id` is lost, whose time is cut, which
//! have no place.

use crate::rule::{ChangedField, Losses};
use crate::shapes::bucket::{Body, Bucket};
use document::{Doc, Value};

/// Why a reading cannot be stored by its time.
pub(super) const TAKEN_TIME: &str = "there is another reading of its series and time";

/// Counts over all rows.
#[derive(Default)]
struct Counts {
    /// Documents that get another `_id`, or are added up with others.
    ids: u64,
    times: u64,
    misfits: u64,
    misfit: Option<(Value<'static>, String)>,
}

impl Bucket {
    pub(super) fn losses(&self, rows: &[Doc<'static>]) -> Losses {
        let mut counts = Counts::default();
        rows.iter().for_each(|row| counts.add(self, row));
        let is_slots = matches!(&self.body, Body::Slots(_));
        let mut changed = Vec::new();
        if self.makes_ids() {
            let declared = match is_slots {
                false => "for `reading_id: time` makes it from series and time (`reading_id: stored` keeps it)",
                true => "for a `slot` adds documents up (buckets without `slot` keep each one)",
            };
            let (field, what) = ("_id".to_owned(), format!("lost, {declared}"));
            changed.push(ChangedField { name: "ids_lost", field, documents: counts.ids, what });
        }
        if let Some(unit) = self.cuts_to() {
            let declared = match is_slots {
                false => "for `inexact: truncate` (a finer `unit` keeps it)",
                true => "for a `slot` has one time (buckets without `slot` keep each one)",
            };
            let (field, what) = (self.time.to_string(), format!("cut to the {unit}, {declared}"));
            changed.push(ChangedField { name: "times_cut", field, documents: counts.times, what });
        }
        Losses { changed, misfits: counts.misfits, misfit: counts.misfit }
    }
}

impl Counts {
    fn add(&mut self, bucket: &Bucket, row: &Doc<'static>) {
        let number = |name: &str| row.get(name).and_then(|n| u64::try_from(n.as_i64_exact()?).ok()).unwrap_or_default();
        let id = |name: &str| row.get(name).unwrap_or(Value::Null);
        if let Some(why) = row.get("_id").as_ref().and_then(|why| why.as_str()) {
            self.misfits += number("documents");
            self.misfit.get_or_insert_with(|| (id("example"), why.to_owned()));
            return;
        }
        self.times += number("cut");
        if !bucket.makes_ids() {
            return;
        }
        self.ids += number("documents") - number("kept").min(number("documents"));
        match &bucket.body {
            // The document whose `_id` stays is not what it was either.
            Body::Slots(_) => self.ids += number("grouped_kept"),
            Body::Readings(_) if number("groups") > 0 => {
                self.misfits += number("grouped") - number("groups");
                self.misfit.get_or_insert_with(|| (id("latest"), TAKEN_TIME.to_owned()));
            }
            Body::Readings(_) => {}
        }
    }
}
