//! What a host had at the paths of a rule: written down before the rule changes them, put back when the rule is dropped with
//! `--restore`. Pure: no document is read or written here.
//!
//! A record is a list of `{ path, value, previous, next, above, by }`. The path is concrete (`items.0.product`), `previous` and `next`
//! name the fields beside the value, `above` those beside each document on the way to it (see [`fields`](crate::execute::replaced::fields)), `by` is the
//! reference of the array element that held it: elements move. What a record does not name was absent.

use crate::execute::replaced::fields::{Beside, with_field};
use crate::rule::{Refers, Rule};
use document::pipeline::expr::field;
use document::value::Path;
use document::value::path::Part;
use document::{Array, ArrayWriter, Doc, DocWriter, Value};
use hashbrown::HashMap;

/// The paths that a rule may have written to in a host, and how array elements are told apart.
pub(crate) struct Places {
    paths: Vec<Path>,
    /// How many parts the field and the reference share; the rest of the reference's path. Only of a copy.
    reference: Option<(usize, Vec<Part>)>,
}

/// One value that was there.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    path: String,
    value: Value<'static>,
    beside: Beside,
    /// The same of each part of the path but the last.
    above: Vec<Beside>,
    by: Value<'static>,
    in_array: bool,
}

/// What a host had on the way to the fields of several rules.
pub(crate) struct OnTheWay {
    /// Without the positions in arrays.
    path: Path,
    /// As it stands in a record.
    pub(crate) entry: Doc<'static>,
}

impl OnTheWay {
    /// Whether something is written through it at one of these places.
    pub(crate) fn leads_to(&self, places: &Places) -> bool {
        places.paths.iter().any(|place| self.path.is_prefix_of(place) && self.path != *place)
    }
}

/// A place in a host where a value is or could be.
struct Site {
    path: String,
    by: Value<'static>,
}

impl Places {
    pub(crate) fn of(rule: &Rule) -> Places {
        let state = Path::new(&format!("{}.{}", crate::rule::owned::STATE, rule.field.dotted()));
        let reference = rule.link().filter(|link| link.refers == Refers::Host).map(|link| {
            let shared = link.shared_with(&rule.field);
            (shared, link.local.path.parts.get(shared..).unwrap_or_default().to_vec())
        });
        // An earlier form of the rule may have had a state where this one has none.
        Places { paths: vec![rule.field.clone(), state], reference }.without(rule.lift.as_ref())
    }

    /// One path of the host.
    pub(crate) fn at(path: &Path) -> Places {
        Places { paths: vec![path.clone()], reference: None }
    }

    /// The others. What an array had that was lifted are documents of their own.
    pub(crate) fn without(mut self, array: Option<&Path>) -> Places {
        self.paths.retain(|path| Some(path) != array);
        self
    }

    /// What the host has there, as a record; an empty one if it has nothing.
    pub(crate) fn record(&self, host: &Doc<'_>) -> Array<'static> {
        let mut entries = Vec::new();
        for path in &self.paths {
            self.note(host, &path.parts, 0, &mut Way::new(), &mut entries);
        }
        let mut record = ArrayWriter::new();
        entries.iter().for_each(|entry| {
            record.push(&Value::Document(entry.write()));
        });
        record.finish()
    }

    fn note(&self, doc: &Doc<'_>, parts: &[Part], depth: usize, way: &mut Way, entries: &mut Vec<Entry>) {
        let Some((first, rest)) = parts.split_first() else { return };
        if let Some((executor, reference)) = &self.reference
            && *executor == depth
            && way.in_array
        {
            way.by = field(&Value::Document(doc.borrow()), reference).into_owned();
        }
        let Some(value) = doc.get(&first.name) else {
            // What is made in an empty document leaves it behind: it must be known that it was there.
            if doc.is_empty() && !way.path.is_empty() && !way.is_element {
                entries.push(way.entry(&Value::Document(Doc::empty())));
            }
            return;
        };
        let mut below = way.below(&first.name, Beside::of(doc, &first.name));
        match &value {
            _ if rest.is_empty() => entries.push(below.entry(&value)),
            Value::Document(inner) => self.note(inner, rest, depth + 1, &mut below, entries),
            Value::Array(items) => self.note_items(items, rest, depth + 1, &below, entries),
            other => entries.push(below.entry(other)),
        }
    }

    fn note_items(&self, items: &Array<'_>, rest: &[Part], depth: usize, way: &Way, entries: &mut Vec<Entry>) {
        for (index, item) in items.iter().enumerate() {
            let mut below = way.element(index);
            match &item {
                Value::Document(inner) => self.note(inner, rest, depth, &mut below, entries),
                Value::Array(inner) => self.note_items(inner, rest, depth, &below, entries),
                // Copies whose reference is in the array leave it alone; whatever else is written through the array replaces it.
                _ if self.reference.as_ref().is_some_and(|(executor, _)| *executor >= depth) => {}
                other => entries.push(Entry { by: Value::Missing, ..below.entry(other) }),
            }
        }
    }

    /// The host as it was at these paths by the record; whatever else is in it stays.
    pub(crate) fn give_back(&self, host: &Doc<'_>, record: &Array<'_>) -> Doc<'static> {
        let entries: Vec<Entry> = record.iter().filter_map(|entry| Entry::read(&entry)).collect();
        let mut sites = Vec::new();
        for path in &self.paths {
            self.sites(host, &path.parts, 0, &mut Way::new(), &mut sites);
        }
        let assigned = Assigned::new(&entries, &sites);
        let mut doc = host.clone().into_owned();
        for path in &self.paths {
            doc = rebuilt(&doc, &path.parts, "", &assigned);
        }
        doc
    }

