//! A declaration as it was written: a tree of nodes, each with its place in the file. YAML and BSON both become this tree, so
//! that everything after it is written once.

use document::{ArrayWriter, DocWriter, Value};
use std::collections::{HashMap, hash_map};
use std::ops::Deref;

/// A place in the file; lines and columns count from 1, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
    /// Byte offsets into the text.
    pub start: usize,
    pub end: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) content: NodeContent,
    /// None in a tree made from BSON.
    pub(crate) spot: Option<Spot>,
}

#[derive(Clone, Debug)]
pub(crate) enum NodeContent {
    Map(Entries),
    List(Vec<Node>),
    Scalar(Value<'static>),
}

#[derive(Clone, Debug)]
pub(crate) struct MapEntry {
    pub(crate) key: String,
    pub(crate) spot: Option<Spot>,
    pub(crate) value: Node,
}

/// The entries of a map in the order of the file, found by their keys.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    list: Vec<MapEntry>,
    places: HashMap<String, usize>,
}

impl Entries {
    /// Adds an entry; gives back the first one of the same key, if there is one, and adds nothing then.
    pub(crate) fn add(&mut self, entry: MapEntry) -> Option<&MapEntry> {
        match self.places.entry(entry.key.clone()) {
            hash_map::Entry::Occupied(first) => self.list.get(*first.get()),
            hash_map::Entry::Vacant(place) => {
                place.insert(self.list.len());
                self.list.push(entry);
                None
            }
        }
    }

    pub(crate) fn find(&self, key: &str) -> Option<&MapEntry> {
        self.places.get(key).and_then(|place| self.list.get(*place))
    }
}

impl Deref for Entries {
    type Target = [MapEntry];

    fn deref(&self) -> &[MapEntry] {
        &self.list
    }
}

impl Node {
    /// What it is, in words of the file's author.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            NodeContent::Map(_) => "a map",
            NodeContent::List(_) => "a list",
            NodeContent::Scalar(value) => match value {
                Value::Null => "empty",
                Value::Bool(_) => "true or false",
                Value::String(_) => "text",
                value if value.is_number() => "a number",
                other => other.type_name(),
            },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.content, NodeContent::Scalar(Value::Null))
    }

    /// The value it stands for, as BSON.
    pub(crate) fn to_value(&self) -> Value<'static> {
        match &self.content {
            NodeContent::Scalar(value) => value.clone(),
            NodeContent::List(items) => {
                let mut writer = ArrayWriter::new();
                for item in items {
                    writer.push(&item.to_value());
                }
                Value::Array(writer.finish())
            }
            NodeContent::Map(entries) => {
                let mut writer = DocWriter::new();
                for entry in entries.iter() {
                    writer.append(&entry.key, &entry.value.to_value());
                }
                Value::Document(writer.finish())
            }
        }
    }
}
