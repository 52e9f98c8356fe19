//! What a host had at the paths of a rule: written down before the rule changes them, put back when the rule is dropped with
//! `--restore`. Pure: no document is read or written here.
//!
//! A record is a list of `{ path, value, previous, next, by }`. The path is concrete (`items.0.product`), `previous` and `next`
//! name the fields beside the value, `by` is the reference of the array element that held it: elements move. What a record does
//! not name was absent.

use crate::rule::{Rule, Upkeep};
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
    previous: Option<String>,
    next: Option<String>,
    by: Value<'static>,
    in_array: bool,
}

/// A place in a host where a value is or could be.
struct Site {
    path: String,
    by: Value<'static>,
}

impl Places {
    pub(crate) fn of(rule: &Rule) -> Places {
        let state = Path::new(&format!("{}.{}", crate::link::owned::STATE, rule.field.dotted()));
        let reference = match &rule.upkeep {
            Upkeep::Link(link) if matches!(link.fold, crate::rule::Fold::One { .. }) => {
                let (by, at) = (&link.local.path.parts, &rule.field.parts);
                let most = by.len().min(at.len()).saturating_sub(1);
                let shared = by.iter().zip(at).take(most).take_while(|(by, at)| by.name == at.name).count();
                Some((shared, by.get(shared..).unwrap_or_default().to_vec()))
            }
            _ => None,
        };
        // An earlier form of the rule may have had a state where this one has none.
        Places { paths: vec![rule.field.clone(), state], reference }
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
        if let Some((shared, reference)) = &self.reference
            && *shared == depth
            && way.in_array
        {
            way.by = field(&Value::Document(doc.borrow()), reference).into_owned();
        }
        let Some(value) = doc.get(&first.name) else {
            // What is made in an empty document leaves it behind: it must be known that it was there.
            if doc.is_empty() && !way.path.is_empty() && !way.is_element {
                let (path, by, in_array) = (way.path.clone(), way.by.clone(), way.in_array);
                let value = Value::Document(Doc::empty());
                entries.push(Entry { path, value, previous: None, next: None, by, in_array });
            }
            return;
        };
        let mut below = way.below(&first.name, false);
        let scalar = |value: &Value<'_>, way: &Way| {
            let (previous, next) = neighbours(doc, &first.name);
            Entry {
                path: way.path.clone(),
                value: value.clone().into_owned(),
                previous,
                next,
                by: way.by.clone(),
                in_array: way.in_array,
            }
        };
        match &value {
            _ if rest.is_empty() => entries.push(scalar(&value, &below)),
            Value::Document(inner) => self.note(inner, rest, depth + 1, &mut below, entries),
            Value::Array(items) => self.note_items(items, rest, depth + 1, &below, entries),
            other => entries.push(scalar(other, &below)),
        }
    }

    fn note_items(&self, items: &Array<'_>, rest: &[Part], depth: usize, way: &Way, entries: &mut Vec<Entry>) {
        for (index, item) in items.iter().enumerate() {
            let mut below = way.below(&index.to_string(), true);
            match &item {
                Value::Document(inner) => self.note(inner, rest, depth, &mut below, entries),
                Value::Array(inner) => self.note_items(inner, rest, depth, &below, entries),
                // Copies leave it alone; anything else that is written through the array replaces it.
                _ if self.reference.is_some() => {}
                other => entries.push(Entry {
                    path: below.path.clone(),
                    value: other.clone().into_owned(),
                    previous: None,
                    next: None,
                    by: Value::Missing,
                    in_array: true,
                }),
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
        let assigned = assign(&entries, &sites);
        let mut doc = host.clone().into_owned();
        for path in &self.paths {
            doc = rebuilt(&doc, &path.parts, "", &assigned);
        }
        doc
    }

    /// What was on the way to a field of the rule, where something else is now: not for this rule to put back.
    pub(crate) fn in_the_way(&self, right: &Doc<'_>, record: &Array<'_>) -> Vec<(String, Doc<'static>)> {
        let mut found = Vec::new();
        for entry in record.iter().filter_map(|entry| Entry::read(&entry)).filter(|entry| !entry.in_array) {
            let path = Path::new(&entry.path);
            let is_on_the_way = self.paths.iter().any(|own| path.is_prefix_of(own) && path != *own);
            if is_on_the_way && field(&Value::Document(right.borrow()), &path.parts) != entry.value {
                found.push((entry.path.clone(), entry.write()));
            }
        }
        found
    }

    /// The places in arrays, values or not.
    fn sites(&self, doc: &Doc<'_>, parts: &[Part], depth: usize, way: &mut Way, sites: &mut Vec<Site>) {
        let Some((first, rest)) = parts.split_first() else { return };
        if let Some((shared, reference)) = &self.reference
            && *shared == depth
            && way.in_array
        {
            way.by = field(&Value::Document(doc.borrow()), reference).into_owned();
        }
        let mut below = way.below(&first.name, false);
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
            let mut below = way.below(&index.to_string(), true);
            match &item {
                Value::Document(inner) => self.sites(inner, rest, depth, &mut below, sites),
                Value::Array(inner) => self.sites_of_items(inner, rest, depth, &below, sites),
                _ => {}
            }
        }
    }
}

