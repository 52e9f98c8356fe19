//! Which fields tell series apart, and how dense the series are.

use crate::options::MEASURED_WHOLE;
use crate::reader::{Bound, Reader};
use crate::shape::PathFacts;
use crate::survey::Collection;
use crate::values::{at, figure, hash, list, share};
use document::{Doc, Result, Value};
use hashbrown::{HashMap, HashSet};
use patterns::mql;

pub(super) const DAY: i64 = 86_400_000;

/// Names that people give the key of a series.
const NAMED: &[&str] = &[
    "id", "key", "sensor", "device", "host", "symbol", "source", "meter", "machine", "station", "vehicle", "user",
    "series", "node", "tag", "metric",
];

/// Names that people give to what has few values by nature.
const ENUMERATED: &[&str] = &[
    "status", "state", "type", "kind", "level", "severity", "priority", "category", "country", "currency", "language",
    "locale", "gender", "role", "plan", "tier", "method", "stage", "result", "rating", "stars", "score", "version",
    "unit", "color", "quality", "_t",
];

/// More machines than this are not numbered from one on without a name that says so.
const MOST_NUMBERED: usize = 64;

/// The documents of one value of a field.
#[derive(Clone, Debug)]
pub(super) struct Series {
    /// The date.
    pub(super) time: String,
    /// The field that tells them apart.
    pub(super) field: String,
    pub(super) is_named: bool,
    /// Its values are hex digits: half as long as bytes.
    pub(super) hex: bool,
    /// How many were seen.
    pub(super) number: u64,
    /// Documents of one series and day.
    pub(super) a_day: f64,
    /// The sample has so few documents of each that they must be looked up to tell how dense they are.
    is_thin: bool,
    /// All other fields that are numbers.
    pub(super) numbers: Vec<String>,
    /// There is nothing else in the documents.
    only_numbers: bool,
    /// All dates are whole days.
    whole_days: bool,
}

impl Series {
    /// Whether documents of one day can be added up without losing anything but their ids.
    pub(super) fn summable(&self) -> bool {
        self.only_numbers && self.whole_days && !self.numbers.is_empty()
    }
}

/// The series by each field that may tell them apart.
pub(super) fn all(collection: &Collection) -> Vec<Series> {
    let documents = collection.shape.documents;
    let Some(time) = time(collection) else { return Vec::new() };
    let fields = collection.shape.paths.iter().filter(|facts| {
        !facts.in_array
            && facts.path != "_id"
            && facts.path != time
            && facts.documents == documents
            && may_be_key(facts)
    });
    let all: Vec<Series> = fields.filter_map(|facts| of_field(collection, &time, facts)).collect();
    if !all.is_empty() {
        return all;
    }
    // Machines may have small numbers whose names say nothing. Only where nothing else could be the key.
    let numbers = collection.shape.paths.iter().filter(|facts| is_small_number(facts, documents));
    numbers.filter_map(|facts| of_field(collection, &time, facts)).collect()
}

/// Few whole numbers that fill their range, each of them in very many documents.
fn is_small_number(facts: &PathFacts, documents: u64) -> bool {
    const EACH: f64 = 50.0;
    let few = facts.distinct.few(MOST_NUMBERED).map_or(0, <[_]>::len) as u64;
    let is_whole = facts.count_of("int") + facts.count_of("long") == facts.values;
    let is_range =
        facts.numbers.is_some_and(|(least, greatest)| least >= 0.0 && greatest < 2.0 * share(few.max(1), 1) + 1.0);
    let is_flag = few < 3;
    !facts.in_array
        && facts.documents == documents
        && is_whole
        && is_range
        && !is_flag
        && share(documents, few) >= EACH
        && !is_enumerated(facts.name())
}

/// The date that every document has; of several the one with a usual name, then the first.
fn time(collection: &Collection) -> Option<String> {
    const USUAL: &[&str] =
        &["ts", "time", "timestamp", "date", "at", "recordedAt", "measuredAt", "when", "created", "createdAt"];
    let documents = collection.shape.documents;
    let dates = || collection.shape.paths.iter().filter(|facts| !facts.in_array && facts.is_always("date", documents));
    let rank = |facts: &&PathFacts| USUAL.iter().position(|name| *name == facts.name()).unwrap_or(USUAL.len());
    dates().min_by_key(rank).map(|facts| facts.path.clone())
}

