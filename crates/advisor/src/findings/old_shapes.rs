//! Documents of an older shape beside those of the newest: steps between the versions let every client see one of them.

use super::{Symptom, several_kinds};
use crate::order::{self, Step};
use crate::report::{Against, Finding, Severity, grouped};
use crate::survey::{Collection, Survey};
use crate::thresholds::{SECOND_SHAPE, SECOND_TYPE};
use crate::values::{at, count, figures, ids, measure, share};
use document::{Doc, Value};
use patterns::propose::{self, About, Evidence};
use std::collections::BTreeSet;

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "old_shapes",
    pattern: "versions",
    help: "Old documents are left behind after a change of the schema.",
    looks_at: "Fields that are there from one moment on, or not any more, in over 1 % of the documents, and paths with two types in over 0.1 %, by age.",
    reasons_against: "Optional fields come and go without an order in time.",
    find: |survey| Box::pin(find(survey)),
};

/// Changes that lie so near to each other are one.
const SAME_MOMENT: f64 = 0.03;

/// So few documents of one side may be chance.
const FEWEST: u64 = 5;
const FEWEST_OF_TYPE: u64 = 3;

/// Documents of each side from which steps are proposed.
const EVIDENCE: usize = 200;

/// Fields whose presence is a state of the document, not its schema, and what others count by themselves.
const NO_SCHEMA: &[&str] = &["_id", "__v", "_pleach"];

/// One path that changed.
#[derive(Clone, Debug)]
struct Change {
    path: String,
    kind: Kind,
    /// `None` if it has no order in time.
    step: Option<Step>,
    /// Of the older documents' side.
    documents: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    /// The older have it, the newer not.
    Gone,
    Added,
    /// From one type to another.
    Type(&'static str, &'static str),
}

async fn find<'a>(survey: &'a Survey<'a>) -> document::Result<Vec<Finding>> {
    let mut all = Vec::new();
    for collection in &survey.collections {
        all.extend(of_collection(survey, collection));
    }
    Ok(all)
}

fn of_collection(survey: &Survey<'_>, collection: &Collection) -> Vec<Finding> {
    let Some(ordered) = by_number(collection).or_else(|| order::by_age(collection)) else {
        let documents: Vec<&Doc<'static>> = collection.sample.iter().collect();
        return type_changes(collection, &documents, false)
            .into_iter()
            .map(|change| unordered(collection, &documents, &change))
            .collect();
    };
    // Kinds differ in their fields by nature: each is looked at by itself.
    let groups = match several_kinds::discriminator(collection) {
        Some(discriminator) => by_kind(&ordered, &discriminator),
        None => vec![ordered],
    };
    let mut found = Vec::new();
    for documents in groups {
        for moment in moments(changes(collection, &documents)) {
            found.push(of_moment(survey, collection, &documents, &moment));
        }
        let without_order =
            type_changes(collection, &documents, true).into_iter().filter(|change| change.step.is_none());
        found.extend(without_order.map(|change| unordered(collection, &documents, &change)));
    }
    // One change may show in several kinds.
    let mut known = BTreeSet::new();
    found.retain(|finding| known.insert(finding.field.clone()));
    found
}

/// From the oldest version to the newest, if the documents have numbers of versions.
fn by_number(collection: &Collection) -> Option<Vec<&Doc<'static>>> {
    const MOST: usize = 50;
    let field = collection.version_field();
    let facts = collection.shape.path(&field)?;
    let number = |doc: &&Doc<'static>| at(doc, &field).and_then(|value| value.as_i64_exact()).unwrap_or_default();
    let versions = facts.distinct.few(MOST)?;
    let is_numbered = versions.len() > 1 && versions.iter().all(|(value, _)| value.as_i64_exact().is_some());
    let mut documents: Vec<&Doc<'static>> = collection.sample.iter().collect();
    documents.sort_by_key(number);
    is_numbered.then_some(documents)
}

