//! A declaration that came over the wire: the tree without places.

use crate::declare::finding::{At, Findings};
use crate::declare::tree::{Entries, MapEntry, Node, NodeContent};
use document::{Doc, Value};

pub(crate) fn read(doc: &Doc<'_>, findings: &mut Findings) -> Node {
    node(&Value::Document(doc.borrow()), &At::default(), findings)
}

fn node(value: &Value<'_>, at: &At, findings: &mut Findings) -> Node {
    let content = match value {
        Value::Document(doc) => {
            let mut entries = Entries::default();
            for (key, value) in doc.iter() {
                let key = key.as_str();
                let inside = at.inside(key, None);
                let value = node(&value, &inside, findings);
                if entries.add(MapEntry { key: key.to_owned(), spot: None, value }).is_some() {
                    findings.error(&inside, format!("`{key}` is there twice"), "keep one of them");
                }
            }
            NodeContent::Map(entries)
        }
        Value::Array(array) => {
            let items = array.iter().enumerate();
            NodeContent::List(items.map(|(i, item)| node(&item, &at.inside(&i.to_string(), None), findings)).collect())
        }
        scalar => NodeContent::Scalar(scalar.clone().into_owned()),
    };
    Node { content, spot: None }
}
