//! The values of each path of a sample that may be references or what references lead to: numbers, text, ObjectIds and UUIDs.

use crate::values::key_bytes;
use document::{Doc, Value};
use hashbrown::{HashMap, HashSet};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::xxh3_64;

/// Paths of one collection beyond these are not looked at.
const MOST_PATHS: usize = 300;
/// A document inside a document that has more names than this has data as names.
const MOST_NAMES: usize = 100;
const MOST_LEVELS: usize = 5;
/// Of an array in one document, so many items are looked at.
const MOST_ITEMS: usize = 100;
/// So many values of a path are kept as hashes.
const MOST_KEYS: usize = 20_000;
/// So many different values are kept to be looked up.
const PROBES: usize = 200;
/// Longer text is no key.
const LONGEST: usize = 120;

/// What can be a key. Numbers of all types are one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Number,
    Text,
    ObjectId,
    Binary,
}

impl Kind {
    pub fn of(value: &Value<'_>) -> Option<Kind> {
        match value {
            Value::String(text) if (1..=LONGEST).contains(&text.as_str().len()) => Some(Kind::Text),
            Value::ObjectId(_) => Some(Kind::ObjectId),
            Value::Binary { bytes, .. } if (1..=LONGEST).contains(&bytes.as_slice().len()) => Some(Kind::Binary),
            value => whole_number(value).map(|_| Kind::Number),
        }
    }

    /// Whether a value of this kind says nothing unless it was taken from elsewhere: nobody makes up the same ObjectId twice.
    pub fn is_unguessable(self) -> bool {
        matches!(self, Kind::ObjectId | Kind::Binary)
    }
}

fn whole_number(value: &Value<'_>) -> Option<i64> {
    value.is_number().then(|| value.as_i64_exact()).flatten()
}

/// The values at one path.
#[derive(Clone, Debug)]
pub struct Column {
    pub path: String,
    /// How many arrays are on the way, with one at the end.
    pub arrays: usize,
    /// The last of them is at the end: a list of plain values.
    pub ends_in_array: bool,
    /// What most of its values are, and whether others are there.
    pub kind: Kind,
    pub is_mixed: bool,
    /// In how many documents it has a value.
    pub documents: u64,
    last_document: u64,
    /// Hashes of its values, in the order of the sample.
    pub keys: Vec<u64>,
    /// Different values, chosen by their hashes, so that they are as good as chosen at random.
    pub probes: BTreeMap<u64, Value<'static>>,
    /// The least and the greatest, as ordered bytes.
    pub range: (Vec<u8>, Vec<u8>),
    /// The same of whole numbers.
    pub numbers: Option<(i64, i64)>,
}

impl Column {
    fn new(path: &str, place: Place, kind: Kind) -> Column {
        Column {
            path: path.to_owned(),
            arrays: place.arrays,
            ends_in_array: place.ends_in_array,
            kind,
            is_mixed: false,
            documents: 0,
            last_document: 0,
            keys: Vec::new(),
            probes: BTreeMap::new(),
            range: (Vec::new(), Vec::new()),
            numbers: None,
        }
    }

    fn add(&mut self, value: &Value<'_>, kind: Kind, document: u64) {
        self.is_mixed |= kind != self.kind;
        if self.last_document != document {
            self.last_document = document;
            self.documents += 1;
        }
        if self.keys.len() >= MOST_KEYS {
            return;
        }
        let bytes = key_bytes(value);
        let key = xxh3_64(&bytes);
        self.keys.push(key);
        if let Some(number) = whole_number(value) {
            let (least, greatest) = self.numbers.unwrap_or((number, number));
            self.numbers = Some((least.min(number), greatest.max(number)));
        }
        if self.range.0.is_empty() || bytes < self.range.0 {
            self.range.0.clone_from(&bytes);
        }
        if bytes > self.range.1 {
            self.range.1 = bytes;
        }
        // The last one is given up for one with a smaller hash: at the end the smallest hashes are there, whatever the order was.
        let full = self.probes.len() >= PROBES;
        if full && self.probes.last_key_value().is_some_and(|(last, _)| key >= *last) {
            return;
        }
        self.probes.entry(key).or_insert_with(|| value.borrow().into_owned());
        if self.probes.len() > PROBES {
            self.probes.pop_last();
        }
    }

    /// The different hashes.
    pub fn distinct(&self) -> HashSet<u64> {
        self.keys.iter().copied().collect()
    }

    /// Whether no two documents of the sample have the same value.
    pub fn is_distinct(&self) -> bool {
        self.arrays == 0 && !self.is_mixed && self.distinct().len() == self.keys.len()
    }

