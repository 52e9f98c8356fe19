//! Several kinds of documents in one collection: each gets its own required fields and indexes.

use super::Symptom;
use crate::report::{Against, Finding, Severity, grouped};
use crate::survey::{Collection, Survey};
use crate::thresholds::KINDS_OVERLAP;
use crate::values::{count, figures, list, measure, share};
use document::Value;
use patterns::life::{InferredKinds, inferred_kinds};
use std::collections::BTreeSet;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "several_kinds",
    pattern: "polymorphic",
    help: "Several types of entities are in one collection.",
    looks_at: "A field whose values split the other fields into groups that have less than half of them in common.",
    reasons_against: "The kinds have nothing in common, and no query asks for several of them.",
    find: |survey| Box::pin(find(survey)),
};

/// With fewer documents anything splits.
const FEWEST: u64 = 20;

async fn find<'a>(survey: &'a Survey<'a>) -> document::Result<Vec<Finding>> {
    Ok(survey.collections.iter().filter_map(|collection| of_collection(survey, collection)).collect())
}

/// The field that tells kinds apart, if it does.
pub(super) fn discriminator(collection: &Collection) -> Option<String> {
    let kinds = kinds(collection)?;
    (overlap(&kinds) < KINDS_OVERLAP).then_some(kinds.discriminator)
}

fn kinds(collection: &Collection) -> Option<InferredKinds> {
    (collection.sampled() >= FEWEST).then(|| inferred_kinds(&collection.ns, &collection.sample)).flatten()
}

/// The greatest share of fields that two kinds have in common, over the kinds' own average: how alike they are.
fn overlap(kinds: &InferredKinds) -> f64 {
    let sets: Vec<BTreeSet<&String>> = kinds.kinds.iter().map(|kind| kind.fields.iter().collect()).collect();
    let (mut sum, mut pairs) = (0.0, 0.0);
    for (place, one) in sets.iter().enumerate() {
        for other in sets.iter().skip(place + 1) {
            sum += share(one.intersection(other).count() as u64, one.union(other).count() as u64);
            pairs += 1.0;
        }
    }
    if pairs == 0.0 { 1.0 } else { sum / pairs }
}

fn of_collection(survey: &Survey<'_>, collection: &Collection) -> Option<Finding> {
    let kinds = kinds(collection)?;
    let overlap = overlap(&kinds);
    if overlap >= KINDS_OVERLAP {
        return None;
    }
    let common: Vec<&String> = match kinds.kinds.split_first() {
        Some((first, others)) => {
            first.fields.iter().filter(|name| others.iter().all(|kind| kind.fields.contains(name))).collect()
        }
        None => Vec::new(),
    };
    let names: Vec<&str> = kinds.kinds.iter().map(|kind| &*kind.name).collect();
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &kinds.discriminator);
    finding.severity = Severity::Warn;
    finding.confidence = (1.0 - overlap).clamp(0.6, 0.95);
    finding.verdict = format!(
        "`{}` tells {} kinds of documents apart: say what each of them requires",
        kinds.discriminator,
        names.len()
    );
    finding.shown = vec![
        format!("kinds: {}", names.join(", ")),
        format!("two of them have {:.0} % of their fields in common", overlap * 100.0),
        format!(
            "{} of {} sampled documents have `{}`",
            grouped(kinds.kinds.iter().map(|kind| kind.documents).sum()),
            grouped(collection.sample.len() as u64),
            kinds.discriminator
        ),
    ];
    finding.evidence = figures([
        (
            "kinds",
            list(kinds.kinds.iter().map(|kind| {
                Value::Document(figures([("kind", Value::string(&*kind.name)), ("documents", count(kind.documents))]))
            })),
        ),
        ("overlap", measure(overlap)),
        ("common", list(common.iter().map(|name| Value::string(&***name)))),
        ("examples", list(kinds.kinds.iter().filter_map(|kind| kind.example.as_ref()).take(5).map(Value::borrow))),
    ]);
    finding.declaration = crate::declare::checked(kinds.declaration.clone());
    finding.gain = figures([("kinds", count(names.len() as u64))]);
    let mut against = Vec::new();
    if common.is_empty() && !is_searched_together(survey, collection, &kinds.discriminator) {
        let reason = "the kinds have no field in common and no query asks for several of them: collections of their own serve them better";
        against.push(Against::new(reason, figures([])).outweighing());
    }
    Some(finding.weighed(against))
}

/// Whether some query was seen that does not name a kind.
fn is_searched_together(survey: &Survey<'_>, collection: &Collection, discriminator: &str) -> bool {
    let mut reads = survey
        .traffic
        .of(survey.database, collection.name())
        .filter(|shape| matches!(&*shape.kind, "find" | "aggregate" | "count"));
    reads.any(|shape| !shape.filter.iter().any(|path| path == discriminator || path == "_id"))
}
