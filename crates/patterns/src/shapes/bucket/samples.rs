//! Declared buckets for tests: the sensors and the events of the design.

use crate::shapes::bucket::{
    Body, Bucket, Grain, Grammar, Inexact, Layout, Period, ReadingId, Readings, Series, Slot, Slots, Stat, Unit,
};
use document::op::Namespace;
use std::sync::Arc;

/// One reading per minute, 60 to the hour.
pub(super) fn sensors() -> Bucket {
    readings(Period::Hour, Unit { size: Grain::Minute, name: "m".into() })
}

pub(super) fn readings(every: Period, unit: Unit) -> Bucket {
    Bucket {
        into: Namespace::new("shop", "sensor_hours"),
        time: "ts".into(),
        by: vec![Series { field: "sensorId".into(), hex: false }],
        every,
        body: Body::Readings(Readings {
            at_most: 60,
            unit,
            inexact: Inexact::Reject,
            reading_id: ReadingId::Stored,
            stats: Vec::new(),
        }),
        packed: false,
    }
}

pub(super) fn with_stats(mut bucket: Bucket) -> Bucket {
    if let Body::Readings(readings) = &mut bucket.body {
        readings.stats = vec![("temp".into(), Stat::ALL.to_vec()), ("humid".into(), vec![Stat::Max])];
    }
    bucket
}

pub(super) fn with_id(mut bucket: Bucket, id: ReadingId) -> Bucket {
    if let Body::Readings(readings) = &mut bucket.body {
        readings.reading_id = id;
    }
    bucket
}

/// The case study's events: sums per key and day, a quarter to the bucket.
pub(super) fn events(packed: bool) -> Bucket {
    slots(Period::Quarter, Slot::Time(Grain::Day), Layout::FieldNames, packed)
}

pub(super) fn slots(every: Period, slot: Slot, layout: Layout, packed: bool) -> Bucket {
    let sum = |name: &str, short: &str| -> (Arc<str>, Arc<str>) { (name.into(), short.into()) };
    Bucket {
        into: Namespace::new("shop", "events_buckets"),
        time: "date".into(),
        by: vec![Series { field: "key".into(), hex: true }],
        every,
        body: Body::Slots(Slots {
            slot,
            sums: vec![sum("approved", "a"), sum("noFunds", "n"), sum("pending", "p"), sum("rejected", "r")],
            layout,
        }),
        packed,
    }
}

pub(super) fn countries() -> Slot {
    Slot::Field { field: "country".into(), keys: Grammar::new("^[A-Z]{2}$").unwrap(), at_most: 250 }
}

/// One of each kind: every layout, with and without packed ids.
pub(super) fn all() -> Vec<Arc<Bucket>> {
    let ms = Unit { size: Grain::Millisecond, name: "t".into() };
    let month = Unit { size: Grain::Month, name: "m".into() };
    let mut all = vec![
        sensors(),
        with_stats(sensors()),
        with_id(sensors(), ReadingId::Time),
        with_id(with_stats(sensors()), ReadingId::Time),
        readings(Period::Year, ms.clone()),
        with_stats(readings(Period::Quarter, ms)),
        readings(Period::Year, month),
    ];
    for layout in [Layout::FieldNames, Layout::Array] {
        for packed in [false, true] {
            for (every, grain) in [
                (Period::Year, Grain::Month),
                (Period::Year, Grain::Day),
                (Period::Quarter, Grain::Month),
                (Period::Quarter, Grain::Day),
                (Period::Month, Grain::Day),
                (Period::Month, Grain::Hour),
                (Period::Day, Grain::Hour),
                (Period::Day, Grain::Minute),
                (Period::Hour, Grain::Minute),
                (Period::Minute, Grain::Second),
            ] {
                all.push(slots(every, Slot::Time(grain), layout, packed));
            }
            all.push(slots(Period::Day, countries(), layout, packed));
        }
    }
    let mut two = sensors();
    two.by.push(Series { field: "probe".into(), hex: true });
    all.push(two);
    let mut plain = events(false);
    plain.by = vec![Series { field: "user".into(), hex: false }, Series { field: "app".into(), hex: false }];
    all.push(plain);
    all.into_iter().map(Arc::new).collect()
}
