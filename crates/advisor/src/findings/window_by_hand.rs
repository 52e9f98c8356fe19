//! An array of a parent that holds its newest children: a window kept by hand, and perhaps wrong in some.

use super::Symptom;
use crate::declare;
use crate::kept::children::{Families, Reading, Way};
use crate::kept::row::{Paths, Row};
use crate::kept::verdict::{Verdict, still_wrong};
use crate::kept::windows::{Arrays, Compared, Order, Window};
use crate::relation::Relation;
use crate::report::{Against, Finding};
use crate::survey::{Collection, Survey};
use crate::values::{at, count, figures, hash, list};
use document::{Doc, Result, Value};

pub(super) const SYMPTOM: Symptom = Symptom {
    name: "window_by_hand",
    pattern: "subset",
    help: "The newest children are kept in an array by hand.",
    looks_at: "Arrays whose items equal the newest children, whole or some fields of them, for over half of the sampled parents; and how many are wrong.",
    reasons_against: "None; items with fields of their own, or with the newest last, would look otherwise.",
    find: |survey| Box::pin(find(survey)),
};

/// So many items of an array are looked at: a longer one is no window.
const MOST_ITEMS: usize = 1_000;

async fn find<'a>(survey: &'a Survey<'a>) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = Vec::new();
    for relation in &survey.relations {
        let Some(parent) = survey.collection(&relation.to) else { continue };
        let paths: Vec<&str> = parent
            .shape
            .paths
            .iter()
            .filter(|facts| !facts.in_array && facts.has_documents() && facts.path != relation.path)
            .map(|facts| facts.path.as_str())
            .collect();
        if survey.reader.cancel.is_set() || paths.is_empty() {
            continue;
        }
        let Some(reading) = Reading::of(survey, relation)? else { continue };
        let families = reading.families(&parent.sample, Paths::default()).await?;
        let reading = reading.afresh();
        for path in paths {
            let finding = of_array(survey, relation, parent, &families, &reading, path).await?;
            let is_known = |finding: &Finding| {
                found.iter().any(|it| it.collection == finding.collection && it.field == finding.field)
            };
            let new = finding.filter(|finding| !is_known(finding));
            found.extend(new);
        }
    }
    Ok(found)
}

async fn of_array(
    survey: &Survey<'_>,
    relation: &Relation,
    parent: &Collection,
    families: &Families,
    reading: &Reading<'_>,
    path: &str,
) -> Result<Option<Finding>> {
    let documents: Vec<&Doc<'static>> = families.parents.iter().filter_map(|place| parent.sample.get(*place)).collect();
    let arrays = arrays(documents.iter().copied(), path, Paths::default());
    let compared = Compared {
        arrays: &arrays,
        families: &families.families,
        children: &families.children,
        child_paths: &families.paths,
    };
    let Some(window) = compared.window() else { return Ok(None) };
    let wrong = window.wrong.iter().filter_map(|place| documents.get(*place)).map(|doc| (*doc).clone()).collect();
    let (wrong, unknown) = still_wrong(
        reading,
        &parent.ns,
        wrong,
        &families.paths,
        |before, now| at(before, path).map(|value| hash(&value)) == at(now, path).map(|value| hash(&value)),
        |parents, families| wrong_now(&window, parents, families, path, &arrays.item_paths),
    )
    .await?;
    let verdict = Verdict::of(window.checked.saturating_sub(unknown), &wrong);
    Ok(finding(survey, relation, parent, families, &window, path, verdict))
}

fn arrays<'d>(documents: impl Iterator<Item = &'d Doc<'static>>, path: &str, item_paths: Paths) -> Arrays {
    let mut arrays = Arrays { path: path.to_owned(), item_paths, items: Vec::new() };
    for doc in documents {
        let items = match at(doc, path) {
            Some(Value::Array(items)) => {
                let rows = items.iter().take(MOST_ITEMS).map(|item| match &item {
                    Value::Document(inner) => Row::of(inner, &mut arrays.item_paths),
                    _ => Row::default(),
                });
                Some(rows.collect())
            }
            _ => None,
        };
        arrays.items.push(items);
    }
    arrays
}

