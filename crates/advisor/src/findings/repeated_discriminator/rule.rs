//! Buckets of a rule in force whose slots stand in an array: the same rule with the slots as names of fields.

use super::{ELEMENTS, FEWEST, SYMPTOM, index_is_large};
use crate::declare::{self, flow, word};
use crate::reader::Bound;
use crate::report::{Finding, Severity};
use crate::statistics::Statistics;
use crate::survey::Survey;
use crate::values::{count, figures, ids, measure, text};
use document::op::Namespace;
use document::{Doc, DocWriter, Value};

/// So many buckets show how long the arrays are.
const LOOKED_AT: u64 = 1_000;

/// One for each rule. A catalog or buckets that may not be read are as if there were none.
pub(super) async fn of_rules(survey: &Survey<'_>) -> Vec<Finding> {
    let mut all = Vec::new();
    for rule in &survey.rules {
        let Some(collection) = rule.name.strip_suffix(".bucket") else { continue };
        let Some(block) = declared(survey, collection).await else { continue };
        all.extend(of_rule(survey, collection, &block).await);
    }
    all
}

/// The rule's own words, if its slots stand in an array.
async fn declared(survey: &Survey<'_>, collection: &str) -> Option<Doc<'static>> {
    let catalog = Namespace::new(survey.database, "pleach.catalog");
    let rules = survey.reader.matching(&catalog, &DocWriter::new().finish(), Bound::documents(1_000)).await.ok()?;
    rules.iter().find_map(|rule| {
        let declaration = inner(rule, "declaration")?;
        let block = inner(&inner(&inner(&declaration, "collections")?, collection)?, "bucket")?;
        let is_array = text(&block, "layout") == "array" && block.contains("slot");
        is_array.then(|| block.into_owned())
    })
}

fn inner<'d>(doc: &Doc<'d>, name: &str) -> Option<Doc<'d>> {
    match doc.get(name) {
        Some(Value::Document(inner)) => Some(inner),
        _ => None,
    }
}

async fn of_rule(survey: &Survey<'_>, collection: &str, block: &Doc<'_>) -> Option<Finding> {
    let into = match text(block, "into") {
        name if name.is_empty() => format!("{collection}_buckets"),
        name => name,
    };
    let stored = Namespace::new(survey.database, &into);
    let statistics = Statistics::of(survey.reader, &stored).await.ok()?;
    let looked_at = Bound::documents(LOOKED_AT);
    let buckets = survey.reader.matching(&stored, &DocWriter::new().finish(), looked_at).await.ok()?;
    finding(survey.database, collection, block, &into, &statistics, &buckets)
}

fn finding(
    database: &str,
    collection: &str,
    block: &Doc<'_>,
    into: &str,
    statistics: &Statistics,
    buckets: &[Doc<'static>],
) -> Option<Finding> {
    let arrays: Vec<Slots> = buckets.iter().filter_map(slots).collect();
    let first = arrays.first()?;
    #[expect(clippy::cast_precision_loss, reason = "figures")]
    let [sampled, elements, bytes] = [
        arrays.len(),
        arrays.iter().map(|slots| slots.elements).sum(),
        buckets.iter().map(|bucket| bucket.as_bytes().len()).sum(),
    ]
    .map(|number| number as f64);
    let (average, document) = (elements / sampled, bytes / sampled);
    if statistics.count < FEWEST || average < ELEMENTS {
        return None;
    }
    // The discriminator with its type and name is replaced by digits in the element's own name.
    #[expect(clippy::cast_precision_loss, reason = "bytes")]
    let saved = (first.discriminator.len() as f64 + 7.0) * average;
    let mut finding = Finding::new(&SYMPTOM, &Namespace::new(database, collection), &first.path);
    finding.severity = Severity::Warn;
    finding.confidence = 0.9;
    finding.verdict = format!(
        "each element of `{}` in {into} repeats its `{}`: store it as the name of a field",
        first.path, first.discriminator
    );
    finding.shown = vec![
        format!("{average:.1} elements in a bucket, each with its own `{}`", first.discriminator),
        format!("{document:.0} bytes in a bucket on average"),
        format!("about {saved:.0} bytes less in a bucket ({:.0} %)", 100.0 * saved / document),
    ];
    finding.evidence = figures([
        ("elements", measure(average)),
        ("discriminator", Value::string(&*first.discriminator)),
        ("document_bytes", measure(document)),
        ("index_bytes", count(statistics.index_bytes)),
        ("data_bytes", count(statistics.bytes)),
        ("examples", ids(buckets.iter().take(3))),
    ]);
    finding.gain = figures([("bytes_a_document", measure(saved)), ("share", measure(saved / document))]);
    let lines: Vec<String> = block
        .iter()
        .map(|(name, value)| match name.as_str() {
            "layout" => "layout: field_names".to_owned(),
            name => format!("{}: {}", word(name), flow(&value)),
        })
        .collect();
    finding.declaration = declare::collection_rule(database, collection, "bucket", &lines);
    Some(finding.weighed(index_is_large(statistics).into_iter().collect()))
}

struct Slots {
    path: String,
    discriminator: String,
    elements: usize,
}

/// The array of a bucket, and what its elements are told apart by: their first field.
fn slots(bucket: &Doc<'_>) -> Option<Slots> {
    bucket.iter().find_map(|(path, value)| {
        let Value::Array(items) = value else { return None };
        let Some(Value::Document(first)) = items.get(0) else { return None };
        let discriminator = first.iter().next()?.0.as_str().to_owned();
        Some(Slots { path: path.as_str().to_owned(), discriminator, elements: items.iter().count() })
    })
}
