//! What a text index holds: the texts of a document, each with its language and weight.

use super::Language;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::raw::{Array, Doc};
use crate::value::Value;

/// A weight is below this.
pub const MAX_WEIGHT: i32 = 100_000;

/// The path of an index on all texts.
const WILDCARD: &str = "$**";

/// What the options of a text index say.
#[derive(Clone, Debug, PartialEq)]
pub struct TextSpec {
    /// By path, in the order of bytes.
    weights: Vec<(String, f64)>,
    /// Whether all texts are indexed, those without a weight of their own with weight 1.
    wildcard: bool,
    pub default_language: Language,
    /// The field by which a document names its language.
    language_override: String,
}

/// Called with each text, its language and its weight; says whether to go on.
pub(super) type Visit<'v> = dyn FnMut(&str, Language, f64) -> bool + 'v;

impl TextSpec {
    /// Of a completed specification of an index; `None` if it is none of a text index.
    pub fn of_index(spec: &Doc<'_>) -> Option<TextSpec> {
        let Some(Value::Document(given)) = spec.get("weights") else { return None };
        let text = |name: &str| spec.get(name).and_then(|value| value.as_str().map(str::to_owned));
        let weight =
            |value: &Value<'_>| value.as_i64_exact().and_then(|weight| i32::try_from(weight).ok()).unwrap_or(1);
        let mut weights: Vec<(String, f64)> =
            given.iter().map(|(name, value)| (name.as_str().to_owned(), f64::from(weight(&value)))).collect();
        weights.sort_by(|(a, _), (b, _)| a.cmp(b));
        let wildcard = weights.iter().any(|(path, _)| path == WILDCARD);
        weights.retain(|(path, _)| path != WILDCARD);
        Some(TextSpec {
            weights,
            wildcard,
            default_language: text("default_language").and_then(|name| Language::find(&name))?,
            language_override: text("language_override")?,
        })
    }

    /// Calls `visit` with each text of the document. False if it did not want to go on.
    pub(super) fn each_text(&self, doc: &Doc<'_>, visit: &mut Visit<'_>) -> Result<bool> {
        self.document(doc, "", self.default_language, visit)
    }

    /// The language that a document names, or that of the one around it.
    fn language_of(&self, doc: &Doc<'_>, outer: Language) -> Result<Language> {
        match doc.get(&self.language_override) {
            None => Ok(outer),
            Some(Value::String(name)) => Language::find(name.as_str())
                .ok_or_else(|| Error::new(Code::Location(17262), format!("language override unsupported: {name}"))),
            Some(_) => {
                Err(Error::new(Code::Location(17261), "found language override field in document with non-string type"))
            }
        }
    }

    fn document(&self, doc: &Doc<'_>, above: &str, outer: Language, visit: &mut Visit<'_>) -> Result<bool> {
        let language = self.language_of(doc, outer)?;
        for (name, value) in doc.iter() {
            let name = name.as_str();
            if self.wildcard && name == self.language_override {
                continue;
            }
            let path = if above.is_empty() { name.to_owned() } else { format!("{above}.{name}") };
            if !self.value(&value, &path, language, Place::Field, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn array(&self, items: &Array<'_>, path: &str, language: Language, visit: &mut Visit<'_>) -> Result<bool> {
        for item in items.iter() {
            if !self.value(&item, path, language, Place::Element, visit)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn value(
        &self,
        value: &Value<'_>,
        path: &str,
        language: Language,
        place: Place,
        visit: &mut Visit<'_>,
    ) -> Result<bool> {
        match value {
            Value::String(text) => match self.weight(path) {
                Some(weight) => Ok(visit(text.as_str(), language, weight)),
                None => Ok(true),
            },
            Value::Document(inner) if self.wildcard || self.leads_on(path) => {
                self.document(inner, path, language, visit)
            }
            // Without the wildcard, an array directly in an array is not entered.
            Value::Array(items) if self.wildcard => self.array(items, path, language, visit),
            Value::Array(items) if place == Place::Field && (self.weight(path).is_some() || self.leads_on(path)) => {
                self.array(items, path, language, visit)
            }
            _ => Ok(true),
        }
    }

    /// The weight of texts at `path`; `None` if they are not indexed.
    fn weight(&self, path: &str) -> Option<f64> {
        let own = self.weights.binary_search_by(|(other, _)| other.as_str().cmp(path)).ok();
        let own = own.and_then(|at| self.weights.get(at)).map(|(_, weight)| *weight);
        own.or(self.wildcard.then_some(1.0))
    }

    /// Whether some weight is of a path below `path`.
    fn leads_on(&self, path: &str) -> bool {
        self.weights.iter().any(|(other, _)| other.strip_prefix(path).is_some_and(|rest| rest.starts_with('.')))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Field,
    Element,
}
