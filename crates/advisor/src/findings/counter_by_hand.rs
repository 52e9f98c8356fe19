//! A number of a parent that equals the count, sum, average, least or greatest of its children: kept by hand, and perhaps wrong in some.

use super::Symptom;
use crate::declare;
use crate::kept::children::{Child, Families, Reading, Way};
use crate::kept::numbers::{Compared, Fold, Kept, Making};
use crate::kept::row::{PathId, Paths, Row};
use crate::kept::verdict::{Verdict, still_wrong};
use crate::relation::Relation;
use crate::report::{Against, Finding};
use crate::survey::{Collection, Survey};
use crate::values::{at, count, figures, hash, measure};
use document::{Doc, Result, Value};

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "counter_by_hand",
    pattern: "computed",
    help: "A number is kept by hand that children give.",
    looks_at: "Numbers that equal the count, sum, average, least or greatest of the children for over half of the sampled parents, also of those children with one value of an enumerated field; and how many are wrong.",
    reasons_against: "None; a number that is rounded by hand would no longer be rounded.",
    find: |survey| Box::pin(find(survey)),
};

async fn find<'a>(survey: &'a Survey<'a>) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = Vec::new();
    for relation in &survey.relations {
        let Some(parent) = survey.collection(&relation.to) else { continue };
        if survey.reader.cancel.is_set() {
            break;
        }
        for finding in of_relation(survey, relation, parent).await? {
            // Two ways to the same children: the surer one says it.
            let place = found.iter().position(|it| it.collection == finding.collection && it.field == finding.field);
            match place.and_then(|place| found.get_mut(place)) {
                Some(known) if known.confidence < finding.confidence => *known = finding,
                Some(_) => {}
                None => found.push(finding),
            }
        }
    }
    Ok(found)
}

async fn of_relation<'a>(survey: &'a Survey<'a>, relation: &'a Relation, parent: &Collection) -> Result<Vec<Finding>> {
    let Some(reading) = Reading::of(survey, relation)? else { return Ok(Vec::new()) };
    let families = reading.families(&parent.sample, Paths::default()).await?;
    if families.children.is_empty() {
        return Ok(Vec::new());
    }
    let mut paths = Paths::default();
    let rows = rows(families.parents.iter().filter_map(|place| parent.sample.get(*place)), &mut paths);
    let ids = ids(survey, &parent.ns.collection, &paths, &relation.key);
    let child_ids = ids_of_children(survey, relation, &families.paths);
    let children: Vec<Row> = families.children.iter().map(|child| child.row.clone()).collect();
    let compared = Compared { parents: &rows, families: &families.families, children: &children };
    let reading = reading.afresh();
    let mut found = Vec::new();
    for kept in compared.kept(&ids, &child_ids) {
        let path = paths.name(kept.path).to_owned();
        let documents = |places: &[usize]| -> Vec<Doc<'static>> {
            let in_sample = places.iter().filter_map(|place| families.parents.get(*place));
            in_sample.filter_map(|place| parent.sample.get(*place)).cloned().collect()
        };
        let (wrong, unknown) = still_wrong(
            &reading,
            &parent.ns,
            documents(&kept.wrong),
            &families.paths,
            |before, now| same(at(before, &path), at(now, &path)),
            |parents, families| wrong_now(&kept, parents, families, &paths),
        )
        .await?;
        let verdict = Verdict::of(kept.checked.saturating_sub(unknown), &wrong);
        found.extend(finding(survey, relation, parent, &families, &kept, &path, verdict));
    }
    Ok(found)
}

fn rows<'d>(documents: impl Iterator<Item = &'d Doc<'static>>, paths: &mut Paths) -> Vec<Row> {
    documents.map(|doc| Row::of(doc, paths)).collect()
}