/// Places of the parents whose array is not what their children give.
fn wrong_now(window: &Window, parents: &[Doc<'static>], families: &Families, path: &str, items: &Paths) -> Vec<usize> {
    let documents = families.parents.iter().filter_map(|place| parents.get(*place));
    let arrays = arrays(documents, path, items.clone());
    let compared = Compared {
        arrays: &arrays,
        families: &families.families,
        children: &families.children,
        child_paths: &families.paths,
    };
    compared.wrong(window).into_iter().filter_map(|place| families.parents.get(place)).copied().collect()
}

fn finding(
    survey: &Survey<'_>,
    relation: &Relation,
    parent: &Collection,
    families: &Families,
    window: &Window,
    path: &str,
    verdict: Verdict,
) -> Option<Finding> {
    let order = match &window.order {
        Order::Id => "_id",
        Order::Path(path) => families.paths.name(*path),
    };
    let (from, keep) = (&relation.from, window.keep);
    let mut finding = Finding::new(&SYMPTOM, &parent.ns, path);
    finding.severity = verdict.severity();
    finding.confidence = verdict.confidence(relation.confidence);
    finding.verdict = format!("`{path}` holds the first {keep} {from} by {order}, kept by hand: {}", verdict.words());
    finding.shown = vec![
        format!("its items are the first {keep} {from} in {:.1} % of the documents", 100.0 * (1.0 - verdict.share())),
        format!("{} of the documents have more {from} than it keeps", window.full),
        families.way.words().to_owned(),
    ];
    let mut evidence = verdict.figures(parent);
    evidence.push(("keep", count(keep as u64)));
    evidence.push(("sort", Value::string(order)));
    evidence.push(("full", count(window.full)));
    evidence.push(("from", Value::string(from.clone())));
    evidence.push(("by", Value::string(relation.path.clone())));
    evidence.push(("by_index", Value::Bool(families.way == Way::Index)));
    finding.evidence = figures(evidence);
    finding.declaration = declaration(survey, relation, parent, families, window, path, order);
    finding.gain = figures([("wrong_values_now", count(verdict.wrong)), ("wrong_values_then", count(0))]);
    Some(finding.weighed(against(window, order)))
}

fn against(window: &Window, order: &str) -> Vec<Against> {
    let mut all = Vec::new();
    if window.is_reversed {
        let reason = format!("the last item is the first by {order}: the rule puts it first");
        all.push(Against::new(reason, figures([])));
    }
    if !window.others.is_empty() {
        let others = list(window.others.iter().map(|name| Value::string(name.clone())));
        let reason = "its items have fields that the children lack: the rule would leave them out";
        all.push(Against::new(reason, figures([("others", others)])));
    }
    all
}

fn declaration(
    survey: &Survey<'_>,
    relation: &Relation,
    parent: &Collection,
    families: &Families,
    window: &Window,
    path: &str,
    order: &str,
) -> Option<String> {
    let mut body = vec![("from", declare::word(&relation.from)), ("by", declare::word(&relation.path))];
    if relation.key != "_id" {
        body.push(("match", declare::word(&relation.key)));
    }
    if relation.arrays > 0 {
        body.push(("each", "true".to_owned()));
    }
    body.push(("sort", format!("{{ {}: -1 }}", declare::word(order))));
    body.push(("keep", window.keep.to_string()));
    if let Some(fields) = fields(survey, relation, families, window) {
        body.push(("fields", fields));
    }
    declare::field_rule(survey.database, parent.name(), "subset", path, &declare::map(&body))
}

/// `None` if the items are whole children.
fn fields(survey: &Survey<'_>, relation: &Relation, families: &Families, window: &Window) -> Option<String> {
    let pairs: Vec<(&str, &str)> =
        window.fields.iter().map(|field| (field.name.as_str(), families.paths.name(field.child))).collect();
    let same = pairs.iter().all(|(name, path)| name == path);
    let child = survey.collection(&relation.from)?;
    let is_whole = same && child.shape.below("").all(|facts| pairs.iter().any(|(name, _)| *name == facts.path));
    if is_whole {
        return None;
    }
    if same {
        return Some(declare::words(pairs.iter().map(|(name, _)| *name)));
    }
    let parts: Vec<String> =
        pairs.iter().map(|(name, path)| format!("{}: {}", declare::word(name), declare::word(path))).collect();
    Some(format!("{{ {} }}", parts.join(", ")))
}