/// Measurements are no keys: fractions never are, whole numbers only by their name.
fn may_be_key(facts: &PathFacts) -> bool {
    let of = |types: &[&str]| types.iter().map(|name| facts.count_of(name)).sum::<u64>() == facts.values;
    !is_enumerated(facts.name())
        && (of(&["string", "objectId", "binData"]) || (of(&["int", "long"]) && is_named(facts.name())))
}

/// States and kinds of documents: each value has very many, and none is a series.
fn is_enumerated(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    ENUMERATED.iter().any(|word| lower == *word || lower.ends_with(word))
}

fn is_named(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    NAMED.iter().any(|word| lower == *word || lower.starts_with(word) || lower.ends_with(word))
}

/// Where more of the documents than this have a value of their own, it tells no series apart.
const NEARLY_ALL: f64 = 0.95;

/// What was seen of one series.
#[derive(Default)]
struct Seen {
    documents: u64,
    first: i64,
    last: i64,
}

#[expect(clippy::cast_precision_loss, reason = "densities")]
fn of_field(collection: &Collection, time: &str, facts: &PathFacts) -> Option<Series> {
    let mut seen: HashMap<u64, Seen> = HashMap::new();
    let (mut first, mut last, mut whole_days) = (i64::MAX, i64::MIN, true);
    for doc in &collection.sample {
        let (Some(Value::DateTime(made)), Some(key)) = (at(doc, time), at(doc, &facts.path)) else { continue };
        (first, last) = (first.min(made), last.max(made));
        whole_days &= made.rem_euclid(DAY) == 0;
        let series = seen.entry(hash(&key)).or_insert_with(|| Seen { first: made, last: made, ..Seen::default() });
        series.documents += 1;
        (series.first, series.last) = (series.first.min(made), series.last.max(made));
    }
    let (number, sampled) = (seen.len() as u64, collection.sample.len() as u64);
    // A value that every document has for itself is no series.
    let is_whole = sampled >= collection.statistics.count;
    let is_thin = sampled < number * 3;
    if number == 0 || (is_thin && (is_whole || number as f64 > sampled as f64 * NEARLY_ALL)) {
        return None;
    }
    let fraction = sampled as f64 / collection.statistics.count.max(sampled) as f64;
    // Weighted by documents: a few short series do not decide.
    let density = |series: &Seen| {
        // Of few documents the sample does not show how long they went on.
        let days = if series.documents < 5 && fraction < 1.0 {
            days_of(first, last)
        } else {
            days_of(series.first, series.last)
        };
        series.documents as f64 / fraction / days.max(1.0)
    };
    let a_day = seen.values().map(|series| density(series) * series.documents as f64).sum::<f64>() / sampled as f64;
    let others: Vec<&PathFacts> = collection
        .shape
        .paths
        .iter()
        .filter(|other| !["_id", time, &*facts.path].contains(&&*other.path) && !other.path.starts_with("_id."))
        .collect();
    let is_number = |other: &&&PathFacts| {
        let numbers: u64 = ["int", "long", "double", "decimal"].iter().map(|name| other.count_of(name)).sum();
        numbers == other.values && !other.path.contains('.')
    };
    let numbers: Vec<String> = others.iter().filter(is_number).map(|other| other.path.clone()).collect();
    Some(Series {
        time: time.to_owned(),
        field: facts.path.clone(),
        is_named: is_named(facts.name()),
        hex: is_hex(&collection.sample, &facts.path),
        number,
        a_day,
        is_thin,
        only_numbers: numbers.len() == others.len(),
        numbers,
        whole_days,
    })
}

