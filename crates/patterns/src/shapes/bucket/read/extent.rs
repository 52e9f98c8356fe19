//! Reads of so few buckets that moving them costs a real MongoDB less than taking them apart there.
//!
//! A stored bucket is smaller than its readings, and copying it is cheaper for the server than any stage over its entries. So
//! where a filter names the series and bounds the time, buckets are read as they are and everything else is done in this
//! process. What is moved has a bound: where it might be much, MongoDB gets the pipeline.

use crate::shapes::bucket::{Body, Bucket, Slot};
use document::Value;
use document::filter::{Filter, Node, Test};

/// Slots, of 20 to 40 bytes each, that may be moved for one read …
const SLOTS: u64 = 40_000;
/// … and readings, of which nobody knows the size.
const READINGS: u64 = 10_000;

/// What a filter says about the buckets to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// Not more than so many, as far as the filter tells.
    Few(usize),
    /// Those of some series, of any time: there may be few. More than so many are too many.
    Perhaps(usize),
    Many,
}

impl Extent {
    pub(super) fn of(bucket: &Bucket, filter: &Filter) -> Extent {
        let most = most(bucket);
        let enough = usize::try_from(most).unwrap_or(usize::MAX);
        // A reading of a known `_id` is in one bucket, wherever the `_id` is.
        if values(filter, "_id").is_some_and(|ids| ids <= most) {
            return Extent::Few(enough);
        }
        let Some(series) = series(bucket, filter).filter(|series| *series <= most) else { return Extent::Many };
        match periods(bucket, filter, most) {
            Some(periods) if series.saturating_mul(periods) <= most => Extent::Few(enough),
            Some(_) => Extent::Many,
            None => Extent::Perhaps(enough),
        }
    }

    /// How many buckets hold about so many readings of one series, full or not. Returns `None` if the filter asks for more than
    /// series and time.
    pub(super) fn first(bucket: &Bucket, filter: &Filter, readings: u64) -> Option<usize> {
        let is_series = |name: &str| bucket.by.iter().any(|series| &*series.field == name);
        let mut plain = true;
        filter.root.each_required(&mut |node| {
            plain = plain
                && match node {
                    Node::Field { path, .. } => path.first() == &*bucket.time || is_series(path.first()),
                    // What all readings of a bucket pass, or none.
                    Node::Expr(expr) => {
                        expr.reads().is_some_and(|paths| paths.iter().all(|path| is_series(path.first())))
                    }
                    _ => false,
                };
        });
        let half_full = (capacity(bucket) / 2).max(1);
        plain.then(|| usize::try_from(readings / half_full).unwrap_or(usize::MAX).clamp(1, 99) + 2)
    }
}

/// How many buckets of this kind are few.
fn most(bucket: &Bucket) -> u64 {
    let all = match &bucket.body {
        Body::Readings(_) => READINGS,
        Body::Slots(_) => SLOTS,
    };
    (all / capacity(bucket).max(1)).max(1)
}

/// How many entries a bucket has at most.
fn capacity(bucket: &Bucket) -> u64 {
    match &bucket.body {
        Body::Readings(readings) => u64::from(readings.at_most),
        Body::Slots(slots) => match &slots.slot {
            Slot::Time(grain) => bucket.every.units(*grain),
            Slot::Field { at_most, .. } => u64::from(*at_most),
        },
    }
}

/// How many series are asked for; `None` if the filter leaves that open.
fn series(bucket: &Bucket, filter: &Filter) -> Option<u64> {
    bucket.by.iter().try_fold(1_u64, |all, series| Some(all.saturating_mul(values(filter, &series.field)?)))
}

/// How many values a field may have; `None` if the filter leaves that open.
fn values(filter: &Filter, field: &str) -> Option<u64> {
    let mut values = None;
    filter.root.each_required_field(&mut |path, test| {
        if path.parts.len() == 1 && path.first() == field {
            each(test, &mut |test| match test {
                Test::Eq(_) => values = Some(1),
                Test::In(set) if set.regexes.is_empty() => values = values.or(Some(set.values.len() as u64)),
                _ => {}
            });
        }
    });
    values
}

