//! A value on the way to a dotted field that leaves no room for it: with `{ info: 5 }` there is no place for `info.customer`.
//!
//! Null is no obstacle: it becomes a document. Everything else that is not a document would be lost, so a write that puts it there is
//! refused, and `apply` counts the documents that have it.

use crate::rule::Field;
use document::value::path::Part;
use document::value::show;
use document::{Code, Doc, Error, Value};

#[derive(Clone, Debug, PartialEq)]
pub struct Obstacle {
    /// The field that has the value, and the one that cannot be made in it.
    pub(crate) name: String,
    wanted: String,
    pub(crate) value: Value<'static>,
}

/// Whether an array on the way is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrays {
    Obstruct,
    /// The field is in each element.
    AreEntered,
}

impl Obstacle {
    /// Returns `None` if the way to the end of `parts` is free.
    pub fn on_way(doc: &Doc<'_>, parts: &[Part], arrays: Arrays) -> Option<Obstacle> {
        let (first, rest) = parts.split_first()?;
        let next = rest.first()?;
        match doc.get(&first.name)? {
            Value::Document(inner) => Obstacle::on_way(&inner, rest, arrays),
            Value::Array(items) if arrays == Arrays::AreEntered => items.iter().find_map(|item| match item {
                Value::Document(inner) => Obstacle::on_way(&inner, rest, arrays),
                _ => None,
            }),
            value if value.is_nullish() => None,
            value => {
                let (name, wanted) = (first.name.to_string(), next.name.to_string());
                Some(Obstacle { name, wanted, value: value.into_owned() })
            }
        }
    }

    /// MongoDB's error for it, with the rule that wants the place.
    pub fn error(&self, field: &dyn Field) -> Error {
        let Obstacle { name, wanted, value } = self;
        let value = show::element(value);
        let message = format!("Cannot create field '{wanted}' in element {{{name}: {value}}}");
        Error::new(
            Code::PathNotViable,
            format!("{message}: rule {} keeps '{}'", field.target().rule, field.target().path),
        )
        .with_hint(format!("store a document in '{name}', or null"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::doc;
    use document::value::Path;

    #[test]
    fn whatever_is_neither_a_document_nor_null_is_in_the_way() {
        for (host, entered, obstructed) in [
            (doc! {}, None, None),
            (doc! { "a": null }, None, None),
            (doc! { "a": { "b": { "c": 5 } } }, None, None),
            (doc! { "a": { "b": null } }, None, None),
            (doc! { "a": { "b": 5 } }, Some("b"), Some("b")),
            (doc! { "a": "x" }, Some("a"), Some("a")),
            (doc! { "a": [] }, None, Some("a")),
            (doc! { "a": [{ "b": 1 }] }, Some("b"), Some("a")),
        ] {
            let (host, path) = (Doc::from(host), Path::new("a.b.c"));
            let name = |arrays| Obstacle::on_way(&host, &path.parts, arrays).map(|obstacle| obstacle.name);
            assert_eq!(name(Arrays::AreEntered).as_deref(), entered, "{host:?}");
            assert_eq!(name(Arrays::Obstruct).as_deref(), obstructed, "{host:?}");
        }
    }
}
