//! An array of documents that grows without bound: the window of its first items stays, and the items become documents of their own.

use super::{Symptom, repeated_discriminator};
use crate::declare;
use crate::measured::MeasuredArray;
use crate::report::{Against, Finding, Severity, grouped};
use crate::shape::PathFacts;
use crate::survey::{Collection, Survey};
use crate::thresholds::{ARRAY_MAX, ARRAY_P95, DAYS_TO_FULL, DOCUMENT_BYTES, GROWTH, OUTLIER_SHARE};
use crate::values::{at, count, figures, list, measure, share};
use document::Value;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "unbounded_array",
    pattern: "subset",
    help: "An array of documents grows without bound.",
    looks_at: "Arrays of documents: over 100 items at the 95th percentile or over 1,000 in more than 1 % of the documents, and whether they grow with the document's age.",
    reasons_against: "All of the array is read each time; its items have no order; its length is bounded.",
    find: |survey| Box::pin(find(survey)),
};

/// A window keeps so many items.
const KEEP: u64 = 10;

/// With fewer reads nothing is said of all.
const READS: u64 = 20;

/// An array that is cut at a length has it in so many documents, and in as many others it is not there yet.
const CUT_SHARE: f64 = 0.05;

async fn find<'a>(survey: &'a Survey<'a>) -> document::Result<Vec<Finding>> {
    let mut all = Vec::new();
    for collection in &survey.collections {
        for facts in collection.shape.paths.iter().filter(|facts| !facts.in_array && facts.has_documents()) {
            // Slots are bounded by what tells them apart.
            let is_slots = repeated_discriminator::is_slots(collection, &facts.path);
            let Some(array) = collection.measured.array(&facts.path).filter(|_| !is_slots) else { continue };
            all.extend(of_array(survey, collection, facts, array));
        }
    }
    Ok(all)
}

fn of_array(survey: &Survey<'_>, collection: &Collection, facts: &PathFacts, array: &MeasuredArray) -> Option<Finding> {
    let over = share(array.over_limit, collection.measured.documents);
    let is_long = array.p95 > ARRAY_P95 || (array.max > ARRAY_MAX && over >= OUTLIER_SHARE);
    let growth = Growth::of(collection, &facts.path);
    let grows = growth.as_ref().is_some_and(|growth| growth.factor >= GROWTH && growth.oldest > 20.0);
    // Where a few are far longer than the others, that is another symptom.
    if !is_long && (!grows || (array.max > array.limit && over < OUTLIER_SHARE)) {
        return None;
    }
    let days = days_to_full(collection, facts);
    let severity = if days.is_some_and(|days| days < DAYS_TO_FULL) {
        Severity::Urgent
    } else if is_long {
        #[expect(clippy::cast_precision_loss, reason = "a length")]
        let worst = (array.p95 as f64 / ARRAY_P95 as f64).max(if over >= OUTLIER_SHARE {
            array.max as f64 / ARRAY_MAX as f64
        } else {
            0.0
        });
        Severity::by(worst, 1.0).max(Severity::Warn)
    } else {
        Severity::Warn
    };
    let (average, p95) = (facts.lengths.average(), array.p95);
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &facts.path);
    finding.severity = severity;
    finding.confidence = match (is_long, grows) {
        (true, true) => 0.95,
        (true, false) => 0.8,
        (false, _) => 0.65,
    };
    finding.verdict = format!(
        "`{}` grows without bound: keep its first items, and the others in a collection of their own",
        facts.path
    );
    finding.shown = vec![
        format!("{} items at the 95th percentile, {} at most", grouped(p95), grouped(array.max)),
        format!(
            "the array is {:.0} % of the bytes of these documents",
            100.0 * share(facts.bytes, collection.shape.sizes.sum)
        ),
        match (&growth, days) {
            (_, Some(days)) => format!("a document reaches 16 MB in about {days:.0} days"),
            (Some(growth), None) => {
                format!(
                    "{:.0} items in the oldest third of the documents, {:.0} in the newest",
                    growth.oldest, growth.newest
                )
            }
            (None, None) => format!("{average:.0} items on average"),
        },
    ];
    let mut evidence = vec![
        ("documents", count(collection.measured.documents)),
        ("p95", count(p95)),
        ("max", count(array.max)),
        ("average", measure(average)),
        ("over", count(array.over_limit)),
        ("bytes_share", measure(share(facts.bytes, collection.shape.sizes.sum))),
        ("whole", Value::Bool(collection.measured.is_whole)),
    ];
    if let Some(growth) = &growth {
        evidence.push(("oldest", measure(growth.oldest)));
        evidence.push(("newest", measure(growth.newest)));
    }
    if let Some(days) = days {
        evidence.push(("days_to_16_mb", measure(days)));
    }
    evidence.push(("examples", list(array.longest.iter().map(|(id, _)| id.borrow()))));
    finding.evidence = figures(evidence);
    let order = order(collection, &facts.path);
    finding.declaration = order.as_ref().and_then(|order| declaration(survey, collection, facts, order));
    let kept = facts.bytes.checked_div(facts.lengths.sum.max(1)).unwrap_or_default() * KEEP;
    let left = collection
        .shape
        .sizes
        .sum
        .saturating_sub(facts.bytes)
        .checked_div(collection.shape.documents)
        .unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "an average of sizes")]
    let before = collection.shape.sizes.average() as u64;
    finding.gain =
        figures([("document_bytes_now", count(before)), ("document_bytes_then", count((left + kept).min(before)))]);
    Some(finding.weighed(against(survey, collection, facts, array, order.is_none(), grows)))
}

