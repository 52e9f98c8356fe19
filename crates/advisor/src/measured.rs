//! The lengths of arrays and the sizes of documents in the whole collection: what a sample misses is the few that are far larger. Counted
//! where the documents are stored, in one pass, if the collection is not too large for that.

use crate::age::Age;
use crate::options::MEASURED_WHOLE;
use crate::reader::{Bound, Reader};
use crate::sample::Spread;
use crate::shape::Shape;
use crate::statistics::Statistics;
use crate::thresholds::{ARRAY_MAX, ARRAY_P95, OUTLIER_LENGTH};
use crate::values::figure;
use document::op::Namespace;
use document::{Doc, DocWriter, Result, Value};
use patterns::mql;

/// So many array paths are measured.
const MOST_ARRAYS: usize = 8;
/// So many of the largest documents are named.
const EXAMPLES: i32 = 5;
/// Smaller documents are not named.
const LARGE: u64 = 16 << 10;

/// Figures of all documents, or of the sample.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// Of all documents, not only of the sample.
    pub is_whole: bool,
    pub documents: u64,
    pub arrays: Vec<MeasuredArray>,
    /// The most bytes of a document.
    pub largest: u64,
    /// The `_id`s of the largest documents, with their bytes.
    pub largest_ids: Vec<(Value<'static>, u64)>,
    /// Their bytes, and when they were made: milliseconds since 1970.
    pub largest_made: Vec<(u64, i64)>,
}

/// One array of the documents.
#[derive(Clone, Debug, Default)]
pub struct MeasuredArray {
    pub path: String,
    pub p95: u64,
    pub max: u64,
    /// From so many items on a document is far from the others.
    pub limit: u64,
    /// How many documents have more items than that.
    pub over_limit: u64,
    /// The share of the sampled documents that have the most items: an array that is cut at a length has many.
    pub at_max: f64,
    /// The `_id`s of the documents with the most items, with how many.
    pub longest: Vec<(Value<'static>, u64)>,
}

impl Measured {
    pub fn array(&self, path: &str) -> Option<&MeasuredArray> {
        self.arrays.iter().find(|array| array.path == path)
    }
}

/// From so many items on a document is far from the others: ten times what nearly all have, and enough to matter.
fn limit(p95: u64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small factor")]
    let far = p95.saturating_mul(OUTLIER_LENGTH as u64);
    far.clamp(ARRAY_P95, ARRAY_MAX)
}

/// Measures; what cannot be read whole is taken from the sample.
pub async fn measure(
    reader: &Reader<'_>,
    ns: &Namespace,
    statistics: &Statistics,
    shape: &Shape,
    spread: Spread,
    age: &Age,
) -> Measured {
    let sampled = Measured { is_whole: spread == Spread::Whole, ..of_sample(shape) };
    if statistics.bytes > MEASURED_WHOLE || reader.cancel.is_set() {
        return sampled;
    }
    if sampled.is_whole {
        return with_examples(reader, ns, age, sampled).await;
    }
    match whole(reader, ns, &sampled).await {
        Ok(measured) => with_examples(reader, ns, age, measured).await,
        // It took too long, or the server has no such stage: the sample stays.
        Err(_) => sampled,
    }
}

fn of_sample(shape: &Shape) -> Measured {
    let mut arrays: Vec<MeasuredArray> = shape
        .paths
        .iter()
        .filter(|facts| {
            !facts.in_array
                && facts.lengths.count > 0
                && !facts.path.split('.').any(|part| part == crate::shape::ANY_NAME)
        })
        .map(|facts| {
            let (p95, max) = (facts.lengths.percentile(95), facts.lengths.max);
            let limit = limit(p95);
            let times = |above: u64| share_of(facts.lengths.above(above), facts.lengths.count);
            MeasuredArray {
                path: facts.path.clone(),
                p95,
                max,
                limit,
                over_limit: times(limit),
                at_max: facts.lengths.above(max.saturating_sub(1)),
                longest: Vec::new(),
            }
        })
        .collect();
    arrays.sort_by(|one, other| other.max.cmp(&one.max).then_with(|| one.path.cmp(&other.path)));
    arrays.truncate(MOST_ARRAYS);
    Measured { is_whole: false, documents: shape.documents, arrays, largest: shape.sizes.max, ..Measured::default() }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count"
)]
fn share_of(share: f64, count: u64) -> u64 {
    (share * count as f64).round() as u64
}

