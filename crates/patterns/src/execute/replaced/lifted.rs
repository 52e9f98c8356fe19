//! How far the items of an array have become documents of their own (`lift`), and how far they are back in it. It stands in the catalog's
//! row of the rule, and outlives `lift` itself: what was lifted once is not lifted again, and can be given back.

use crate::mql::long;
use crate::rule::Rule;
use document::value::order;
use document::{Doc, DocWriter, Value};
use std::cmp::Ordering;

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lifted {
    /// The path of the array.
    pub array: String,
    /// The array of each host before it, by `_id`, is lifted; the largest value there is stands for all.
    pub to: Option<Value<'static>>,
    /// How many items of the host at `to` are documents already. All of them are still in the array.
    pub items: i64,
    /// Retiring: hosts before it have their items back.
    pub restored_to: Option<Value<'static>>,
}

impl Lifted {
    pub(crate) fn of(rule: &Rule) -> Option<Lifted> {
        Some(Lifted { array: rule.lift.as_ref()?.dotted(), ..Lifted::default() })
    }

    /// Whether nothing is left to lift.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.to, Some(Value::MaxKey))
    }

    /// Whether the array of the host has become documents.
    pub(crate) fn has_lifted(&self, id: &Value<'_>) -> bool {
        self.is_done() || self.to.as_ref().is_some_and(|to| order::compare(id, to) == Ordering::Less)
    }

    pub(crate) fn read(doc: &Doc<'_>) -> Lifted {
        let value = |name: &str| doc.get(name).map(Value::into_owned);
        Lifted {
            array: doc.get("array").and_then(|array| array.as_str().map(str::to_owned)).unwrap_or_default(),
            to: value("to"),
            items: long(doc.get("items")),
            restored_to: value("restored_to"),
        }
    }

    pub(crate) fn show(&self) -> Doc<'static> {
        let mut doc = DocWriter::new();
        doc.append("array", &Value::from(&*self.array));
        if let Some(to) = &self.to {
            doc.append("to", to);
        }
        if self.items > 0 {
            doc.append("items", &Value::Int64(self.items));
        }
        if let Some(to) = &self.restored_to {
            doc.append("restored_to", to);
        }
        doc.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_read_as_it_was_written() {
        let begun = Lifted { array: "a.b".to_owned(), ..Lifted::default() };
        let half = Lifted { to: Some(Value::Int32(7)), items: 3, ..begun.clone() };
        let done = Lifted { to: Some(Value::MaxKey), restored_to: Some(Value::Null), ..begun.clone() };
        for lifted in [begun.clone(), half.clone(), done.clone()] {
            assert_eq!(Lifted::read(&lifted.show()), lifted);
        }
        let id = Value::Int32(7);
        assert_eq!([begun, half, done].map(|lifted| lifted.has_lifted(&id)), [false, false, true]);
    }
}
