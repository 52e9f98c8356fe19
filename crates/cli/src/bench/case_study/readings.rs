//! A year of sensor readings in day buckets: what a batch of inserts is worth, and how many buckets one day's range touches.

use super::calendar::milliseconds;
use super::client::{Client, Server};
use super::ingest::{self, Ingest, Writes};
use super::load::BATCH;
use crate::ask::number;
use crate::report::Failure;
use bson::{DateTime, Document, doc};
use std::time::Duration;

const DB: &str = "pleach_case_study_readings";
const COLLECTION: &str = "readings";

/// One an hour.
const PER_DAY: i64 = 24;
const HOUR_MS: i64 = 3_600_000;

/// The day that is asked for: somewhere in the middle.
const ASKED: u16 = 200;

pub(crate) const DECLARATION: &str = "database: pleach_case_study_readings
collections:
  readings:
    bucket:
      into: reading_days
      time: at
      by: [sensor]
      every: day
      at_most: 100
      stats: { temp: [min, max, avg] }
";

/// What was found out.
pub(crate) struct Readings {
    pub(crate) readings: u64,
    pub(crate) ingest: Ingest,
    /// Documents of the stored collection.
    pub(crate) buckets: u64,
    /// Readings that the range of one day of one sensor gave.
    pub(crate) found: u64,
    /// Buckets that were read for them, as `explain` says.
    pub(crate) touched: u64,
}

impl Readings {
    /// One day of one sensor is one bucket of `PER_DAY` readings.
    pub(crate) fn is_right(&self) -> bool {
        self.found == PER_DAY.unsigned_abs() && self.touched == 1
    }
}

/// Wants the declaration applied.
pub(crate) async fn measure(server: &Server, sensors: usize, each: Duration) -> Result<Readings, Failure> {
    let mut client = server.client();
    let year = sensors * 365 * usize::try_from(PER_DAY).unwrap_or_default();
    for from in (0..year).step_by(BATCH) {
        let mut bytes = Vec::new();
        (from..year.min(from + BATCH)).for_each(|at| reading(at, sensors, &mut bytes));
        client.write(DB, doc! { "insert": COLLECTION }, "documents", &bytes).await?;
    }
    let day = |number: u16| DateTime::from_millis(milliseconds(number));
    let filter = doc! { "sensor": 1, "at": { "$gte": day(ASKED), "$lt": day(ASKED + 1) } };
    let found = client.rows(DB, doc! { "find": COLLECTION, "filter": filter.clone(), "batchSize": 1000 }).await?.len();
    let touched = touched(&mut client, filter).await?;
    let buckets = client.run(DB, doc! { "count": "reading_days" }).await?;
    // The next years, so that no reading comes twice.
    let statement = Box::new(move |at: usize, out: &mut Vec<u8>| reading(year + at, sensors, out));
    let writes = Writes { db: DB.to_owned(), command: doc! { "insert": COLLECTION }, name: "documents", statement };
    let ingest = ingest::measure(&mut client, writes, each).await?;
    let whole = |number: i64| u64::try_from(number).unwrap_or_default();
    Ok(Readings { readings: year as u64, ingest, buckets: whole(number(&buckets, "n")), found: found as u64, touched })
}

pub(crate) fn db() -> &'static str {
    DB
}

/// The reading `at`, in time order over all sensors.
fn reading(at: usize, sensors: usize, out: &mut Vec<u8>) {
    let (hour, sensor) = (at / sensors.max(1), at % sensors.max(1));
    let whole = |number: usize| i64::try_from(number).unwrap_or_default();
    let reading = doc! {
        "sensor": i32::try_from(sensor).unwrap_or_default() + 1,
        "at": DateTime::from_millis(milliseconds(0) + whole(hour) * HOUR_MS),
        "temp": f64::from(u16::try_from(hour * 7 % 400).unwrap_or_default()) / 10.0,
    };
    // Writing to memory does not fail.
    let _ = reading.to_writer(out);
}

/// How many stored documents the explained `find` has read.
async fn touched(client: &mut Client, filter: Document) -> Result<u64, Failure> {
    let explain = doc! { "explain": { "find": COLLECTION, "filter": filter }, "verbosity": "executionStats" };
    let plan = client.run(DB, explain).await?;
    let buckets = plan.get_document("pleach").and_then(|pleach| pleach.get_document("buckets"));
    let examined = buckets.map_err(|_| Failure::new(format!("explain says nothing of buckets: {plan}")))?;
    Ok(u64::try_from(number(examined, "examined")).unwrap_or_default())
}
