//! A declaration as it was written: a tree of nodes, each with its place in the file. YAML and BSON both become this tree, so
//! that everything after it is written once.

use document::{ArrayWriter, DocWriter, Value};

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
    pub(crate) content: Content,
    /// None in a tree made from BSON.
    pub(crate) spot: Option<Spot>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Map(Vec<Entry>),
    List(Vec<Node>),
    Scalar(Value<'static>),
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) spot: Option<Spot>,
    pub(crate) value: Node,
}

impl Node {
    /// What it is, in words of the file's author.
    pub(crate) fn kind(&self) -> &'static str {
        match &self.content {
            Content::Map(_) => "a map",
            Content::List(_) => "a list",
            Content::Scalar(value) => match value {
                Value::Null => "empty",
                Value::Bool(_) => "true or false",
                Value::String(_) => "text",
                value if value.is_number() => "a number",
                other => other.type_name(),
            },
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        matches!(&self.content, Content::Scalar(Value::Null))
    }

    /// The value it stands for, as BSON.
    pub(crate) fn to_value(&self) -> Value<'static> {
        match &self.content {
            Content::Scalar(value) => value.clone(),
            Content::List(items) => {
                let mut writer = ArrayWriter::new();
                for item in items {
                    writer.push(&item.to_value());
                }
                Value::Array(writer.finish())
            }
            Content::Map(entries) => {
                let mut writer = DocWriter::new();
                for entry in entries {
                    writer.append(&entry.key, &entry.value.to_value());
                }
                Value::Document(writer.finish())
            }
        }
    }
}