    /// How many of its values are one of these.
    pub fn weight(&self, of: &HashSet<u64>) -> u64 {
        self.keys.iter().filter(|key| of.contains(*key)).count() as u64
    }
}

#[derive(Clone, Copy, Default)]
struct Place {
    arrays: usize,
    ends_in_array: bool,
    depth: usize,
}

/// The columns of a sample, in the order of their paths.
pub fn columns<'d>(documents: impl IntoIterator<Item = &'d Doc<'static>>) -> Vec<Column> {
    let mut columns = Columns { number: 0, by_path: HashMap::new() };
    for doc in documents {
        columns.number += 1;
        columns.level(doc, "", Place::default());
    }
    let mut all: Vec<Column> = columns.by_path.into_values().collect();
    all.sort_by(|left, right| left.path.cmp(&right.path));
    all
}

struct Columns {
    /// Of the document that is looked at.
    number: u64,
    by_path: HashMap<String, Column>,
}

impl Columns {
    fn level(&mut self, doc: &Doc<'_>, above: &str, place: Place) {
        if place.depth > 0 && doc.iter().nth(MOST_NAMES).is_some() {
            return;
        }
        for (name, value) in doc.iter().take(MOST_PATHS) {
            if name.as_str().is_empty() || name.as_str().contains(['.', '$']) {
                continue;
            }
            let path = if above.is_empty() { name.as_str().to_owned() } else { format!("{above}.{}", name.as_str()) };
            self.value(&value, &path, place);
        }
    }

    fn value(&mut self, value: &Value<'_>, path: &str, place: Place) {
        match value {
            Value::Document(inner) if place.depth < MOST_LEVELS => {
                self.level(inner, path, Place { depth: place.depth + 1, ..place });
            }
            Value::Array(items) if place.depth < MOST_LEVELS && !place.ends_in_array => {
                let inside = Place { arrays: place.arrays + 1, depth: place.depth + 1, ends_in_array: false };
                for item in items.iter().take(MOST_ITEMS) {
                    match &item {
                        Value::Document(inner) => self.level(inner, path, inside),
                        Value::Array(_) => {}
                        plain => self.plain(plain, path, Place { ends_in_array: true, ..inside }),
                    }
                }
            }
            plain => self.plain(plain, path, place),
        }
    }

    fn plain(&mut self, value: &Value<'_>, path: &str, place: Place) {
        let Some(kind) = Kind::of(value) else { return };
        if self.by_path.len() >= MOST_PATHS && !self.by_path.contains_key(path) {
            return;
        }
        let column = self.by_path.entry_ref(path).or_insert_with(|| Column::new(path, place, kind));
        column.add(value, kind, self.number);
        column.arrays = column.arrays.max(place.arrays);
        column.ends_in_array |= place.ends_in_array;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;

    #[test]
    fn paths_are_found_in_documents_and_arrays() {
        let docs: Vec<Doc<'static>> = [
            doc! { "_id": 1, "owner": { "id": "u1" }, "items": [{ "product": 5 }, { "product": 6.0 }], "tags": ["a", "b"] },
            doc! { "_id": 2, "owner": { "id": "u2" }, "items": [{ "product": 5_i64 }], "tags": [], "rate": 1.5, "none": null },
        ]
        .map(Doc::from)
        .into();
        let all = columns(&docs);
        let seen: Vec<(&str, usize, bool, usize)> =
            all.iter().map(|it| (&*it.path, it.arrays, it.ends_in_array, it.keys.len())).collect();
        let expected =
            [("_id", 0, false, 2), ("items.product", 1, false, 3), ("owner.id", 0, false, 2), ("tags", 1, true, 2)];
        assert_eq!(seen, expected);
        assert_eq!((all[1].distinct().len(), all[1].numbers, all[1].documents), (2, Some((5, 6)), 2));
        assert!(all[0].is_distinct() && !all[1].is_distinct());
    }

    #[test]
    fn data_as_names_and_very_many_paths_are_left_out() {
        let mut wide = bson::Document::new();
        (0..1_000).for_each(|n| drop(wide.insert(format!("k{n}"), n)));
        let all = columns(&[Doc::from(doc! { "_id": 1, "by": wide.clone() }), Doc::from(wide)]);
        assert!(all.len() <= MOST_PATHS && all.iter().all(|it| !it.path.starts_with("by")), "{}", all.len());
    }

    #[test]
    fn the_values_to_look_up_do_not_depend_on_the_order() {
        let docs: Vec<Doc<'static>> = (0..5_000).map(|n| Doc::from(doc! { "_id": n })).collect();
        let (forth, back) = (columns(&docs), columns(docs.iter().rev()));
        assert_eq!(forth[0].probes.len(), PROBES);
        assert!(forth[0].probes.keys().eq(back[0].probes.keys()));
    }
}
