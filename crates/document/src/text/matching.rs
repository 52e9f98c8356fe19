//! Whether a document that an index found is one that the search asks for: phrases, negations, case and diacritics.

use super::tokenizer::{Manner, Tokenizer, before_nul};
use super::{Language, TextQuery, TextSpec, fold};
use crate::error::Result;
use crate::raw::Doc;
use std::collections::BTreeSet;

impl TextQuery {
    /// Whether the index alone tells which documents match.
    pub fn is_answered_by_terms(&self) -> bool {
        !self.is_sensitive()
            && self.negated_terms.is_empty()
            && self.phrases.is_empty()
            && self.negated_phrases.is_empty()
    }

    fn is_sensitive(&self) -> bool {
        self.case_sensitive || self.diacritic_sensitive
    }

    /// Whether a document that has one of the lookups matches.
    pub fn accepts(&self, spec: &TextSpec, doc: &Doc<'_>) -> Result<bool> {
        if self.is_sensitive() && !self.has_term(spec, doc, &self.terms)? {
            return Ok(false);
        }
        if !self.negated_terms.is_empty() && self.has_term(spec, doc, &self.negated_terms)? {
            return Ok(false);
        }
        for phrase in &self.phrases {
            if !self.has_phrase(spec, doc, phrase)? {
                return Ok(false);
            }
        }
        for phrase in &self.negated_phrases {
            if self.has_phrase(spec, doc, phrase)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a document matches, found by an index or not.
    pub fn matches(&self, spec: &TextSpec, doc: &Doc<'_>) -> Result<bool> {
        let mut found = false;
        spec.each_text(doc, &mut |text, language, _| {
            Tokenizer::new(language, Manner::INDEX).each_term(text, |term| {
                found |= self.lookups.iter().any(|lookup| lookup == term);
                !found
            });
            !found
        })?;
        Ok(found && self.accepts(spec, doc)?)
    }

    /// Whether some text of the document has one of the terms.
    fn has_term(&self, spec: &TextSpec, doc: &Doc<'_>, terms: &BTreeSet<String>) -> Result<bool> {
        let manner = Manner {
            skips_stop_words: false,
            keeps_case: self.case_sensitive,
            keeps_diacritics: self.diacritic_sensitive,
        };
        let mut found = false;
        spec.each_text(doc, &mut |text, language, _| {
            Tokenizer::new(language, manner).each_term(text, |term| {
                found |= terms.contains(term);
                !found
            });
            !found
        })?;
        Ok(found)
    }

    /// Whether some text of the document has the phrase in it, wherever words begin.
    fn has_phrase(&self, spec: &TextSpec, doc: &Doc<'_>, phrase: &str) -> Result<bool> {
        let mut found = false;
        spec.each_text(doc, &mut |text, language, _| {
            found |= self.folded(before_nul(text), language).contains(&self.folded(phrase, language));
            !found
        })?;
        Ok(found)
    }

    /// The text without what does not matter.
    fn folded(&self, text: &str, language: Language) -> String {
        let mut small = String::with_capacity(text.len());
        match self.case_sensitive {
            true => small.push_str(text),
            false => fold::lower_into(text, language == Language::Turkish, &mut small),
        }
        if self.diacritic_sensitive || small.is_ascii() {
            return small;
        }
        let mut plain = String::with_capacity(small.len());
        fold::strip_into(&small, &mut plain);
        plain
    }
}