/// `{ $size: … }` of an array, 0 of anything else.
fn length(path: &str) -> Value<'static> {
    let is_array = mql::call("$isArray", mql::list([mql::field(path)]));
    mql::cond(is_array, mql::call("$size", mql::field(path)), Value::Int32(0))
}

/// Names the largest documents, and those with the longest arrays, where they are far from the others.
async fn with_examples(reader: &Reader<'_>, ns: &Namespace, age: &Age, mut measured: Measured) -> Measured {
    for array in measured.arrays.iter_mut().filter(|array| array.max >= ARRAY_P95) {
        array.longest = ids(&most(reader, ns, age, length(&array.path)).await.unwrap_or_default());
    }
    if measured.largest > LARGE {
        let size = mql::call("$bsonSize", Value::from("$$ROOT"));
        let rows = most(reader, ns, age, size).await.unwrap_or_default();
        measured.largest_ids = ids(&rows);
        measured.largest_made = rows.iter().filter_map(|row| Some((figure(row, "n"), age.made(row)?))).collect();
    }
    measured
}

/// The documents for which an expression gives the most: their `_id`, what it gives as `n`, and what tells their age.
async fn most(reader: &Reader<'_>, ns: &Namespace, age: &Age, expression: Value<'static>) -> Result<Vec<Doc<'static>>> {
    let stage = |name: &str, argument: Value<'_>| mql::call(name, argument);
    let mut shown = vec![("n", expression)];
    if let Age::Field(path) = age {
        shown.push((path, Value::Int32(1)));
    }
    let stages = [
        stage("$project", mql::object(shown)),
        stage("$sort", mql::object([("n", Value::Int32(-1)), ("_id", Value::Int32(1))])),
        stage("$limit", Value::Int32(EXAMPLES)),
    ];
    reader.aggregate(ns, &stages.into_iter().collect(), Bound::documents(8)).await
}

fn ids(rows: &[Doc<'static>]) -> Vec<(Value<'static>, u64)> {
    rows.iter().map(|row| (row.get("_id").unwrap_or(Value::Null), figure(row, "n"))).collect()
}

/// One pass over all documents.
async fn whole(reader: &Reader<'_>, ns: &Namespace, sampled: &Measured) -> Result<Measured> {
    let mut group = DocWriter::new();
    group.append("_id", &Value::Null);
    group.append("n", &mql::call("$sum", Value::Int32(1)));
    group.append("largest", &mql::call("$max", mql::call("$bsonSize", Value::from("$$ROOT"))));
    for (number, array) in sampled.arrays.iter().enumerate() {
        let length = length(&array.path);
        group.append(&format!("max{number}"), &mql::call("$max", length.borrow()));
        let over = mql::call_with("$gt", [length, figure_of(array.limit)]);
        group.append(&format!("over{number}"), &mql::call("$sum", mql::cond(over, Value::Int32(1), Value::Int32(0))));
    }
    let stages = [mql::object([("$group", Value::Document(group.finish()))])].into_iter().collect();
    let answer = reader.aggregate(ns, &stages, Bound::documents(1)).await?;
    let Some(row) = answer.first() else { return Ok(sampled.clone()) };
    let mut measured = sampled.clone();
    measured.is_whole = true;
    measured.documents = figure(row, "n");
    measured.largest = figure(row, "largest").max(sampled.largest);
    for (number, array) in measured.arrays.iter_mut().enumerate() {
        array.max = figure(row, &format!("max{number}")).max(array.max);
        array.over_limit = figure(row, &format!("over{number}"));
    }
    Ok(measured)
}

fn figure_of(number: u64) -> Value<'static> {
    Value::Int64(i64::try_from(number).unwrap_or(i64::MAX))
}
