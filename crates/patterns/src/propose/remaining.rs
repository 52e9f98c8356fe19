//! What moves and texts do not explain: types that changed, fields that are new, fields that are gone.

use super::evidence::KnownField;
use super::renames_and_nests::retyped;
use super::search::Search;
use super::written::{self, WrittenStep};
use crate::mql::{call, call_with, cond, field, list, literal, object};
use document::Value;
use document::value::Path;

impl Search<'_> {
    /// `convert` and `wrap` of fields that kept their place.
    pub(super) fn changed_types(&mut self) {
        for old in self.old.clone() {
            let Some(new) = self.new.field(&old.path).cloned() else { continue };
            let path = old.path.dotted();
            let types = |field: &KnownField| field.types_of_values().collect::<Vec<_>>().join(", ");
            let steps = match retyped(&old, &new) {
                Some(steps) if steps.is_empty() => continue,
                Some(steps) => steps,
                None => {
                    let text =
                        format!("`{path}` changes from {} to {}: write `up` and `down`", types(&old), types(&new));
                    self.note(text, true);
                    continue;
                }
            };
            let shown = self.shown(&steps, &[&old.path], &[&old.path]);
            let change = format!("`{path}` was {} and is {}", types(&old), types(&new));
            let (is_sure, because) = match shown.filter(|shown| shown.of > 0) {
                Some(shown) if shown.by_most() => {
                    (shown.by_all() && shown.of > 1, format!("{} {change}", shown.text()))
                }
                Some(_) => {
                    self.note(format!("{change}, but with other values: write `up` and `down`"), true);
                    continue;
                }
                None => (false, change),
            };
            self.take(steps, std::slice::from_ref(&old.path), &[new], is_sure, &because);
        }
    }

    /// `default` for what newer documents all have.
    pub(super) fn new_fields(&mut self) {
        for new in self.fresh() {
            let path = new.path.dotted();
            if !new.always && new.of_kinds.is_none() && !self.is_always_in_its_document(&new) {
                self.note(format!("`{path}` is new, and not every document has it: it needs no step"), false);
                continue;
            }
            let is_sample = !self.new.documents.is_empty();
            let (value, because) = match (new.constant(), is_sample) {
                (Some(value), true) => {
                    (Some(value.clone()), format!("`{path}` is new, and every document has the same value"))
                }
                (_, true) => (
                    self.most_frequent(&new),
                    format!("`{path}` is new, and documents have different values: this is the most frequent"),
                ),
                (Some(value), false) => {
                    (Some(value.clone()), format!("`{path}` is new, and the schema allows one value"))
                }
                (None, false) => {
                    (self.made_up(&new), format!("`{path}` is new and required, and its value is made up"))
                }
            };
            let step = value.and_then(|value| self.added(&new, value));
            match step {
                Some(step) => self.take(vec![step], &[], &[new], false, &because),
                None => self.note(
                    format!("`{path}` is new and required: write what older documents get as `up` and `down`"),
                    true,
                ),
            }
        }
    }

    /// `drop` of what newer documents do not have.
    pub(super) fn gone_fields(&mut self) {
        for old in self.gone() {
            let because = format!("newer documents have no `{}`", old.path.dotted());
            self.take(vec![written::drop(&old.path)], std::slice::from_ref(&old.path), &[], false, &because);
        }
    }

    /// Gives a value to older documents: to all, to those of some kinds, or to those that have the document it lies in.
    fn added(&self, new: &KnownField, value: Value<'static>) -> Option<WrittenStep> {
        if let Some((discriminator, kinds)) = &new.of_kinds {
            let kind = call_with(
                "$in",
                [field(&discriminator.dotted()), list(kinds.iter().map(|kind| Value::string(&**kind)))],
            );
            return guarded(&new.path, kind, value);
        }
        let above = Path { parts: new.path.parts.iter().take(new.path.parts.len() - 1).cloned().collect() };
        let is_there = above.parts.is_empty()
            || self.old.iter().any(|old| above.is_prefix_of(&old.path) && old.always && old.path != new.path);
        match is_there {
            true => Some(written::default(&new.path, value)),
            false => inside(&above, new.path.parts.last().map(|part| part.name.to_string())?, value),
        }
    }

    /// Whether every document that has the document around the field has the field.
    fn is_always_in_its_document(&self, field: &KnownField) -> bool {
        let above = Path { parts: field.path.parts.iter().take(field.path.parts.len() - 1).cloned().collect() };
        let has = |doc: &document::Doc<'_>| super::evidence::value_at(doc, &above).is_some();
        !above.parts.is_empty()
            && !self.new.documents.is_empty()
            && field.present == self.new.documents.iter().filter(|doc| has(doc)).count()
    }

    fn most_frequent(&self, field: &KnownField) -> Option<Value<'static>> {
        let count = |value: &&Value<'static>| {
            let found = self.new.documents.iter().filter_map(|doc| super::evidence::value_at(doc, &field.path));
            found.filter(|found| document::value::order::equal(found, value)).count()
        };
        // The first of the most frequent ones.
        field.values.iter().rev().max_by_key(count).cloned()
    }
}

/// `{ $set: { isbn: { $cond: [ is of the kind and has none, value, "$isbn" ] } } }`.
fn guarded(path: &Path, condition: Value<'static>, value: Value<'static>) -> Option<WrittenStep> {
    let dotted = path.dotted();
    let own = field(&dotted);
    let is_absent = call_with("$eq", [call("$type", own.clone()), Value::from("missing")]);
    let then = cond(call_with("$and", [condition, is_absent]), literal(value), own);
    // A path of several parts would make the document around it in documents of other kinds.
    (path.parts.len() == 1).then(|| written::upward(vec![call("$set", object([(&*dotted, then)]))]))
}

/// Into a document, where that is there.
fn inside(above: &Path, name: String, value: Value<'static>) -> Option<WrittenStep> {
    let around = above.dotted();
    let is_document = call_with("$eq", [call("$type", field(&around)), Value::from("object")]);
    let constant = object([(&*name, literal(value))]);
    let merged = cond(is_document, call_with("$mergeObjects", [constant, field(&around)]), field(&around));
    (above.parts.len() == 1).then(|| written::upward(vec![call("$set", object([(&*around, merged)]))]))
}