/// The way to a place in a host.
struct Way {
    path: String,
    in_array: bool,
    /// Whether it ends at an element of an array.
    is_element: bool,
    by: Value<'static>,
}

impl Way {
    fn new() -> Way {
        Way { path: String::new(), in_array: false, is_element: false, by: Value::Missing }
    }

    fn below(&self, name: &str, is_element: bool) -> Way {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Way { path, in_array: self.in_array || is_element, is_element, by: self.by.clone() }
    }
}

impl Entry {
    fn write(&self) -> Doc<'static> {
        let mut entry = DocWriter::new();
        entry.append("path", &Value::from(&*self.path)).append("value", &self.value);
        for (name, beside) in [("previous", &self.previous), ("next", &self.next)] {
            if let Some(beside) = beside {
                entry.append(name, &Value::from(&**beside));
            }
        }
        if self.in_array {
            entry.append("in_array", &Value::Bool(true)).append("by", &self.by);
        }
        entry.finish()
    }

    fn read(entry: &Value<'_>) -> Option<Entry> {
        let Value::Document(entry) = entry else { return None };
        let text = |name: &str| Some(entry.get(name)?.as_str()?.to_owned());
        Some(Entry {
            path: text("path")?,
            value: entry.get("value")?.into_owned(),
            previous: text("previous"),
            next: text("next"),
            by: entry.get("by").map_or(Value::Missing, Value::into_owned),
            in_array: entry.contains("in_array"),
        })
    }
}

/// The fields before and behind one of a document.
fn neighbours(doc: &Doc<'_>, name: &str) -> (Option<String>, Option<String>) {
    let (mut previous, mut found) = (None, false);
    for (other, _) in doc.iter() {
        match (found, other.as_str() == name) {
            (true, _) => return (previous, Some(other.as_str().to_owned())),
            (false, true) => found = true,
            (false, false) => previous = Some(other.as_str().to_owned()),
        }
    }
    (previous, None)
}

/// Which entry goes where. An element of an array keeps what it had as long as it refers to the same source, wherever it is now.
fn assign<'e>(entries: &'e [Entry], sites: &[Site]) -> HashMap<String, &'e Entry> {
    let mut assigned: HashMap<String, &Entry> = HashMap::new();
    let mut moved = Vec::new();
    for entry in entries {
        let is_same = |site: &Site| site.path == entry.path && site.by == entry.by;
        let is_on_the_way = || !sites.iter().any(|site| site.path == entry.path);
        match !entry.in_array || sites.iter().any(is_same) || (entry.by.is_missing() && is_on_the_way()) {
            true => drop(assigned.insert(entry.path.clone(), entry)),
            false if !entry.by.is_missing() => moved.push(entry),
            false => {}
        }
    }
    for entry in moved {
        if let Some(site) = sites.iter().find(|site| site.by == entry.by && !assigned.contains_key(&site.path)) {
            assigned.insert(site.path.clone(), entry);
        }
    }
    assigned
}

/// The document with what was at the rest of a path.
fn rebuilt(doc: &Doc<'_>, parts: &[Part], way: &str, assigned: &HashMap<String, &Entry>) -> Doc<'static> {
    let Some((first, rest)) = parts.split_first() else { return doc.clone().into_owned() };
    let path = if way.is_empty() { first.name.to_string() } else { format!("{way}.{}", first.name) };
    let (current, was) = (doc.get(&first.name), assigned.get(&path).copied());
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
        (None, false) => was.map_or(Value::Missing, |was| was.value.borrow()),
    };
    with_field(doc, &first.name, &becomes, was)
}

fn items_rebuilt(items: &Array<'_>, rest: &[Part], way: &str, assigned: &HashMap<String, &Entry>) -> Array<'static> {
    let mut right = ArrayWriter::new();
    for (index, item) in items.iter().enumerate() {
        let path = format!("{way}.{index}");
        match (&item, assigned.get(&path)) {
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

/// The document with another value of one field. A new one comes beside its old neighbours, else at the end.
fn with_field(doc: &Doc<'_>, name: &str, value: &Value<'_>, was: Option<&Entry>) -> Doc<'static> {
    let is_new = !doc.contains(name);
    let has = |beside: &Option<String>| beside.as_deref().filter(|beside| doc.contains(beside)).map(str::to_owned);
    let next = was.and_then(|was| has(&was.next)).filter(|_| is_new);
    let previous = was.and_then(|was| has(&was.previous)).filter(|_| is_new && next.is_none());
    let mut writer = DocWriter::with_capacity(doc.as_bytes().len() + 64);
    for (other, current) in doc.iter() {
        let other = other.as_str();
        if next.as_deref() == Some(other) {
            writer.append(name, value);
        }
        match other == name {
            true => writer.append(name, value),
            false => writer.append(other, &current),
        };
        if previous.as_deref() == Some(other) {
            writer.append(name, value);
        }
    }
    if is_new && next.is_none() && previous.is_none() {
        writer.append(name, value);
    }
    writer.finish()
}