/// Places of the parents whose number is not what their children give.
fn wrong_now(kept: &Kept, parents: &[Doc<'static>], families: &Families, paths: &Paths) -> Vec<usize> {
    let mut paths = paths.clone();
    let rows = rows(families.parents.iter().filter_map(|place| parents.get(*place)), &mut paths);
    let children: Vec<Row> = families.children.iter().map(|Child { row, .. }| row.clone()).collect();
    let compared = Compared { parents: &rows, families: &families.families, children: &children };
    compared.wrong(kept).into_iter().filter_map(|place| families.parents.get(place)).copied().collect()
}

fn same(before: Option<Value<'_>>, now: Option<Value<'_>>) -> bool {
    before.map(|value| hash(&value)) == now.map(|value| hash(&value))
}

/// `_id`, keys and references of a collection are no figures.
fn ids(survey: &Survey<'_>, collection: &str, paths: &Paths, key: &str) -> Vec<PathId> {
    let references =
        survey.relations.iter().filter(|relation| relation.from == collection && relation.confidence > 0.6);
    let names = references.map(|relation| relation.path.as_str()).chain(["_id", key]);
    names.filter_map(|name| paths.number(name)).collect()
}

fn ids_of_children(survey: &Survey<'_>, relation: &Relation, paths: &Paths) -> Vec<PathId> {
    let mut all = ids(survey, &relation.from, paths, &relation.path);
    all.sort_unstable();
    all.dedup();
    all
}

fn finding(
    survey: &Survey<'_>,
    relation: &Relation,
    parent: &Collection,
    families: &Families,
    kept: &Kept,
    path: &str,
    verdict: Verdict,
) -> Option<Finding> {
    let filter = match kept.making.only {
        Some((path, key)) => Some(filter(survey, relation, families.paths.name(path), key)?),
        None => None,
    };
    let of = kept.making.of.map(|path| families.paths.name(path));
    let what = what(relation, &kept.making, of, filter.as_ref());
    let mut finding = Finding::new(&SYMPTOM, &parent.ns, path);
    finding.severity = verdict.severity();
    finding.confidence = verdict.confidence(relation.confidence);
    finding.verdict = format!("`{path}` is {what}, kept by hand: {}", verdict.words());
    finding.shown = vec![
        format!("it equals {what} in {:.1} % of the documents", 100.0 * (1.0 - verdict.share())),
        format!("paired at random it would in {:.1} %", 100.0 * kept.random_share),
        families.way.words().to_owned(),
    ];
    let mut evidence = verdict.figures(parent);
    evidence.push(("by_chance", measure(kept.random_share)));
    evidence.push(("from", Value::string(relation.from.clone())));
    evidence.push(("by", Value::string(relation.path.clone())));
    evidence.push(("children", count(families.children.len() as u64)));
    evidence.push(("by_index", Value::Bool(families.way == Way::Index)));
    finding.evidence = figures(evidence);
    finding.declaration = declaration(survey, relation, parent, kept, path, of, filter.as_ref());
    finding.gain = figures([("wrong_values_now", count(verdict.wrong)), ("wrong_values_then", count(0))]);
    let rounding = kept.digits.map(|digits| {
        let figures = figures([("digits", Value::Int32(digits))]);
        Against::new(format!("it is rounded to {digits} digits by hand; the rule keeps all digits"), figures)
    });
    Some(finding.weighed(rounding.into_iter().collect()))
}

/// Path and value that children must have.
fn filter(survey: &Survey<'_>, relation: &Relation, path: &str, key: u64) -> Option<(String, Value<'static>)> {
    let child = survey.collection(&relation.from)?;
    let value = child.sample.iter().filter_map(|doc| at(doc, path)).find(|value| hash(value) == key)?;
    Some((path.to_owned(), value.into_owned()))
}

/// `the count of reviews with status "paid"`.
fn what(relation: &Relation, making: &Making, of: Option<&str>, filter: Option<&(String, Value<'static>)>) -> String {
    let from = &relation.from;
    let word = match making.fold {
        Fold::Count => return format!("the count of its {from}{}", with(filter)),
        Fold::Sum => "sum",
        Fold::Avg => "average",
        Fold::Min => "least",
        Fold::Max => "greatest",
    };
    format!("the {word} of `{}` of its {from}{}", of.unwrap_or_default(), with(filter))
}

fn with(filter: Option<&(String, Value<'static>)>) -> String {
    filter.map_or_else(String::new, |(path, value)| format!(" with {path} {}", declare::flow(value)))
}

fn declaration(
    survey: &Survey<'_>,
    relation: &Relation,
    parent: &Collection,
    kept: &Kept,
    path: &str,
    of: Option<&str>,
    filter: Option<&(String, Value<'static>)>,
) -> Option<String> {
    let from = declare::word(&relation.from);
    let mut body = match of {
        Some(of) => vec![(kept.making.fold.word(), declare::word(of)), ("from", from)],
        None => vec![(kept.making.fold.word(), from)],
    };
    body.push(("by", declare::word(&relation.path)));
    if relation.key != "_id" {
        body.push(("match", declare::word(&relation.key)));
    }
    if relation.arrays > 0 {
        body.push(("each", "true".to_owned()));
    }
    if let Some((path, value)) = filter {
        body.push(("where", format!("{{ {}: {} }}", declare::word(path), declare::flow(value))));
    }
    declare::field_rule(survey.database, parent.name(), "computed", path, &declare::map(&body))
}
