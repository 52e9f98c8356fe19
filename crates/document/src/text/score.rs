//! How much a document is about each of its terms: what a text index keeps.

use super::tokenizer::{Manner, Tokenizer};
use super::{Language, TextSpec};
use crate::error::Result;
use crate::raw::Doc;
use std::collections::HashMap;

type Map<V> = HashMap<String, V, foldhash::fast::FixedState>;

/// What is counted of a term in one text.
#[derive(Clone, Copy, Default)]
struct Count {
    count: f64,
    /// Each further occurrence counts half of the one before.
    frequency: f64,
    next: f64,
}

impl TextSpec {
    /// The terms of the document, each with its score, in no order.
    pub fn scores(&self, doc: &Doc<'_>) -> Result<Vec<(String, f64)>> {
        let mut scores = Map::<f64>::default();
        let mut tokenizers: Vec<Tokenizer> = Vec::new();
        let mut counts = Map::<Count>::default();
        self.each_text(doc, &mut |text, language, weight| {
            add_text(tokenizer(&mut tokenizers, language), text, weight, &mut counts, &mut scores);
            true
        })?;
        Ok(scores.into_iter().collect())
    }

    /// The score of the document for these terms, which are those of an index.
    pub fn score(&self, doc: &Doc<'_>, terms: &[String]) -> Result<f64> {
        let scores = self.scores(doc)?;
        let of = |term: &String| scores.iter().find(|(own, _)| own == term).map(|(_, score)| *score);
        Ok(terms.iter().filter_map(of).fold(0.0, |sum, score| sum + score))
    }
}

/// The tokenizer of the language, made if need be: a document seldom has texts of more than one.
fn tokenizer(tokenizers: &mut Vec<Tokenizer>, language: Language) -> &mut Tokenizer {
    let found = tokenizers.iter().position(|tokenizer| tokenizer.language() == language);
    if found.is_none() {
        tokenizers.push(Tokenizer::new(language, Manner::INDEX));
    }
    let at = found.unwrap_or(tokenizers.len() - 1);
    #[expect(clippy::indexing_slicing, reason = "it was found or pushed")]
    &mut tokenizers[at]
}

fn add_text(tokenizer: &mut Tokenizer, text: &str, weight: f64, counts: &mut Map<Count>, scores: &mut Map<f64>) {
    let mut tokens = 0.0;
    counts.clear();
    tokenizer.each_term(text, |term| {
        let count = match counts.get_mut(term) {
            Some(count) => count,
            None => counts.entry(term.to_owned()).or_insert(Count { next: 1.0, ..Count::default() }),
        };
        count.count += 1.0;
        count.frequency += count.next;
        count.next /= 2.0;
        tokens += 1.0;
        true
    });
    for (term, count) in counts.drain() {
        // A term that is much of its text counts more, and one that is all of it in its plain form a little more still.
        let coefficient = (0.5 * count.count / tokens) + 0.5;
        let adjustment = if text.eq_ignore_ascii_case(&term) { 1.1 } else { 1.0 };
        *scores.entry(term).or_default() += weight * count.frequency * coefficient * adjustment;
    }
}