fn by_kind<'d>(documents: &[&'d Doc<'static>], discriminator: &str) -> Vec<Vec<&'d Doc<'static>>> {
    let mut groups: Vec<(String, Vec<&Doc<'static>>)> = Vec::new();
    for doc in documents {
        let kind = at(doc, discriminator).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default();
        match groups.iter_mut().find(|(name, _)| *name == kind) {
            Some((_, group)) => group.push(doc),
            None => groups.push((kind, vec![doc])),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// Paths through documents, not through arrays, whose names are no data.
fn paths(collection: &Collection) -> impl Iterator<Item = &str> {
    let is_plain = |path: &str| {
        !path.split('.').any(|part| part == crate::shape::ANY_NAME || part.is_empty() || part.starts_with('$'))
    };
    let paths = collection.shape.paths.iter().filter(|facts| !facts.in_array).map(|facts| &*facts.path);
    paths.filter(move |path| is_plain(path) && !NO_SCHEMA.contains(&path.split('.').next().unwrap_or_default()))
}

fn changes(collection: &Collection, documents: &[&Doc<'static>]) -> Vec<Change> {
    let mut all: Vec<Change> =
        type_changes(collection, documents, true).into_iter().filter(|change| change.step.is_some()).collect();
    for path in paths(collection) {
        // What lies below a field that changed changed with it.
        let is_below = |change: &Change| path.strip_prefix(&*change.path).is_some_and(|rest| rest.starts_with('.'));
        if all.iter().any(is_below) {
            continue;
        }
        let has: Vec<bool> = documents.iter().map(|doc| at(doc, path).is_some()).collect();
        let Some(step) = order::step(&has, FEWEST) else { continue };
        let without = step.documents - step.with;
        let (kind, older) = if step.before { (Kind::Gone, step.with) } else { (Kind::Added, without) };
        if share(older, step.documents) >= SECOND_SHAPE && share(step.documents - older, step.documents) >= SECOND_SHAPE
        {
            all.push(Change { path: path.to_owned(), kind, step: Some(step), documents: older });
        }
    }
    if all.is_empty() {
        all = replaced(collection, documents);
    }
    all
}

/// Paths of which each document has one of two, and the newest only one: the older ones are partly migrated.
fn replaced(collection: &Collection, documents: &[&Doc<'static>]) -> Vec<Change> {
    const MOST: usize = 60;
    const EITHER: f64 = 0.99;
    let own: Vec<&str> = paths(collection).collect();
    let presence = |path: &&str| -> Vec<bool> { documents.iter().map(|doc| at(doc, path).is_some()).collect() };
    let some: Vec<(&str, Vec<bool>)> = own
        .into_iter()
        .map(|path| (path, presence(&path)))
        .filter(|(_, has)| {
            let with = share(has.iter().filter(|has| **has).count() as u64, has.len() as u64);
            (SECOND_SHAPE..=1.0 - SECOND_SHAPE).contains(&with)
        })
        .take(MOST)
        .collect();
    let mut all: Vec<Change> = Vec::new();
    for (path, has) in &some {
        let Some(step) = order::gone_since(has, FEWEST) else { continue };
        let is_other = |other: &[bool]| {
            let either = has.iter().zip(other).filter(|(one, other)| one != other).count();
            share(either as u64, has.len() as u64) >= EITHER
        };
        let Some((new, _)) = some.iter().find(|(other, presence)| other != path && is_other(presence)) else {
            continue;
        };
        let older = step.with;
        all.push(Change { path: (*path).to_owned(), kind: Kind::Gone, step: Some(step), documents: older });
        all.push(Change { path: (*new).to_owned(), kind: Kind::Added, step: Some(step), documents: older });
    }
    all
}

/// Paths with values of two types, in order of time or not.
fn type_changes(collection: &Collection, documents: &[&Doc<'static>], in_time: bool) -> Vec<Change> {
    let mut all = Vec::new();
    for path in paths(collection) {
        let is_mixed = collection.shape.path(path).is_some_and(|facts| {
            let mut classes: Vec<&str> = facts.types.iter().filter_map(|(name, _)| class(name)).collect();
            classes.sort_unstable();
            classes.dedup();
            classes.len() > 1
        });
        if !is_mixed {
            continue;
        }
        let typed: Vec<&'static str> = documents.iter().filter_map(|doc| class(at(doc, path)?.type_name())).collect();
        let (Some(first), Some(last)) =
            (most(typed.iter().take(typed.len().div_ceil(2))), most(typed.iter().rev().take(typed.len().div_ceil(2))))
        else {
            continue;
        };
        let second = match first == last {
            true => most(typed.iter().filter(|name| **name != first)),
            false => Some(last),
        };
        let Some(second) = second else { continue };
        let number = typed
            .iter()
            .filter(|name| **name == second)
            .count()
            .min(typed.iter().filter(|name| **name != second).count()) as u64;
        if share(number, typed.len() as u64) < SECOND_TYPE || number < 2 {
            continue;
        }
        let has: Vec<bool> = typed.iter().map(|name| *name == second).collect();
        let lacks: Vec<bool> = has.iter().map(|has| !has).collect();
        let partly = || {
            let gone = order::gone_since(&has, FEWEST_OF_TYPE);
            let other = || {
                order::gone_since(&lacks, FEWEST_OF_TYPE).map(|step| Step {
                    before: false,
                    with: step.documents - step.with,
                    ..step
                })
            };
            gone.or_else(other)
        };
        let step = in_time.then(|| order::step(&has, FEWEST_OF_TYPE).or_else(partly)).flatten();
        let (older, newer) = if step.is_some_and(|step| step.before) { (second, first) } else { (first, second) };
        let documents = typed.iter().filter(|name| **name == older).count() as u64;
        all.push(Change {
            path: path.to_owned(),
            kind: Kind::Type(older, newer),
            step,
            documents: documents.min(typed.len() as u64),
        });
    }
    all
}

/// Numbers of all types are one type, and null is missing.
fn class(type_name: &'static str) -> Option<&'static str> {
    match type_name {
        "int" | "long" | "double" | "decimal" => Some("number"),
        "null" | "undefined" | "missing" => None,
        other => Some(other),
    }
}

fn most<'n>(names: impl Iterator<Item = &'n &'static str>) -> Option<&'static str> {
    let mut counted: Vec<(&'static str, u64)> = Vec::new();
    for name in names {
        match counted.iter_mut().find(|(known, _)| known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    counted.into_iter().max_by_key(|(_, count)| *count).map(|(name, _)| name)
}

/// Changes of one moment together. A field that only newer documents lack is a state that they have not reached yet, not a change: it
/// counts only beside others.
fn moments(changes: Vec<Change>) -> Vec<Vec<Change>> {
    let mut moments: Vec<Vec<Change>> = Vec::new();
    for change in changes {
        let place = |change: &Change| change.step.map_or(0.0, |step| step.place);
        let near =
            |moment: &&mut Vec<Change>| moment.iter().any(|other| (place(other) - place(&change)).abs() < SAME_MOMENT);
        match moments.iter_mut().find(near) {
            Some(moment) => moment.push(change),
            None => moments.push(vec![change]),
        }
    }
    moments.retain(|moment| moment.iter().any(|change| change.kind != Kind::Gone));
    for moment in &mut moments {
        // The path that the older documents have is what changed; a new one is what became of it.
        moment.sort_by_key(|change| match change.kind {
            Kind::Type(..) => 0,
            Kind::Gone => 1,
            Kind::Added => 2,
        });
    }
    moments
}

fn of_moment(survey: &Survey<'_>, collection: &Collection, documents: &[&Doc<'static>], moment: &[Change]) -> Finding {
    let Some(change) = moment.first() else { return Finding::new(&SYMPTOM, &collection.ns, "") };
    let (older, newer): (Vec<&Doc<'static>>, Vec<&Doc<'static>>) =
        documents.iter().partition(|doc| change.is_older(doc));
    let old_share = share(change.documents, documents.len() as u64);
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &change.path);
    finding.severity = Severity::Warn;
    finding.confidence = if matches!(change.kind, Kind::Type(..)) || moment.len() > 1 { 0.9 } else { 0.75 };
    finding.verdict =
        "documents from before a change have another shape: declare the steps, and every client sees one of them"
            .to_owned();
    let told: Vec<String> = moment.iter().map(Change::told).collect();
    finding.shown = vec![
        told.iter().take(4).cloned().collect::<Vec<_>>().join("; "),
        format!(
            "{} of {} sampled documents are of the older shape ({:.1} %)",
            grouped(change.documents),
            grouped(documents.len() as u64),
            old_share * 100.0
        ),
        "the change has an order in time: older documents have the one, newer ones the other".to_owned(),
    ];
    finding.evidence = figures([
        ("sampled", count(documents.len() as u64)),
        ("older", count(change.documents)),
        ("share", measure(old_share)),
        ("changes", crate::values::list(told.iter().map(|told| Value::string(&**told)))),
        ("in_order_of_time", Value::Bool(true)),
        ("examples", ids(older.iter().copied())),
    ]);
    finding.declaration = declaration(survey, collection, &older, &newer);
    finding.gain = figures([("shapes_now", count(2)), ("shapes_then", count(1))]);
    finding
}

/// Two types without an order in time.
fn unordered(collection: &Collection, documents: &[&Doc<'static>], change: &Change) -> Finding {
    let mut finding = Finding::new(&SYMPTOM, &collection.ns, &change.path);
    finding.confidence = 0.4;
    finding.shown = vec![
        change.told(),
        format!("{} of {} sampled documents", grouped(change.documents), grouped(documents.len() as u64)),
        "the two have no order in time".to_owned(),
    ];
    finding.evidence = figures([
        ("sampled", count(documents.len() as u64)),
        ("second_type", count(change.documents)),
        ("in_order_of_time", Value::Bool(false)),
        ("examples", ids(std::iter::empty())),
    ]);
    let reason = "the types come and go without an order in time: they are no versions";
    finding.weighed(vec![Against::new(reason, figures([])).outweighing()])
}

impl Change {
    fn is_older(&self, doc: &Doc<'_>) -> bool {
        let value = at(doc, &self.path);
        match self.kind {
            Kind::Gone => value.is_some(),
            Kind::Added => value.is_none(),
            Kind::Type(old, _) => value.is_some_and(|value| class(value.type_name()) == Some(old)),
        }
    }

    fn told(&self) -> String {
        match self.kind {
            Kind::Gone => format!("`{}` is in older documents only", self.path),
            Kind::Added => format!("`{}` is in newer documents only", self.path),
            Kind::Type(old, new) => format!("`{}` is {old} in some documents and {new} in others", self.path),
        }
    }
}

/// Steps from the older documents to the newer ones, as `pleach versions diff` proposes them.
fn declaration(
    survey: &Survey<'_>,
    collection: &Collection,
    older: &[&Doc<'static>],
    newer: &[&Doc<'static>],
) -> Option<String> {
    let number = collection.version_field();
    let some = |documents: &[&Doc<'static>]| {
        let every = documents.len().div_ceil(EVIDENCE).max(1);
        Evidence::of_documents(documents.iter().step_by(every).map(|doc| (*doc).clone()).collect(), &number)
    };
    let about = About::new(survey.database, &number);
    let proposal = propose::from_evidence(&some(older), &some(newer), collection.name(), &about).ok()?;
    let text = propose::declaration(std::slice::from_ref(&proposal), std::slice::from_ref(&about));
    if text.is_empty() { None } else { crate::declare::checked(text) }
}