    /// What was on the way to a field of the rule, where something else is now: not for this rule to put back.
    pub(crate) fn in_the_way(&self, right: &Doc<'_>, record: &Array<'_>) -> Vec<OnTheWay> {
        let mut found = Vec::new();
        for entry in record.iter().filter_map(|entry| Entry::read(&entry)) {
            let way = OnTheWay { path: entry.named(), entry: entry.write() };
            let now = entry.path.split('.').try_fold(Value::Document(right.borrow()), |value, part| match value {
                Value::Document(doc) => doc.get(part).map(Value::into_owned),
                Value::Array(items) => items.iter().nth(part.parse().ok()?).map(Value::into_owned),
                _ => None,
            });
            if way.leads_to(self) && now.as_ref() != Some(&entry.value) {
                found.push(way);
            }
        }
        found
    }

    /// The places in arrays, values or not.
    fn sites(&self, doc: &Doc<'_>, parts: &[Part], depth: usize, way: &mut Way, sites: &mut Vec<Site>) {
        let Some((first, rest)) = parts.split_first() else { return };
        if let Some((executor, reference)) = &self.reference
            && *executor == depth
            && way.in_array
        {
            way.by = field(&Value::Document(doc.borrow()), reference).into_owned();
        }
        let mut below = way.below(&first.name, Beside::default());
        if rest.is_empty() {
            if below.in_array {
                sites.push(Site { path: below.path, by: below.by });
            }
            return;
        }
        match doc.get(&first.name) {
            Some(Value::Document(inner)) => self.sites(&inner, rest, depth + 1, &mut below, sites),
            Some(Value::Array(items)) => self.sites_of_items(&items, rest, depth + 1, &below, sites),
            _ => {}
        }
    }

    fn sites_of_items(&self, items: &Array<'_>, rest: &[Part], depth: usize, way: &Way, sites: &mut Vec<Site>) {
        for (index, item) in items.iter().enumerate() {
            let mut below = way.element(index);
            match &item {
                Value::Document(inner) => self.sites(inner, rest, depth, &mut below, sites),
                Value::Array(inner) => self.sites_of_items(inner, rest, depth, &below, sites),
                _ => {}
            }
        }
    }
}

/// The document without a field, and without the documents that held nothing else.
pub(crate) fn without(doc: &Doc<'_>, field: &Path) -> Doc<'static> {
    rebuilt(doc, &field.parts, "", &Assigned::default())
}

/// The way to a place in a host.
struct Way {
    path: String,
    in_array: bool,
    /// Whether it ends at an element of an array.
    is_element: bool,
    by: Value<'static>,
    /// What is beside each part of the path.
    beside: Vec<Beside>,
}

impl Way {
    fn new() -> Way {
        Way { path: String::new(), in_array: false, is_element: false, by: Value::Missing, beside: Vec::new() }
    }

    fn below(&self, name: &str, beside: Beside) -> Way {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        let beside = self.beside.iter().cloned().chain([beside]).collect();
        Way { path, in_array: self.in_array, is_element: false, by: self.by.clone(), beside }
    }

    fn element(&self, index: usize) -> Way {
        Way { in_array: true, is_element: true, ..self.below(&index.to_string(), Beside::default()) }
    }

    /// What is at its end.
    fn entry(&self, value: &Value<'_>) -> Entry {
        let mut above = self.beside.clone();
        Entry {
            path: self.path.clone(),
            value: value.clone().into_owned(),
            beside: above.pop().unwrap_or_default(),
            above,
            by: self.by.clone(),
            in_array: self.in_array,
        }
    }
}

impl Entry {
    /// The path without positions in arrays.
    fn named(&self) -> Path {
        let is_position = |part: &str| self.in_array && part.bytes().all(|byte| byte.is_ascii_digit());
        let parts: Vec<&str> = self.path.split('.').filter(|part| !is_position(part)).collect();
        Path::new(&parts.join("."))
    }

    fn write(&self) -> Doc<'static> {
        let mut entry = DocWriter::new();
        entry.append("path", &Value::from(&*self.path)).append("value", &self.value);
        self.beside.write(&mut entry);
        if self.above.iter().any(|beside| *beside != Beside::default()) {
            entry.start_array("above");
            for (index, beside) in self.above.iter().enumerate() {
                entry.start_document_at(index);
                beside.write(&mut entry);
                entry.end();
            }
            entry.end();
        }
        if self.in_array {
            entry.append("in_array", &Value::Bool(true)).append("by", &self.by);
        }
        entry.finish()
    }

    fn read(entry: &Value<'_>) -> Option<Entry> {
        let Value::Document(entry) = entry else { return None };
        let above = match entry.get("above") {
            Some(Value::Array(above)) => above.iter().map(|beside| Beside::read(&beside)).collect(),
            _ => Vec::new(),
        };
        Some(Entry {
            path: entry.get("path")?.as_str()?.to_owned(),
            value: entry.get("value")?.into_owned(),
            beside: Beside::read(&Value::Document(entry.borrow())),
            above,
            by: entry.get("by").map_or(Value::Missing, Value::into_owned),
            in_array: entry.contains("in_array"),
        })
    }
}