fn against(
    survey: &Survey<'_>,
    collection: &Collection,
    facts: &PathFacts,
    array: &MeasuredArray,
    has_no_order: bool,
    grows: bool,
) -> Vec<Against> {
    let mut all = Vec::new();
    let all_read = reads_of_whole_array(survey, collection, &facts.path);
    if let Some(reads) = all_read.filter(|reads| reads.all > 0 && share(reads.whole, reads.all) > 0.9) {
        let figures = figures([("reads", count(reads.all)), ("of_the_whole_array", count(reads.whole))]);
        let reason = Against::new("nearly every read takes the whole array", figures);
        // Reads that name no fields take it whether they need it or not.
        let is_meant = reads.all >= READS && share(reads.named, reads.all) > 0.9;
        all.push(if is_meant { reason.outweighing() } else { reason });
    }
    if has_no_order {
        let reason = "its items have neither a date nor a number by which the first ones could be told";
        all.push(Against::new(reason, figures([])).outweighing());
    }
    let is_cut = (CUT_SHARE..1.0 - CUT_SHARE).contains(&array.at_max);
    if !grows && array.max < ARRAY_MAX * 10 && is_cut && collection.sampled() >= 20 {
        let figures = figures([("max", count(array.max)), ("share_at_max", measure(array.at_max))]);
        all.push(
            Against::new(format!("many arrays have exactly {} items: something bounds them", array.max), figures)
                .outweighing(),
        );
    }
    all
}

/// How many reads of the collection there are, how many take the array whole, and how many of these name it.
#[derive(Clone, Copy, Default)]
struct Reads {
    all: u64,
    whole: u64,
    named: u64,
}

/// What traffic tells of them.
fn reads_of_whole_array(survey: &Survey<'_>, collection: &Collection, path: &str) -> Option<Reads> {
    let mut seen: Option<Reads> = None;
    for shape in survey.traffic.of(survey.database, collection.name()).filter(|shape| shape.kind == "find") {
        let reads = seen.get_or_insert_default();
        reads.all += shape.count;
        if shape.takes_whole(path) {
            reads.whole += shape.count;
            reads.named += if shape.fields.is_some() { shape.count } else { 0 };
        }
    }
    seen
}

/// How an array's length goes with the age of its document.
struct Growth {
    oldest: f64,
    newest: f64,
    /// The oldest have so many times more.
    factor: f64,
}

impl Growth {
    /// The mean lengths in the oldest and in the newest third of the sample. `None` if no age is known.
    fn of(collection: &Collection, path: &str) -> Option<Growth> {
        let mut made: Vec<(i64, u64)> = lengths(collection, path).collect();
        if made.len() < 30 {
            return None;
        }
        made.sort_unstable();
        let (first, last) = (made.first()?.0, made.last()?.0);
        if first == last {
            return None;
        }
        let third = made.len() / 3;
        let mean = |part: &[(i64, u64)]| share(part.iter().map(|(_, length)| length).sum(), part.len() as u64);
        let (oldest, newest) = (mean(made.get(..third)?), mean(made.get(made.len() - third..)?));
        Some(Growth { oldest, newest, factor: oldest / newest.max(0.5) })
    }
}

