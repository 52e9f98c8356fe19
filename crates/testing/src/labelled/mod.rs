//! Labelled data sets: databases of which it is known which symptoms they show, to judge the advisor by.
//!
//! They are written from what is said of the symptoms, not from how they are found: each symptom present, absent, near the threshold and
//! with a reason against, several in one database, and databases without any. Names, ids, sizes and shares vary with the seed.
//! Documents are made one by one: a set of a million takes no memory.

mod arrays;
mod clean;
mod copies;
mod counters;
mod dice;
mod kinds;
mod mixed;
mod outliers;
mod score;
mod series;
mod slots;
mod variations;
mod versions;
mod windows;

pub use dice::{DAY, Dice, IDS, Ids, NOW};
pub use score::{Score, Seen, Tally};

use bson::Document;

/// The documents of a collection, made while they are taken.
pub type Documents = Box<dyn Iterator<Item = Document> + Send>;

/// A database, and what is to be found in it.
pub struct Set {
    pub name: String,
    pub collections: Vec<(String, Documents)>,
    /// Unique indexes: collection and field.
    pub unique: Vec<(String, String)>,
    /// Other indexes.
    pub indexes: Vec<(String, String)>,
    pub labels: Vec<Label>,
}

/// What is to be found at one place.
#[derive(Clone, Debug)]
pub struct Label {
    pub symptom: &'static str,
    pub collection: String,
    /// Any of these paths names it.
    pub fields: Vec<String>,
    /// Of one severity, or at least `warn`.
    pub severity: Option<&'static str>,
    /// It is listed, but as a note.
    pub is_note: bool,
}

/// How sets are made.
#[derive(Clone, Copy, Debug)]
pub struct Making {
    pub seed: u64,
    /// Collections have so many times the documents: 1 is about a thousand of them.
    pub scale: usize,
}

impl Set {
    pub fn new(name: impl Into<String>) -> Set {
        Set { name: name.into(), collections: Vec::new(), unique: Vec::new(), indexes: Vec::new(), labels: Vec::new() }
    }

    #[must_use]
    pub fn with<I>(mut self, collection: impl Into<String>, documents: I) -> Set
    where
        I: IntoIterator<Item = Document>,
        I::IntoIter: Send + 'static,
    {
        self.collections.push((collection.into(), Box::new(documents.into_iter())));
        self
    }

    #[must_use]
    pub fn unique(mut self, collection: &str, field: &str) -> Set {
        self.unique.push((collection.to_owned(), field.to_owned()));
        self
    }

    #[must_use]
    pub fn index(mut self, collection: &str, field: &str) -> Set {
        self.indexes.push((collection.to_owned(), field.to_owned()));
        self
    }

    #[must_use]
    pub fn label(mut self, label: Label) -> Set {
        self.labels.push(label);
        self
    }

    /// At least `warn`, at this place.
    #[must_use]
    pub fn shows(self, symptom: &'static str, collection: &str, field: &str) -> Set {
        self.label(Label::new(symptom, collection, &[field]))
    }

    #[must_use]
    pub fn shows_as(self, severity: &'static str, symptom: &'static str, collection: &str, field: &str) -> Set {
        self.label(Label { severity: Some(severity), ..Label::new(symptom, collection, &[field]) })
    }

    /// Listed as a note.
    #[must_use]
    pub fn notes(self, symptom: &'static str, collection: &str, field: &str) -> Set {
        self.label(Label { is_note: true, ..Label::new(symptom, collection, &[field]) })
    }

    /// Two databases in one. Their collections have different names.
    #[must_use]
    pub fn and(mut self, other: Set) -> Set {
        let has = |name: &String| self.collections.iter().any(|(known, _)| known == name);
        assert!(!other.collections.iter().any(|(name, _)| has(name)), "{} and {}", self.name, other.name);
        self.collections.extend(other.collections);
        self.unique.extend(other.unique);
        self.indexes.extend(other.indexes);
        self.labels.extend(other.labels);
        self
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Set {
        self.name = name.into();
        self
    }
}

impl Label {
    pub fn new(symptom: &'static str, collection: &str, fields: &[&str]) -> Label {
        Label {
            symptom,
            collection: collection.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
            severity: None,
            is_note: false,
        }
    }
}

/// All sets of a seed.
pub fn sets(making: Making) -> Vec<Set> {
    let families: [fn(Making) -> Vec<Set>; 11] = [
        copies::sets,
        counters::sets,
        windows::sets,
        arrays::sets,
        outliers::sets,
        series::sets,
        kinds::sets,
        versions::sets,
        slots::sets,
        clean::sets,
        variations::sets,
    ];
    let mut all: Vec<Set> = families.into_iter().flat_map(|family| family(making)).collect();
    all.extend(mixed::sets(making));
    all
}