impl Series {
    /// The field of the first level by which a bucket can tell the series apart: the document around the field, if it is the same in all
    /// documents of a series. `None` if there is none.
    pub(super) fn top_level(&self, collection: &Collection) -> Option<&str> {
        let (top, is_nested) = match self.field.split_once('.') {
            Some((top, _)) => (top, true),
            None => (&*self.field, false),
        };
        let around: HashSet<u64> = collection
            .sample
            .iter()
            .filter(|_| is_nested)
            .filter_map(|doc| at(doc, top))
            .map(|value| hash(&value))
            .collect();
        let tells = !is_nested || around.len() as u64 == self.number;
        (tells && !self.time.contains('.')).then_some(top)
    }

    /// Looks some of the series up, if the sample does not show how dense they are.
    pub(super) async fn made_sure(self, reader: &Reader<'_>, collection: &Collection) -> Result<Series> {
        const LOOKED_UP: usize = 20;
        if !self.is_thin {
            return Ok(self);
        }
        if collection.statistics.bytes > MEASURED_WHOLE && !collection.statistics.is_indexed(&self.field) {
            return Ok(Series { a_day: 0.0, ..self });
        }
        // Chosen by their documents, as a document chosen at random chooses its series: dense ones more often.
        let step = (collection.sample.len() / LOOKED_UP).max(1);
        let values = collection.sample.iter().step_by(step).take(LOOKED_UP).filter_map(|doc| at(doc, &self.field));
        let stages = [
            mql::call("$match", mql::object([(&*self.field, mql::call("$in", list(values)))])),
            mql::object([(
                "$group",
                mql::object([
                    ("_id", mql::field(&self.field)),
                    ("n", mql::call("$sum", Value::Int32(1))),
                    ("first", mql::call("$min", mql::field(&self.time))),
                    ("last", mql::call("$max", mql::field(&self.time))),
                ]),
            )]),
        ];
        let rows =
            reader.aggregate(&collection.ns, &stages.into_iter().collect(), Bound::documents(LOOKED_UP as u64)).await?;
        let a_day = rows.iter().filter_map(|row| match (row.get("first"), row.get("last")) {
            (Some(Value::DateTime(first)), Some(Value::DateTime(last))) => {
                Some(share(figure(row, "n"), 1) / days_of(first, last).max(1.0))
            }
            _ => None,
        });
        Ok(Series { a_day: a_day.sum::<f64>() / share(rows.len().max(1) as u64, 1), ..self })
    }

    /// The share of periods of so many days, between the first and the last document of all, that have documents of a series; nothing if
    /// the sample cannot tell.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a share of periods")]
    pub(super) fn fill(&self, collection: &Collection, days: f64) -> Option<f64> {
        if (collection.sample.len() as u64) < collection.statistics.count {
            return None;
        }
        let length = ((days * DAY as f64) as i64).max(1);
        let (mut periods, mut series) = (HashSet::new(), HashSet::new());
        let (mut first, mut last) = (i64::MAX, i64::MIN);
        for doc in &collection.sample {
            let (Some(Value::DateTime(made)), Some(key)) = (at(doc, &self.time), at(doc, &self.field)) else {
                continue;
            };
            let (key, period) = (hash(&key), made.div_euclid(length));
            (first, last) = (first.min(period), last.max(period));
            periods.insert((key, period));
            series.insert(key);
        }
        let all = (last - first + 1).max(1) as f64 * series.len() as f64;
        Some(periods.len() as f64 / all.max(1.0))
    }
}

/// Of one moment to another, an hour more: a single document takes its time too.
#[expect(clippy::cast_precision_loss, reason = "days for people")]
fn days_of(from: i64, to: i64) -> f64 {
    (to - from) as f64 / DAY as f64 + 1.0 / 24.0
}

/// Long texts of lower-case hex digits only: in other cases bytes would not give the same text back.
fn is_hex(sample: &[Doc<'static>], path: &str) -> bool {
    let is_hex = |doc: &Doc<'static>| match at(doc, path) {
        Some(Value::String(text)) => {
            let text = text.as_str();
            text.len() >= 16
                && text.len().is_multiple_of(2)
                && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        }
        _ => false,
    };
    !sample.is_empty() && sample.iter().all(is_hex)
}
