//! What the documents of a collection are like: their paths, types, lengths and distinct values. Made from a stream of documents, in
//! bounded memory whatever they hold.

mod path_facts;
mod spread;

pub use path_facts::{Distinct, PathFacts};
pub use spread::Spread;

use document::{Array, Doc, Value};
use hashbrown::HashMap;

/// More paths are not followed.
const MOST_PATHS: usize = 1_500;
/// A level with more names than this holds data as names: they are one path, `*`.
const MOST_NAMES: usize = 200;
/// Deeper levels are not followed.
const MOST_LEVELS: usize = 6;
/// So many items of an array are looked into; all are counted.
const MOST_ITEMS: usize = 500;

/// The name that stands for any of very many.
pub const ANY_NAME: &str = "*";

/// What is known of a collection's documents.
#[derive(Clone, Debug, Default)]
pub struct Shape {
    pub documents: u64,
    /// Bytes of each document.
    pub sizes: Spread,
    /// In the order in which they were met. Paths through arrays are written as filters write them: `items.name`.
    pub paths: Vec<PathFacts>,
    by_path: HashMap<String, usize>,
    /// How many names each level has; "" is the top.
    names: HashMap<String, usize>,
    /// Some paths were not followed: there are too many.
    pub is_cut: bool,
}

impl Shape {
    pub fn add(&mut self, doc: &Doc<'_>) {
        self.documents += 1;
        self.sizes.add(doc.as_bytes().len() as u64);
        self.level(doc, "", 0, false);
    }

    pub fn path(&self, path: &str) -> Option<&PathFacts> {
        self.by_path.get(path).and_then(|place| self.paths.get(*place))
    }

    /// The paths directly below one.
    pub fn below(&self, path: &str) -> impl Iterator<Item = &PathFacts> {
        self.paths.iter().filter(move |facts| facts.name_below(path).is_some())
    }

    /// Whether the names below a path are data.
    pub fn has_data_as_names(&self, path: &str) -> bool {
        self.names.get(path).is_some_and(|names| *names >= MOST_NAMES)
    }

    fn level(&mut self, doc: &Doc<'_>, above: &str, depth: usize, in_array: bool) {
        for (name, value) in doc.iter() {
            self.field(above, name.as_str(), &value, depth, in_array);
        }
    }

    fn field(&mut self, above: &str, name: &str, value: &Value<'_>, depth: usize, in_array: bool) {
        let Some(place) = self.place(above, name, in_array) else {
            self.is_cut = true;
            return;
        };
        let number = self.documents;
        let Some(facts) = self.paths.get_mut(place) else { return };
        facts.add(value, number);
        if depth + 1 >= MOST_LEVELS {
            return;
        }
        match value {
            Value::Document(inner) if !inner.is_empty() => {
                let path = facts.path.clone();
                self.level(inner, &path, depth + 1, in_array);
            }
            Value::Array(items) if !items.is_empty() => {
                let path = facts.path.clone();
                self.items(items, &path, depth);
            }
            _ => {}
        }
    }

    fn items(&mut self, items: &Array<'_>, path: &str, depth: usize) {
        for item in items.iter().take(MOST_ITEMS) {
            if let Value::Document(inner) = &item {
                self.level(inner, path, depth + 1, true);
            }
        }
    }

    /// Where the facts about a path are, made if they are new.
    fn place(&mut self, above: &str, name: &str, in_array: bool) -> Option<usize> {
        let names = self.names.entry_ref(above).or_insert(0);
        let path = join(above, name);
        if let Some(place) = self.by_path.get(&path) {
            return Some(*place);
        }
        *names = (*names).saturating_add(1);
        let path = if *names > MOST_NAMES { join(above, ANY_NAME) } else { path };
        if let Some(place) = self.by_path.get(&path) {
            return Some(*place);
        }
        if self.paths.len() >= MOST_PATHS {
            return None;
        }
        self.paths.push(PathFacts::new(path.clone(), in_array));
        self.by_path.insert(path, self.paths.len() - 1);
        Some(self.paths.len() - 1)
    }
}

fn join(above: &str, name: &str) -> String {
    if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") }
}

#[cfg(test)]
mod tests;