/// Which entry goes where, and what was beside the documents on the way.
#[derive(Default)]
struct Assigned<'e> {
    entries: HashMap<String, &'e Entry>,
    beside: HashMap<String, &'e Beside>,
}

impl<'e> Assigned<'e> {
    /// An element of an array keeps what it had as long as it refers to the same source, wherever it is now.
    fn new(entries: &'e [Entry], sites: &[Site]) -> Assigned<'e> {
        let mut assigned = Assigned::default();
        let mut moved = Vec::new();
        for entry in entries {
            let is_same = |site: &Site| site.path == entry.path && site.by == entry.by;
            let is_on_the_way = || !sites.iter().any(|site| site.path == entry.path);
            match !entry.in_array || sites.iter().any(is_same) || (entry.by.is_missing() && is_on_the_way()) {
                true => assigned.put(&entry.path, entry),
                false if !entry.by.is_missing() => moved.push(entry),
                false => {}
            }
        }
        for entry in moved {
            let is_free = |site: &&Site| site.by == entry.by && !assigned.entries.contains_key(&site.path);
            if let Some(site) = sites.iter().find(is_free) {
                assigned.put(&site.path, entry);
            }
        }
        assigned
    }

    fn put(&mut self, path: &str, entry: &'e Entry) {
        self.entries.insert(path.to_owned(), entry);
        self.beside.insert(path.to_owned(), &entry.beside);
        let ends = path.match_indices('.').map(|(end, _)| end);
        for (end, beside) in ends.zip(&entry.above) {
            if let Some(above) = path.get(..end) {
                self.beside.entry(above.to_owned()).or_insert(beside);
            }
        }
    }

    fn has_below(&self, path: &str) -> bool {
        self.entries.keys().any(|other| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }
}

/// The document with what was at the rest of a path.
fn rebuilt(doc: &Doc<'_>, parts: &[Part], way: &str, assigned: &Assigned<'_>) -> Doc<'static> {
    let Some((first, rest)) = parts.split_first() else { return doc.clone().into_owned() };
    let path = if way.is_empty() { first.name.to_string() } else { format!("{way}.{}", first.name) };
    let (current, was) = (doc.get(&first.name), assigned.entries.get(&path).copied());
    let becomes = match (&current, rest.is_empty()) {
        (_, true) => was.map_or(Value::Missing, |was| was.value.borrow()),
        (Some(Value::Document(inner)), false) => {
            let right = rebuilt(inner, rest, &path, assigned);
            match (was, right.is_empty()) {
                (Some(was), true) => was.value.borrow(),
                // Made for the rule's field alone.
                (None, true) if !inner.is_empty() => Value::Missing,
                _ => Value::Document(right),
            }
        }
        (Some(Value::Array(items)), false) => Value::Array(items_rebuilt(items, rest, &path, assigned)),
        (Some(other), false) => other.borrow(),
        (None, false) => match was {
            Some(was) => was.value.borrow(),
            None if assigned.has_below(&path) => Value::Document(rebuilt(&Doc::empty(), rest, &path, assigned)),
            None => Value::Missing,
        },
    };
    with_field(doc, &first.name, &becomes, assigned.beside.get(&path).copied())
}

fn items_rebuilt(items: &Array<'_>, rest: &[Part], way: &str, assigned: &Assigned<'_>) -> Array<'static> {
    let mut right = ArrayWriter::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{way}.{index}");
        match (&item, assigned.entries.get(&path)) {
            (Value::Document(inner), was) => {
                let inner = rebuilt(inner, rest, &path, assigned);
                match was {
                    Some(was) if inner.is_empty() => right.push(&was.value),
                    _ => right.push(&Value::Document(inner)),
                };
            }
            (Value::Array(inner), _) => {
                right.push(&Value::Array(items_rebuilt(inner, rest, &path, assigned)));
            }
            (other, _) => {
                right.push(other);
            }
        }
    }
    right.finish()
}