/// How many periods the time asked for touches, counted up to some more than `most`; `None` if it has no end.
fn periods(bucket: &Bucket, filter: &Filter, most: u64) -> Option<u64> {
    if let Some(moments) = values(filter, &bucket.time) {
        return Some(moments);
    }
    let (mut from, mut to) = (None, None);
    filter.root.each_required_field(&mut |path, test| {
        if path.parts.len() == 1 && path.first() == &*bucket.time {
            each(test, &mut |test| match test {
                Test::Gt(Value::DateTime(at)) | Test::Gte(Value::DateTime(at)) => from = from.max(Some(*at)),
                Test::Lt(Value::DateTime(at)) | Test::Lte(Value::DateTime(at)) => {
                    to = Some(to.map_or(*at, |to: i64| to.min(*at)));
                }
                _ => {}
            });
        }
    });
    let (from, to) = (from?, to?);
    let (mut start, mut count) = (bucket.every.start(from), 0);
    while start <= to && count <= most {
        count += 1;
        start = bucket.every.next(start);
    }
    Some(count)
}

/// Several operators on one field hold each for itself.
fn each<'t>(test: &'t Test, visit: &mut dyn FnMut(&'t Test)) {
    match test {
        Test::All(tests) => tests.iter().for_each(|test| each(test, visit)),
        single => visit(single),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shapes::bucket::{Layout, Period, Readings, Series, Slots, Unit};
    use bson::{Bson, DateTime, Document, doc};
    use document::Doc;
    use document::op::Namespace;
    use document::pipeline::expr::Names;

    const DAY: i64 = 86_400_000;

    fn bucket(every: Period, body: Body) -> Bucket {
        let by = vec![Series { field: "key".into(), hex: false }];
        Bucket { into: Namespace::new("shop", "stored"), time: "ts".into(), by, every, body, packed: false }
    }

    fn days_of_quarters() -> Bucket {
        let slot = Slot::Time(crate::shapes::bucket::Grain::Day);
        let sums = vec![("approved".into(), "a".into())];
        bucket(Period::Quarter, Body::Slots(Slots { slot, sums, layout: Layout::FieldNames }))
    }

    fn readings(at_most: u32) -> Bucket {
        let unit = Unit { size: crate::shapes::bucket::Grain::Minute, name: "m".into() };
        let (inexact, reading_id) = Default::default();
        let body = Readings { at_most, unit, inexact, reading_id, stats: Vec::new() };
        bucket(Period::Hour, Body::Readings(body))
    }

    fn reach(bucket: &Bucket, filter: Document) -> Extent {
        Extent::of(bucket, &Filter::parse(&Doc::from(filter), &mut Names::new()).unwrap())
    }

    fn span(days: i64) -> Bson {
        doc! { "$gte": DateTime::from_millis(0), "$lt": DateTime::from_millis(days * DAY) }.into()
    }

    #[test]
    fn years_of_one_series_are_few_buckets() {
        let most = 40_000 / 92;
        let quarters = days_of_quarters();
        assert_eq!(reach(&quarters, doc! { "key": "A", "ts": span(3_650) }), Extent::Few(most));
        assert_eq!(reach(&quarters, doc! { "key": { "$in": ["A", "B"] }, "ts": span(3_650) }), Extent::Few(most));
        let many: Vec<i32> = (0..20).collect();
        assert_eq!(reach(&quarters, doc! { "key": { "$in": many }, "ts": span(3_650) }), Extent::Many);
        assert_eq!(reach(&quarters, doc! { "key": "A", "ts": span(3_650_000) }), Extent::Many);
        let one = doc! { "key": "A", "ts": DateTime::from_millis(5), "approved": { "$gt": 3 } };
        assert_eq!(reach(&quarters, one), Extent::Few(most));
        assert_eq!(reach(&quarters, doc! { "_id": { "key": "A" } }), Extent::Few(most));
    }

    #[test]
    fn what_the_filter_leaves_open_may_be_much() {
        let quarters = days_of_quarters();
        assert_eq!(reach(&quarters, doc! { "ts": span(1) }), Extent::Many);
        assert_eq!(reach(&quarters, doc! { "key": { "$gt": "A" }, "ts": span(1) }), Extent::Many);
        assert_eq!(reach(&quarters, doc! { "$or": [{ "key": "A" }, { "ts": span(1) }] }), Extent::Many);
        assert_eq!(reach(&quarters, doc! { "key": "A" }), Extent::Perhaps(434));
        let since = doc! { "key": "A", "ts": { "$gte": DateTime::from_millis(0) } };
        assert_eq!(reach(&quarters, since), Extent::Perhaps(434));
    }

    #[test]
    fn large_buckets_are_fewer() {
        assert_eq!(reach(&readings(60), doc! { "key": 1, "ts": span(6) }), Extent::Few(166));
        assert_eq!(reach(&readings(60), doc! { "key": 1, "ts": span(7) }), Extent::Many);
        assert_eq!(reach(&readings(1_000), doc! { "key": 1, "ts": span(1) }), Extent::Many);
    }
}
