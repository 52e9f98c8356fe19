//! Text that is one value in one version and several in the other: `split` and `join` are the two ways.

use super::Conversion;
use crate::mql::{call, call_with, cond, field, list, literal, object, with};
use crate::rule::lens::edits::{Edits, are_text, is_type};
use document::Value;
use document::value::Path;

/// A text and its parts.
#[derive(Clone, Debug)]
pub(super) struct TextParts<'s> {
    pub(super) whole: &'s Path,
    pub(super) parts: &'s [Path],
    pub(super) separator: &'s str,
}

impl TextParts<'_> {
    /// Cuts the text at the first separators; the last part is all that is left. Parts for which there is no text are absent.
    pub(super) fn cut(&self) -> Conversion {
        let whole = self.whole.dotted();
        let separator = || literal(Value::from(self.separator));
        let pieces = || call_with("$split", [field(&whole), separator()]);
        let count = || call("$size", Value::from("$$pieces"));
        let last = self.parts.len().saturating_sub(1);
        let mut edits = Edits::when(is_type(&whole, "string")).prune(self.whole);
        for (at, path) in self.parts.iter().enumerate() {
            let number = || Value::Int32(i32::try_from(at).unwrap_or(i32::MAX));
            let found = match at == last {
                false => call_with("$arrayElemAt", [Value::from("$$pieces"), number()]),
                true => self.glued(call_with("$slice", [Value::from("$$pieces"), number(), count()])),
            };
            let part = cond(call_with("$gt", [count(), number()]), found, Value::from("$$REMOVE"));
            edits = edits.set(path, with([("pieces", pieces())], part));
        }
        Conversion::one(edits)
    }

    /// Puts the parts together, as far as they are there; the first one must be.
    pub(super) fn glue(&self) -> Conversion {
        let Some(first) = self.parts.first() else { return Conversion::none() };
        let guard = call_with("$and", [is_type(&first.dotted(), "string"), are_text(self.parts)]);
        let edits = self.parts.iter().fold(Edits::when(guard), |edits, path| edits.prune(path));
        let parts = self.parts.iter().map(|path| call_with("$ifNull", [field(&path.dotted()), Value::Null]));
        let there = call(
            "$filter",
            object([("input", list(parts)), ("cond", call_with("$ne", [Value::from("$$this"), Value::Null]))]),
        );
        Conversion::one(edits.set(self.whole, self.glued(there)))
    }

    /// The items of an array as one text.
    fn glued(&self, items: Value<'static>) -> Value<'static> {
        let separator = literal(Value::from(self.separator));
        let (so_far, next) = (|| Value::from("$$value"), || Value::from("$$this"));
        let is_first = call_with("$eq", [so_far(), Value::Null]);
        let longer = call_with("$concat", [so_far(), separator, next()]);
        call(
            "$reduce",
            object([("input", items), ("initialValue", Value::Null), ("in", cond(is_first, next(), longer))]),
        )
    }

    pub(super) fn paths(&self) -> Vec<Path> {
        std::iter::once(self.whole).chain(self.parts).cloned().collect()
    }

    /// What putting together and cutting again does not give back.
    pub(super) fn loss(&self) -> String {
        let parts: Vec<String> = self.parts.iter().map(|path| format!("`{path}`")).collect();
        format!("where the text of {} has {:?} in it, it is cut at another place", parts.join(" or "), self.separator)
    }
}
