//! Very many small documents of one series and day: readings go into buckets, or into slots if their numbers can be added up.

mod series;

use super::Symptom;
use crate::declare::{self, word};
use crate::relation::Relation;
use crate::report::{Against, Finding, Severity};
use crate::survey::{Collection, Survey};
use crate::thresholds::{BUCKET_FILL, READING_BYTES, READINGS_A_DAY, SLOTS_A_QUARTER};
use crate::values::{count, figures, ids, measure, share};
use document::Value;
use series::Series;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "many_small_documents",
    pattern: "bucket",
    help: "Millions of tiny documents have a series and a time.",
    looks_at: "A date and a field that tells series apart: over 100 documents per series and day with a median under 1 KB, or over 10 per series and quarter if their numbers can be added up.",
    reasons_against: "Single readings are updated or looked up by id all the time; other collections refer to them by id; a series has few readings in a period; MongoDB's own time series are better where nobody reads what is stored.",
    find: |survey| Box::pin(find(survey)),
};

/// Days of a quarter.
const QUARTER: f64 = 91.0;

/// Fewer documents are no burden.
const FEWEST: u64 = 1_000;

/// A reference is so sure at least.
const SURE: f64 = 0.6;

/// Reads and writes of single readings, of all: more are against it.
const BY_ID: f64 = 0.3;

async fn find<'a>(survey: &'a Survey<'a>) -> document::Result<Vec<Finding>> {
    let mut all = Vec::new();
    for collection in &survey.collections {
        if survey.reader.cancel.is_set() {
            break;
        }
        all.extend(of_collection(survey, collection).await?);
    }
    Ok(all)
}

async fn of_collection(survey: &Survey<'_>, collection: &Collection) -> document::Result<Option<Finding>> {
    let median = collection.shape.sizes.percentile(50);
    if collection.statistics.count < FEWEST || median >= READING_BYTES || collection.statistics.capped {
        return Ok(None);
    }
    let mut all = Vec::new();
    for series in series::all(collection) {
        all.push(series.made_sure(survey.reader, collection).await?);
    }
    // The finest series that are dense enough: a sensor rather than its building.
    let dense = |series: &&Series| series.a_day >= READINGS_A_DAY;
    let slots = |series: &&Series| series.summable() && series.a_day * QUARTER >= SLOTS_A_QUARTER;
    let finest = |series: &&Series| series.number;
    let (series, is_slots) = match all.iter().filter(slots).max_by_key(finest) {
        Some(series) => (Some(series), true),
        None => (all.iter().filter(dense).max_by_key(finest), false),
    };
    Ok(series.map(|series| finding(survey, collection, series, is_slots, median)))
}

fn finding(survey: &Survey<'_>, collection: &Collection, series: &Series, is_slots: bool, median: u64) -> Finding {
    let (every, days) = period(series, is_slots);
    let in_bucket = (series.a_day * days).max(1.0);
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &series.time);
    finding.severity = match is_slots {
        true => Severity::by(series.a_day * QUARTER, SLOTS_A_QUARTER),
        false => Severity::by(series.a_day, READINGS_A_DAY),
    };
    finding.confidence = if series.is_named { 0.9 } else { 0.7 };
    finding.verdict = match is_slots {
        true => format!("the numbers of one `{}` and {every} can be added up in one document", series.field),
        false => format!("the readings of one `{}` and {every} belong into one document", series.field),
    };
    let told = match is_slots {
        true => format!("{:.0} documents of one `{}` in a quarter", series.a_day * QUARTER, series.field),
        false => format!("{:.0} documents of one `{}` in a day", series.a_day, series.field),
    };
    finding.shown = vec![
        told,
        format!(
            "{median} bytes in a document, and an entry in each of {} indexes",
            collection.statistics.indexes.len().max(1)
        ),
        format!("about {in_bucket:.0} in a bucket of one {every}"),
    ];
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an estimate of a count"
    )]
    let buckets = (collection.statistics.count as f64 / in_bucket).ceil() as u64;
    finding.evidence = figures([
        ("documents", count(collection.statistics.count)),
        ("series", Value::string(&*series.field)),
        ("series_seen", count(series.number)),
        ("per_series_and_day", measure(series.a_day)),
        ("median_bytes", count(median)),
        ("can_be_added_up", Value::Bool(is_slots)),
        ("examples", ids(collection.sample.iter().take(3))),
    ]);
    finding.gain =
        figures([("documents_now", count(collection.statistics.count)), ("documents_then", count(buckets.max(1)))]);
    finding.declaration = declaration(survey, collection, series, is_slots, every);
    finding.weighed(against(survey, collection, series, days, is_slots))
}

