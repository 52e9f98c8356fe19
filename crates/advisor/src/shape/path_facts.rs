//! What is known of the values at one path.

use super::Spread;
use crate::values::{hash, number};
use document::{Array, Value};
use hashbrown::HashSet;

/// So many different values are told apart.
const MOST_DISTINCT: usize = 2_000;
/// So many are remembered with how often they are there.
const MOST_COUNTED: usize = 64;
/// Longer values are told apart, but not remembered.
const LONGEST: usize = 200;
/// So many items of an array are looked at.
const MOST_ITEMS: usize = 500;

#[derive(Clone, Debug)]
pub struct PathFacts {
    pub path: String,
    /// It lies below an array.
    pub in_array: bool,
    /// In how many documents it is.
    pub documents: u64,
    last_document: u64,
    /// How often it is there, which may be several times in a document if it lies below an array.
    pub values: u64,
    /// Type names as `$type` gives them, and how often each.
    pub types: Vec<(&'static str, u64)>,
    /// Bytes of the values.
    pub bytes: u64,
    /// Of its arrays: how many items each has.
    pub lengths: Spread,
    /// Types of the items of its arrays.
    pub items: Vec<(&'static str, u64)>,
    /// The bytes of its arrays.
    pub array_bytes: Spread,
    /// Of values that are no documents and arrays.
    pub distinct: Distinct,
    /// The least and the greatest of its numbers.
    pub numbers: Option<(f64, f64)>,
}

/// Which values there are, as far as they can be told apart in bounded memory.
#[derive(Clone, Debug, Default)]
pub struct Distinct {
    hashes: HashSet<u64>,
    /// There are more than can be counted.
    pub is_many: bool,
    /// The values, if they are few and short, and how often each is there.
    pub counted: Vec<(Value<'static>, u64)>,
    /// Not all values are in `counted`.
    pub is_partial: bool,
}

impl Distinct {
    fn add(&mut self, value: &Value<'_>, size: usize) {
        if self.counted.len() < MOST_COUNTED || !self.is_partial {
            if let Some((_, count)) =
                self.counted.iter_mut().find(|(known, _)| document::value::order::equal(known, value))
            {
                *count += 1;
                return;
            }
            if self.counted.len() < MOST_COUNTED && size <= LONGEST {
                self.counted.push((value.borrow().into_owned(), 1));
            } else {
                self.is_partial = true;
            }
        }
        if self.hashes.len() < MOST_DISTINCT {
            self.hashes.insert(hash(value));
        } else if !self.is_many {
            self.is_many = !self.hashes.contains(&hash(value));
        }
    }

    /// How many different values were seen, at least.
    pub fn len(&self) -> usize {
        self.hashes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// All values, if there are at most so many.
    pub fn few(&self, most: usize) -> Option<&[(Value<'static>, u64)]> {
        (!self.is_partial && self.counted.len() <= most).then_some(&self.counted)
    }
}

impl PathFacts {
    pub(super) fn new(path: String, in_array: bool) -> PathFacts {
        PathFacts {
            path,
            in_array,
            documents: 0,
            last_document: 0,
            values: 0,
            types: Vec::new(),
            bytes: 0,
            lengths: Spread::default(),
            items: Vec::new(),
            array_bytes: Spread::default(),
            distinct: Distinct::default(),
            numbers: None,
        }
    }

    /// A value of the document of that number.
    pub(super) fn add(&mut self, value: &Value<'_>, document: u64) {
        if self.last_document != document {
            self.last_document = document;
            self.documents += 1;
        }
        self.values += 1;
        let size = size(value);
        self.bytes += size as u64;
        counted(&mut self.types, value.type_name());
        match value {
            Value::Array(items) => self.add_array(items, size),
            Value::Document(_) => {}
            value => {
                self.distinct.add(value, size);
                if let Some(number) = number(value) {
                    let (least, greatest) = self.numbers.unwrap_or((number, number));
                    self.numbers = Some((least.min(number), greatest.max(number)));
                }
            }
        }
    }

    fn add_array(&mut self, items: &Array<'_>, size: usize) {
        self.lengths.add(items.count() as u64);
        self.array_bytes.add(size as u64);
        for item in items.iter().take(MOST_ITEMS) {
            counted(&mut self.items, item.type_name());
        }
    }

    /// The name of the last part.
    pub fn name(&self) -> &str {
        self.path.rsplit('.').next().unwrap_or(&self.path)
    }

    /// Its name, if it lies directly below the path; the top is "".
    pub fn name_below(&self, above: &str) -> Option<&str> {
        let rest = match above {
            "" => &*self.path,
            above => self.path.strip_prefix(above)?.strip_prefix('.')?,
        };
        (!rest.contains('.')).then_some(rest)
    }

    pub fn count_of(&self, type_name: &str) -> u64 {
        self.types.iter().find(|(name, _)| *name == type_name).map_or(0, |(_, count)| *count)
    }

    /// Whether every document has a value of that type there.
    pub fn is_always(&self, type_name: &str, documents: u64) -> bool {
        documents > 0 && self.documents == documents && self.count_of(type_name) == self.values
    }

    /// Whether the items of its arrays are documents, but for a few.
    pub fn has_documents(&self) -> bool {
        let all: u64 = self.items.iter().map(|(_, count)| count).sum();
        let documents = self.items.iter().find(|(name, _)| *name == "object").map_or(0, |(_, count)| *count);
        documents > 0 && documents == all
    }

    /// The average bytes of a value.
    pub fn average_bytes(&self) -> u64 {
        self.bytes.checked_div(self.values).unwrap_or_default()
    }
}

fn counted(types: &mut Vec<(&'static str, u64)>, name: &'static str) {
    match types.iter_mut().find(|(known, _)| *known == name) {
        Some((_, count)) => *count += 1,
        None => types.push((name, 1)),
    }
}

/// The bytes of a value in its document, without its name.
fn size(value: &Value<'_>) -> usize {
    match value {
        Value::Document(doc) => doc.as_bytes().len(),
        Value::Array(array) => array.as_bytes().len(),
        Value::String(text) | Value::Symbol(text) | Value::Code(text) => text.as_str().len() + 5,
        Value::Binary { bytes, .. } => bytes.as_slice().len() + 5,
        Value::ObjectId(_) => 12,
        Value::Decimal(_) => 16,
        Value::Bool(_) => 1,
        Value::Int32(_) => 4,
        Value::Missing | Value::Null | Value::Undefined | Value::MinKey | Value::MaxKey => 0,
        _ => 8,
    }
}
