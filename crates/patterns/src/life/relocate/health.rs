//! How well a shape's buckets are filled: for people who chose period and size.

use crate::execute::access::{Access, aggregate};
use crate::life::{CatalogRule, Life, catalog, plan};
use crate::mql;
use crate::shapes::bucket::{Body, Bucket, Slot};
use document::op::Namespace;
use document::pipeline::Pipeline;
use document::pipeline::expr::Names;
use document::{Array, Doc, DocWriter, Result, Value};
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Up to so many buckets, all are looked at whenever somebody asks.
const ALL: i64 = 2_000;

/// Of more, figures are those of so many …
const SAMPLE: i64 = 1_000;

/// … and hold for so long: monitoring asks every second.
const FRESH: Duration = Duration::from_secs(60);

/// Figures of large collections, by database and rule.
#[derive(Debug, Default)]
pub(crate) struct HealthCache(Mutex<HashMap<(Arc<str>, String), HealthSample>>);

/// When somebody looked, and what there was.
#[derive(Clone, Copy, Debug)]
struct HealthSample {
    /// The change of the rule that was in force.
    epoch: i64,
    since: Instant,
    figures: Figures,
}

/// Of the buckets that were looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Figures {
    buckets: i64,
    readings: i64,
    splits: i64,
    sparse: i64,
}

/// `{ buckets, readings, fill, splits, sparse }`; with `sampled` and `age_ms` where only some buckets were looked at.
pub(crate) async fn health(life: &Life, at: &mut Access<'_>, entry: &CatalogRule) -> Result<Option<Doc<'static>>> {
    let place = entry.places.iter().find_map(|place| Some((&place.stored, place.bucket()?)));
    let Some((stored, bucket)) = place else { return Ok(None) };
    let buckets = plan::documents(at, stored).await?;
    if buckets <= ALL {
        let all = look(at, stored, bucket, Vec::new()).await?;
        return Ok(Some(show(bucket, all, all.buckets).finish()));
    }
    let (figures, since) = match life.health_cache.of(entry) {
        Some(known) => known,
        None => {
            let figures = sample(at, stored, bucket).await?;
            life.health_cache.remember(entry, figures);
            (figures, Instant::now())
        }
    };
    let mut health = show(bucket, figures, buckets);
    health.append("sampled", &Value::Int64(figures.buckets));
    health.append("age_ms", &Value::Int64(i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX)));
    Ok(Some(health.finish()))
}

impl HealthCache {
    fn key(entry: &CatalogRule) -> (Arc<str>, String) {
        (entry.db.clone(), entry.row.rule.clone())
    }

    fn of(&self, entry: &CatalogRule) -> Option<(Figures, Instant)> {
        let known = self.0.lock();
        let sample = known.get(&HealthCache::key(entry))?;
        let holds = sample.epoch == entry.row.epoch && sample.since.elapsed() < FRESH;
        holds.then_some((sample.figures, sample.since))
    }

    fn remember(&self, entry: &CatalogRule, figures: Figures) {
        let mut known = self.0.lock();
        known.retain(|_, sample| sample.since.elapsed() < FRESH);
        known.insert(HealthCache::key(entry), HealthSample { epoch: entry.row.epoch, since: Instant::now(), figures });
    }
}

/// Some of very many, whatever their number: MongoDB picks them by chance, the embedded store would read all for that, so that
/// there it is those at both ends.
async fn sample(at: &mut Access<'_>, stored: &Namespace, bucket: &Bucket) -> Result<Figures> {
    if at.backend.facts().samples_quickly {
        let size = mql::object([("size", Value::Int64(SAMPLE))]);
        return look(at, stored, bucket, vec![mql::call("$sample", size)]).await;
    }
    let mut both = Figures::default();
    for direction in [1, -1] {
        let order = mql::call("$sort", mql::object([("_id", Value::Int32(direction))]));
        let end = look(at, stored, bucket, vec![order, mql::call("$limit", Value::Int64(SAMPLE / 2))]).await?;
        both.buckets += end.buckets;
        both.readings += end.readings;
        both.splits += end.splits;
        both.sparse += end.sparse;
    }
    Ok(both)
}

async fn look(at: &mut Access<'_>, stored: &Namespace, bucket: &Bucket, first: Vec<Value<'static>>) -> Result<Figures> {
    let pipeline = Pipeline::parse(&figures(bucket, first), &mut Names::new())?;
    let rows = at.all(aggregate(stored, pipeline)).await?;
    let of = |name: &str| rows.first().map_or(0, |row| catalog::long(row.get(name)));
    Ok(Figures { buckets: of("buckets"), readings: of("readings"), splits: of("splits"), sparse: of("sparse") })
}

/// The figures for all buckets.
fn show(bucket: &Bucket, figures: Figures, buckets: i64) -> DocWriter {
    let whole = |figure: i64| match figures.buckets {
        0 => figure,
        looked_at if looked_at == buckets => figure,
        looked_at => scaled(figure, buckets, looked_at),
    };
    let mut health = DocWriter::new();
    health.append("buckets", &Value::Int64(buckets));
    health.append("readings", &Value::Int64(whole(figures.readings)));
    let capacity = figures.buckets.saturating_mul(capacity(bucket));
    health.append("fill", &Value::Double(share(figures.readings, capacity)));
    health.append("splits", &Value::Int64(whole(figures.splits)));
    health.append("sparse", &Value::Int64(whole(figures.sparse)));
    health
}

fn figures(bucket: &Bucket, first: Vec<Value<'static>>) -> Array<'static> {
    let one_if = |condition: Value<'_>| mql::call("$sum", mql::cond(condition, Value::Int32(1), Value::Int32(0)));
    let sparse_below = (capacity(bucket) / 10).max(2);
    let sparse = mql::call_with("$lt", [mql::field("held"), Value::Int64(sparse_below)]);
    let split = mql::call_with("$gt", [mql::field("_id.n"), Value::Int32(0)]);
    let group = mql::object([
        ("_id", Value::Null),
        ("buckets", mql::call("$sum", Value::Int32(1))),
        ("readings", mql::call("$sum", mql::field("held"))),
        ("splits", one_if(split)),
        ("sparse", one_if(sparse)),
    ]);
    let project = mql::call("$project", mql::object([("held", bucket.logical_count())]));
    first.into_iter().chain([project, mql::call("$group", group)]).collect()
}

/// How many readings or slots a bucket can hold.
fn capacity(bucket: &Bucket) -> i64 {
    match &bucket.body {
        Body::Readings(readings) => i64::from(readings.at_most),
        Body::Slots(slots) => match &slots.slot {
            Slot::Field { at_most, .. } => i64::from(*at_most),
            Slot::Time(grain) => i64::try_from(bucket.every.units(*grain)).unwrap_or(i64::MAX),
        },
    }
}

#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "an estimate for people")]
fn scaled(figure: i64, all: i64, looked_at: i64) -> i64 {
    (figure as f64 * all as f64 / looked_at as f64).round() as i64
}

#[expect(clippy::cast_precision_loss, reason = "a share for people")]
fn share(part: i64, whole: i64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 / whole as f64 * 1e3).round() / 1e3 }
}