fn lengths<'c>(collection: &'c Collection, path: &'c str) -> impl Iterator<Item = (i64, u64)> + 'c {
    collection.sample.iter().filter_map(move |doc| {
        let Some(Value::Array(items)) = at(doc, path) else { return None };
        Some((collection.age.made(doc)?, items.count() as u64))
    })
}

/// In how many days the fastest growing document reaches the most that a document may be, if its age is known.
fn days_to_full(collection: &Collection, facts: &PathFacts) -> Option<f64> {
    const DAY: f64 = 86_400_000.0;
    /// Smaller arrays say nothing about growth.
    const LEAST: f64 = 100_000.0;
    #[expect(clippy::cast_precision_loss, reason = "days for people")]
    let days_left = |array: u64, document: u64, made: i64| {
        let days = (collection.seen_at - made) as f64 / DAY;
        let left = DOCUMENT_BYTES as f64 - document as f64;
        (days > 1.0 && array as f64 > LEAST).then(|| left.max(0.0) / (array as f64 / days))
    };
    let of_sample = collection.sample.iter().filter_map(|doc| {
        let Some(Value::Array(items)) = at(doc, &facts.path) else { return None };
        days_left(items.as_bytes().len() as u64, doc.as_bytes().len() as u64, collection.age.made(doc)?)
    });
    // The largest are measured, and not in the sample. They are large by this array if most documents are.
    let is_most = share(facts.bytes, collection.shape.sizes.sum) > 0.5;
    let of_largest = collection.measured.largest_made.iter().filter(|_| is_most);
    let of_largest = of_largest.filter_map(|(bytes, made)| days_left(*bytes, *bytes, *made));
    of_sample.chain(of_largest).min_by(f64::total_cmp)
}

/// By what the first items are told: the newest date, else the greatest number or id.
fn order(collection: &Collection, path: &str) -> Option<String> {
    let items = collection.shape.path(path)?.items.iter().map(|(_, count)| *count).sum::<u64>();
    let fields: Vec<&PathFacts> = collection.shape.below(path).collect();
    let always = |facts: &&&PathFacts, types: &[&str]| {
        let of_type: u64 = types.iter().map(|name| facts.count_of(name)).sum();
        share(of_type, facts.values.max(items.min(facts.values))) > 0.99 && share(facts.values, items) > 0.95
    };
    let by = |types: &[&str]| fields.iter().find(|facts| always(facts, types)).map(|facts| facts.name().to_owned());
    let by_number = || {
        let is_known = |name: &str| {
            ["score", "votes", "likes", "n", "seq", "number", "rank", "version", "position", "index"].contains(&name)
        };
        fields
            .iter()
            .filter(|facts| is_known(facts.name()))
            .find(|facts| always(facts, &["int", "long", "double", "decimal"]))
            .map(|facts| facts.name().to_owned())
    };
    by(&["date"])
        .or_else(|| by(&["timestamp"]))
        .or_else(|| by(&["objectId"]).filter(|name| name == "_id"))
        .or_else(by_number)
}

fn declaration(survey: &Survey<'_>, collection: &Collection, facts: &PathFacts, order: &str) -> Option<String> {
    let from = survey.free_name(&format!("{}_{}", collection.name(), facts.path.replace('.', "_")));
    let by = free_field(collection, &facts.path, &format!("{}Id", declare::singular(collection.name())));
    let body = declare::map(&[
        ("from", declare::word(&from)),
        ("by", declare::word(&by)),
        ("sort", format!("{{ {}: -1 }}", declare::word(order))),
        ("keep", KEEP.to_string()),
        ("lift", declare::word(&facts.path)),
    ]);
    declare::field_rule(survey.database, collection.name(), "subset", &facts.path, &body)
}

/// A name that no item's field has.
fn free_field(collection: &Collection, path: &str, name: &str) -> String {
    let is_free = |name: &str| collection.shape.path(&format!("{path}.{name}")).is_none();
    if is_free(name) { name.to_owned() } else { format!("{name}_parent") }
}