/// A bucket should hold tens to some hundreds of readings.
fn period(series: &Series, is_slots: bool) -> (&'static str, f64) {
    const READINGS: f64 = 20.0;
    if is_slots {
        return ("quarter", QUARTER);
    }
    let all = [("minute", 1.0 / 1440.0), ("hour", 1.0 / 24.0), ("day", 1.0)];
    all.into_iter().find(|(_, days)| series.a_day * days >= READINGS).unwrap_or(("day", 1.0))
}

fn against(survey: &Survey<'_>, collection: &Collection, series: &Series, days: f64, is_slots: bool) -> Vec<Against> {
    let mut all = Vec::new();
    let (mut single, mut seen) = (0, 0);
    for shape in survey.traffic.of(survey.database, collection.name()) {
        let is_single = shape.filter.iter().any(|path| path == "_id");
        if matches!(&*shape.kind, "find" | "update" | "delete" | "findAndModify") {
            seen += shape.count;
            single += if is_single { shape.count } else { 0 };
        }
    }
    if seen >= 20 && share(single, seen) > BY_ID {
        let figures = figures([("by_id", count(single)), ("of", count(seen))]);
        all.push(
            Against::new("single readings are looked up or changed by their id all the time", figures).outweighing(),
        );
    }
    // What bursts fill is dense in its own time: it counts where a bucket would hold next to nothing.
    let in_bucket = (series.a_day * days).max(1.0);
    let fill = series.fill(collection, days);
    if let Some(fill) = fill.filter(|fill| *fill < BUCKET_FILL && in_bucket * fill < 5.0) {
        let figures = figures([("fill", measure(fill))]);
        all.push(
            Against::new("most series have no readings in most periods: buckets would be nearly empty", figures)
                .outweighing(),
        );
    }
    let name = collection.name();
    let refers = |relation: &&Relation| {
        relation.to == name && relation.from != name && relation.key == "_id" && relation.confidence > SURE
    };
    if let Some(relation) = survey.relations.iter().find(refers) {
        let figures =
            figures([("from", Value::string(relation.from.clone())), ("path", Value::string(relation.path.clone()))]);
        let reason = format!("`{}` refers to single documents by their id: they are no readings", relation.from);
        all.push(Against::new(reason, figures).outweighing());
    }
    if series.top_level(collection).is_none() {
        let reason = format!(
            "a bucket takes fields of the first level only: put `{}` and `{}` there",
            series.field, series.time
        );
        all.push(Against::new(reason, figures([])));
    }
    if !is_slots {
        let reason = "on MongoDB itself its own time series are better where readings are never changed and nobody has to read what is stored";
        all.push(Against::new(reason, figures([])));
    }
    all
}

fn declaration(
    survey: &Survey<'_>,
    collection: &Collection,
    series: &Series,
    is_slots: bool,
    every: &str,
) -> Option<String> {
    let into = survey.free_name(&format!("{}_buckets", collection.name()));
    let field = series.top_level(collection)?;
    let by = match series.hex && field == series.field {
        true => format!("[{{ field: {}, as: hex }}]", word(field)),
        false => format!("[{}]", word(field)),
    };
    let mut lines = vec![
        format!("into: {}", word(&into)),
        format!("time: {}", word(&series.time)),
        format!("by: {by}"),
        format!("every: {every}"),
    ];
    if is_slots {
        lines.push("slot: day".to_owned());
        lines.push(format!("sum: {}", declare::words(series.numbers.iter().map(|name| &**name))));
        lines.push("layout: field_names".to_owned());
    } else if !series.numbers.is_empty() {
        let stats: Vec<String> =
            series.numbers.iter().take(3).map(|name| format!("{}: [min, max, avg]", word(name))).collect();
        lines.push(format!("stats: {{ {} }}", stats.join(", ")));
    }
    declare::collection_rule(survey.database, collection.name(), "bucket", &lines)
}
