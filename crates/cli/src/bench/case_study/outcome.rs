//! All that one run found out, as data: tables, JSON and the HTML page are made from it.

use super::columns::Estimate;
use super::compare::Comparison;
use super::ingest::Ingest;
use super::layout::Layout;
use super::load::Loaded;
use super::place::Place;
use super::readings::Readings;
use super::reports::Reported;
use super::sizes::Sizes;
use super::stored::Amount;
use super::subject::Subject;
use serde_json::{Value, json};

pub(crate) struct Outcome {
    pub(crate) events: u64,
    pub(crate) users: u32,
    pub(crate) seed: u64,
    pub(crate) clients: usize,
    /// What the servers are, a line each.
    pub(crate) servers: Vec<String>,
    pub(crate) expected: Vec<(Layout, Amount)>,
    pub(crate) rows: Vec<Row>,
    pub(crate) readings: Vec<(Place, Readings)>,
    pub(crate) estimates: Vec<Estimate>,
}

/// One subject, measured.
pub(crate) struct Row {
    pub(crate) subject: Subject,
    pub(crate) loaded: Loaded,
    pub(crate) sizes: Sizes,
    pub(crate) reported: Reported,
    /// For one layout of each place only.
    pub(crate) ingest: Option<Ingest>,
}

impl Outcome {
    pub(crate) fn per_event(&self, bytes: u64) -> f64 {
        ratio(bytes, self.events)
    }

    pub(crate) fn expected(&self, layout: Layout) -> Amount {
        self.expected.iter().find(|(of, _)| *of == layout).map(|(_, amount)| *amount).unwrap_or_default()
    }

    /// What is not as it must be, a line each: empty if all is right.
    pub(crate) fn wrong(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for row in &self.rows {
            let name = format!("{}, {}", row.subject.where_and_how(), row.subject.layout.name());
            if let Some(mismatch) = &row.reported.mismatch {
                wrong.push(format!("{name}: a report is not the sum over the raw events: {mismatch}"));
            }
            let stored = Amount { documents: row.sizes.documents, bytes: row.sizes.data };
            let expected = self.expected(row.subject.layout);
            if stored != expected {
                wrong.push(format!("{name}: {stored:?} is stored, the raw events make {expected:?}"));
            }
        }
        for (place, readings) in self.readings.iter().filter(|(_, readings)| !readings.is_right()) {
            let Readings { found, touched, .. } = readings;
            wrong.push(format!("{}: one day gave {found} readings and touched {touched} buckets", place.name()));
        }
        wrong
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "events": self.events,
            "users": self.users,
            "seed": self.seed,
            "clients": self.clients,
            "servers": self.servers,
            "layouts": self.rows.iter().map(|row| self.row_json(row)).collect::<Vec<_>>(),
            "readings": self.readings.iter().map(|(place, readings)| readings_json(*place, readings)).collect::<Vec<_>>(),
            "estimates": self.estimates.iter().map(|estimate| self.estimate_json(estimate)).collect::<Vec<_>>(),
            "declaredOverByHand": Comparison::all(self).iter().map(Comparison::json).collect::<Vec<_>>(),
            "wrong": self.wrong(),
        })
    }

    fn row_json(&self, row: &Row) -> Value {
        let Row { subject, loaded, sizes, reported, ingest } = row;
        json!({
            "place": subject.place.name(),
            "way": subject.way.name(),
            "layout": subject.layout.name(),
            "version": subject.layout.version(),
            "documents": sizes.documents,
            "bytesPerDocument": ratio(sizes.data, sizes.documents),
            "bytesPerEvent": {
                "data": self.per_event(sizes.data),
                "index": self.per_event(sizes.index),
                "disk": self.per_event(sizes.disk),
            },
            "diskBytes": sizes.disk,
            "logBytes": sizes.log,
            "load": {
                "seconds": loaded.time.as_secs_f64(),
                "eventsPerSecond": loaded.per_second(),
                "batchP50Ms": loaded.batches.percentile(50),
                "batchP90Ms": loaded.batches.percentile(90),
            },
            "reports": {
                "count": reported.requests.count(),
                "perSecond": reported.per_second(),
                "p50Ms": reported.requests.percentile(50),
                "p90Ms": reported.requests.percentile(90),
            },
            "ingest": ingest.as_ref().map(ingest_json),
        })
    }

    fn estimate_json(&self, estimate: &Estimate) -> Value {
        json!({
            "layout": estimate.layout.name(),
            "bytesPerEvent": {
                "bson4k": self.per_event(estimate.bson_4k),
                "bson32k": self.per_event(estimate.bson_32k),
                "columns4k": self.per_event(estimate.columns_4k),
                "columns32k": self.per_event(estimate.columns_32k),
            },
        })
    }
}

fn ingest_json(ingest: &Ingest) -> Value {
    json!({ "singlePerSecond": ingest.single, "batchedPerSecond": ingest.batched, "ratio": ingest.ratio() })
}

fn readings_json(place: Place, readings: &Readings) -> Value {
    json!({
        "place": place.name(),
        "readings": readings.readings,
        "buckets": readings.buckets,
        "ingest": ingest_json(&readings.ingest),
        "oneDay": { "readings": readings.found, "bucketsTouched": readings.touched },
    })
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
