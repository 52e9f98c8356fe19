//! Makes a trial that shows a difference as small as it gets: fewer documents, fewer fields, simpler values.

use anyhow::Result;
use bson::{Bson, Document};

use super::trial::{Pair, Trial};

/// Tries at most, in all.
const BUDGET: usize = 1500;

/// The smallest trial found that still differs, and how.
pub(super) fn shrink(pair: &mut Pair, mut trial: Trial) -> Result<(Trial, String)> {
    let mut difference = pair.difference(&trial)?.unwrap_or_else(|| "only seen once\n".to_owned());
    let mut left = BUDGET;
    'again: loop {
        for smaller in smaller_trials(&trial) {
            if left == 0 {
                break 'again;
            }
            left -= 1;
            if let Some(found) = pair.difference(&smaller)? {
                (trial, difference) = (smaller, found);
                continue 'again;
            }
        }
        break;
    }
    Ok((trial, difference))
}

fn smaller_trials(trial: &Trial) -> Vec<Trial> {
    let mut all = Vec::new();
    for half in halves(&trial.documents) {
        all.push(Trial { documents: half, ..trial.clone() });
    }
    for indexes in without_one(&trial.indexes) {
        all.push(Trial { indexes, ..trial.clone() });
    }
    for at in 0..trial.run.len() {
        let Some(command) = trial.run.get(at) else { continue };
        for smaller in smaller_documents(command) {
            // A command is its first field; an update and a pipeline are nothing without theirs.
            let kept = ["updates", "pipeline", "cursor"]
                .iter()
                .all(|name| smaller.contains_key(name) == command.contains_key(name));
            if smaller.iter().next() == command.iter().next() && kept {
                let mut run = trial.run.clone();
                if let Some(place) = run.get_mut(at) {
                    *place = smaller;
                }
                all.push(Trial { run, ..trial.clone() });
            }
        }
    }
    for (at, document) in trial.documents.iter().enumerate() {
        for smaller in smaller_documents(document) {
            if smaller.get("_id") == document.get("_id") {
                let mut documents = trial.documents.clone();
                if let Some(place) = documents.get_mut(at) {
                    *place = smaller;
                }
                all.push(Trial { documents, ..trial.clone() });
            }
        }
    }
    all
}

fn halves(documents: &[Document]) -> Vec<Vec<Document>> {
    let mut all = Vec::new();
    if documents.len() > 3 {
        let (first, second) = documents.split_at(documents.len() / 2);
        all.extend([first.to_vec(), second.to_vec()]);
    }
    all.extend(without_one(documents));
    all
}

fn without_one<T: Clone>(items: &[T]) -> Vec<Vec<T>> {
    (0..items.len())
        .map(|out| items.iter().enumerate().filter(|(at, _)| *at != out).map(|(_, item)| item.clone()).collect())
        .collect()
}

/// The document without one field, then with one value smaller.
fn smaller_documents(document: &Document) -> Vec<Document> {
    let mut all = Vec::new();
    for name in document.keys() {
        let mut smaller = document.clone();
        smaller.remove(name);
        all.push(smaller);
    }
    for (name, value) in document {
        for value in smaller_values(value) {
            let mut smaller = document.clone();
            smaller.insert(name.clone(), value);
            all.push(smaller);
        }
    }
    all
}

fn smaller_values(value: &Bson) -> Vec<Bson> {
    match value {
        Bson::Document(document) => {
            // What is inside may do in place of the whole.
            let inner = document.values().filter(|value| !matches!(value, Bson::Array(_))).cloned();
            let items = document.values().filter_map(Bson::as_array).flatten().cloned();
            let mut all = vec![Bson::Int32(1)];
            all.extend(inner.chain(items));
            all.extend(smaller_documents(document).into_iter().map(Bson::from));
            all
        }
        Bson::Array(items) => {
            let mut all: Vec<Bson> = without_one(items).into_iter().map(Bson::from).collect();
            for (at, item) in items.iter().enumerate() {
                for smaller in smaller_values(item) {
                    let mut items = items.clone();
                    if let Some(place) = items.get_mut(at) {
                        *place = smaller;
                    }
                    all.push(items.into());
                }
            }
            all
        }
        Bson::String(text) if text.starts_with('$') => vec![Bson::Int32(1)],
        Bson::Int32(0 | 1) | Bson::Null | Bson::Boolean(_) => Vec::new(),
        Bson::String(text) if text.is_empty() || text == "a" => Vec::new(),
        Bson::String(_) => vec!["a".into(), 1.into()],
        Bson::Int32(_) => vec![1.into()],
        _ => vec![1.into(), Bson::Null],
    }
}
