//! Searches as the stages that MongoDB prints: TEXT_MATCH over TEXT_OR, or over documents fetched for the entries of the terms.

use super::stage::{Figures, Stage, about_index, number};
use crate::index::access::plan::Plan;
use crate::index::access::text::TextScan;
use crate::index::scan::Scan;
use document::filter::Node;
use document::{Array, Doc, DocWriter, Value};

/// The stages of a search up to the documents. `scan` tells what was done, if it was run.
pub(super) fn of_search(plan: &Plan, search: &TextScan, scan: Option<&Scan>) -> Stage {
    let counters = scan.map(Scan::counters);
    let ended = scan.is_some_and(Scan::has_ended);
    let figures = |returned: u64, seen: u64, own| Figures { returned, idle: seen.saturating_sub(returned), ended, own };
    let examined = |documents: u64, had: u64| vec![("docsExamined", number(documents)), ("alreadyHasObj", number(had))];
    let scores = search.by_score || search.carries;
    let key_filter = (!search.key_tests.is_empty()).then(|| {
        Node::all_of(search.key_tests.iter().filter_map(|(at, test)| {
            let path = search.index.keys.get(*at)?.path.clone();
            Some(Node::Field { path, test: test.clone() })
        }))
    });
    let on_entries = key_filter.as_ref().filter(|_| !scores && search.ranges.len() == 1);
    let terms: Vec<Stage> = (0..search.ranges.len()).map(|at| of_term(search, at, on_entries, scan)).collect();
    let several = |name, filter: Option<&Node>, mut terms: Vec<Stage>| {
        let stage = Stage::new(name).filtered(filter);
        match (terms.len(), terms.pop()) {
            (1, Some(only)) => stage.over(only),
            (_, last) => stage.over_all(terms.into_iter().chain(last).collect()),
        }
    };
    let found = if scores {
        several("TEXT_OR", key_filter.as_ref(), terms).did(counters.as_ref().map(|counters| {
            figures(counters.entries, counters.keys, vec![("docsExamined", number(counters.documents))])
        }))
    } else {
        let entries = match terms.len() {
            1 => terms.into_iter().next().unwrap_or_else(|| Stage::new("EOF")),
            _ => several("OR", key_filter.as_ref(), terms).did(counters.as_ref().map(|counters| {
                let own = vec![
                    ("dupsTested", number(counters.entries + counters.repeated)),
                    ("dupsDropped", number(counters.repeated)),
                ];
                figures(counters.entries, counters.keys, own)
            })),
        };
        Stage::new("FETCH").over(entries).did(
            counters
                .as_ref()
                .map(|counters| figures(counters.entries, counters.entries, examined(counters.documents, 0))),
        )
    };
    let matched = Stage::new("TEXT_MATCH")
        .with("indexPrefix", prefix(search))
        .with("indexName", Value::string(&*search.index.name))
        .with("parsedTextQuery", parsed(search))
        .with("textIndexVersion", Value::Int32(3))
        .over(found)
        .did(counters.as_ref().map(|counters| {
            // What the other conditions reject was matched; how many of these there were is not counted.
            let returned = if plan.residual.is_none() { counters.rows } else { counters.entries };
            let rejected = counters.entries.saturating_sub(returned);
            figures(returned, counters.entries, vec![("docsRejected", number(rejected))])
        }));
    match &plan.residual {
        None => matched,
        Some(residual) => Stage::new("FETCH")
            .filtered(Some(residual))
            .over(matched)
            .did(counters.map(|counters| {
                figures(counters.rows, counters.entries, examined(counters.entries, counters.entries))
            })),
    }
}

/// The entries of one term. The ranges are in the order of terms backwards.
fn of_term(search: &TextScan, at: usize, filter: Option<&Node>, scan: Option<&Scan>) -> Stage {
    let multikey: Vec<u64> = (0..search.index.keys.len()).map(|at| search.index.multikey(at)).collect();
    let keys = scan.map(|scan| scan.examined_of_term(at));
    about_index(Stage::new("IXSCAN").filtered(filter), &search.index, &multikey)
        .with("direction", "backward")
        .with("indexBounds", Doc::empty())
        .did(keys.map(|keys| Figures {
            returned: keys,
            idle: 0,
            ended: true,
            own: vec![
                ("keysExamined", number(keys)),
                ("seeks", number(1)),
                ("dupsTested", number(keys)),
                ("dupsDropped", number(0)),
            ],
        }))
}

fn prefix(search: &TextScan) -> Doc<'static> {
    let mut writer = DocWriter::new();
    for (key, value) in search.index.keys.iter().zip(&search.prefix) {
        writer.append(&key.path.dotted(), value);
    }
    writer.finish()
}

fn parsed(search: &TextScan) -> Doc<'static> {
    fn list<'t>(texts: impl Iterator<Item = &'t String>) -> Value<'static> {
        Value::Array(texts.map(|text| Value::string(&**text)).collect::<Array<'static>>())
    }
    let query = &search.query;
    let mut writer = DocWriter::new();
    writer.append("terms", &list(query.terms.iter()));
    writer.append("negatedTerms", &list(query.negated_terms.iter()));
    writer.append("phrases", &list(query.phrases.iter()));
    writer.append("negatedPhrases", &list(query.negated_phrases.iter()));
    writer.finish()
}
