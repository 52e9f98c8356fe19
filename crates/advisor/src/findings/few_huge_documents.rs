//! A few documents are far larger than all others: their array overflows into a collection of its own, and the others stay as they are.

use super::Symptom;
use crate::declare;
use crate::measured::MeasuredArray;
use crate::report::{Against, Finding, Severity, grouped};
use crate::survey::{Collection, Survey};
use crate::thresholds::{ARRAY_MAX, ARRAY_P95, OUTLIER_LENGTH, OUTLIER_SHARE, OUTLIER_SIZE};
use crate::values::{count, figures, list, measure, share};
use document::Value;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "few_huge_documents",
    pattern: "outlier",
    help: "A few documents are a hundred times larger than the average.",
    looks_at: "The lengths of arrays and the sizes of all documents: the longest over 10 times the 95th percentile in under 1 % of the documents, or the largest document over 100 times the average.",
    reasons_against: "Most documents are large: that is `unbounded_array`; a large document without a long array has nothing that could overflow.",
    find: |survey| Box::pin(find(survey)),
};

/// A smaller document is no burden, however far from the others it is.
const LARGE: u64 = 16 << 10;

async fn find<'a>(survey: &'a Survey<'a>) -> document::Result<Vec<Finding>> {
    let mut all = Vec::new();
    for collection in &survey.collections {
        let arrays = collection.measured.arrays.iter().filter(|array| is_outlier(collection, array));
        let found: Vec<Finding> = arrays.map(|array| of_array(survey, collection, array)).collect();
        if found.is_empty() {
            all.extend(without_array(collection));
        }
        all.extend(found);
    }
    Ok(all)
}

/// Few documents have far more items than nearly all others have.
fn is_outlier(collection: &Collection, array: &MeasuredArray) -> bool {
    let over = share(array.over_limit, collection.measured.documents);
    let has_documents = collection.shape.path(&array.path).is_some_and(|facts| facts.has_documents());
    // Arrays of documents that are long in general are lifted, not cut.
    let is_long = has_documents && array.p95 > ARRAY_P95;
    array.max > array.limit && over > 0.0 && over < OUTLIER_SHARE && !is_long
}

fn of_array(survey: &Survey<'_>, collection: &Collection, array: &MeasuredArray) -> Finding {
    let over = share(array.over_limit, collection.measured.documents);
    #[expect(clippy::cast_precision_loss, reason = "lengths")]
    let times = array.max as f64 / (array.p95.max(1) as f64);
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &array.path);
    finding.severity = Severity::by(times, OUTLIER_LENGTH).max(Severity::Warn);
    if array.max < ARRAY_MAX {
        finding.severity = Severity::Warn;
    }
    finding.confidence = if collection.measured.is_whole { 0.95 } else { 0.7 };
    finding.verdict = format!(
        "a few documents have far more `{}` than the others: let what is past the first items overflow",
        array.path
    );
    let documents = grouped(collection.measured.documents);
    finding.shown = vec![
        format!("{} items at most, {} at the 95th percentile", grouped(array.max), grouped(array.p95)),
        format!(
            "{} of {documents} documents have over {} items ({:.2} %)",
            grouped(array.over_limit),
            grouped(array.limit),
            over * 100.0
        ),
        format!(
            "the largest document has {} bytes, the average one {}",
            grouped(collection.measured.largest),
            grouped(collection.statistics.average())
        ),
    ];
    finding.evidence = figures([
        ("documents", count(collection.measured.documents)),
        ("p95", count(array.p95)),
        ("max", count(array.max)),
        ("limit", count(array.limit)),
        ("over", count(array.over_limit)),
        ("share", measure(over)),
        ("largest_bytes", count(collection.measured.largest)),
        ("average_bytes", count(collection.statistics.average())),
        ("whole", Value::Bool(collection.measured.is_whole)),
        ("examples", list(array.longest.iter().filter(|(_, items)| *items > array.limit).map(|(id, _)| id.borrow()))),
    ]);
    finding.declaration = declaration(survey, collection, array);
    let kept = keep(array.p95);
    finding.gain =
        figures([("items_in_the_largest_now", count(array.max)), ("items_in_the_largest_then", count(kept))]);
    let mut against = Vec::new();
    if array.path.contains('.') {
        let reason =
            "the array is inside of another field: only an array on the first level of its document can overflow";
        against.push(Against::new(reason, figures([])));
    }
    finding.weighed(against)
}

/// A document that is large for another reason.
fn without_array(collection: &Collection) -> Option<Finding> {
    let (largest, average) = (collection.measured.largest, collection.statistics.average());
    #[expect(clippy::cast_precision_loss, reason = "sizes")]
    let times = largest as f64 / average.max(1) as f64;
    let is_explained = collection.measured.arrays.iter().any(|array| array.max > ARRAY_P95);
    if times < OUTLIER_SIZE || largest < LARGE || is_explained {
        return None;
    }
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, "");
    finding.confidence = 0.6;
    finding.verdict =
        "a document is far larger than the others, but no long array makes it so: there is nothing to declare"
            .to_owned();
    finding.shown = vec![
        format!("the largest document has {} bytes", grouped(largest)),
        format!("the average one has {}", grouped(average)),
        format!("that is {times:.0} times as many"),
    ];
    finding.evidence = figures([
        ("largest_bytes", count(largest)),
        ("average_bytes", count(average)),
        ("examples", list(collection.measured.largest_ids.iter().take(1).map(|(id, _)| id.borrow()))),
    ]);
    Some(finding)
}

/// So many items stay: all of nearly every document.
fn keep(p95: u64) -> u64 {
    [10, 20, 50, 100, 200, 500].into_iter().find(|keep| *keep >= p95 * 2).unwrap_or(1_000)
}

fn declaration(survey: &Survey<'_>, collection: &Collection, array: &MeasuredArray) -> Option<String> {
    let overflow = survey.free_name(&format!("{}_{}_overflow", collection.name(), array.path.replace('.', "_")));
    let mut parts = vec![("keep", keep(array.p95).to_string()), ("overflow", declare::word(&overflow))];
    // The defaults, unless the documents have fields of these names already.
    let (flag, length) = ("hasOverflow", format!("{}Count", array.path));
    if let Some(free) = collection.other_name(flag) {
        parts.push(("flag", declare::word(&free)));
    }
    if let Some(free) = collection.other_name(&length) {
        parts.push(("count", declare::word(&free)));
    }
    declare::field_rule(survey.database, collection.name(), "outlier", &array.path, &declare::map(&parts))
}
