//! What a search asks for: terms of which one must be there, terms and phrases that must or must not.

use super::tokenizer::{Manner, Tokenizer, before_nul};
use super::{Language, Search, TextSpec};
use crate::error::{Error, Result};
use std::collections::BTreeSet;

/// A `$text`, ready for an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextQuery {
    pub language: Language,
    pub case_sensitive: bool,
    pub diacritic_sensitive: bool,
    /// The terms to look up in the index, sorted: a document must have one of them.
    pub lookups: Vec<String>,
    /// The same terms as a document must have them: with case or diacritics, if these matter.
    pub terms: BTreeSet<String>,
    pub negated_terms: BTreeSet<String>,
    pub phrases: Vec<String>,
    pub negated_phrases: Vec<String>,
}

impl TextQuery {
    /// The search in the language that it names, or in that of the index.
    pub fn new(search: &Search, spec: &TextSpec) -> Result<TextQuery> {
        let language = match &search.language {
            None => spec.default_language,
            Some(name) => Language::find(name).ok_or_else(|| {
                Error::bad_value(format!("unsupported language: \"{name}\" for text index version 3"))
            })?,
        };
        let parts = Parts::of(before_nul(&search.search));
        let terms = |sentence: &str, manner: Manner| {
            let mut terms = BTreeSet::new();
            Tokenizer::new(language, manner).each_term(sentence, |term| {
                terms.insert(term.to_owned());
                true
            });
            terms
        };
        let exact =
            Manner { keeps_case: search.case_sensitive, keeps_diacritics: search.diacritic_sensitive, ..Manner::INDEX };
        Ok(TextQuery {
            language,
            case_sensitive: search.case_sensitive,
            diacritic_sensitive: search.diacritic_sensitive,
            lookups: terms(&parts.wanted, Manner::INDEX).into_iter().collect(),
            terms: terms(&parts.wanted, exact),
            negated_terms: terms(&parts.unwanted, exact),
            phrases: parts.phrases,
            negated_phrases: parts.negated_phrases,
        })
    }
}

/// A search taken apart: what is looked for and what is not, each as one sentence, and the phrases.
#[derive(Default)]
struct Parts {
    wanted: String,
    unwanted: String,
    phrases: Vec<String>,
    negated_phrases: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Space,
    /// A hyphen or a quotation mark, each by itself.
    Sign(u8),
    Text,
}

fn kind(byte: u8) -> Kind {
    match byte {
        // No tab: as in MongoDB it is part of a text, where words end at it.
        b'\n' | 0x0B | 0x0C | b'\r' | b' ' => Kind::Space,
        b'-' | b'"' => Kind::Sign(byte),
        _ => Kind::Text,
    }
}

impl Parts {
    fn of(search: &str) -> Parts {
        let mut parts = Parts::default();
        let (bytes, mut at) = (search.as_bytes(), 0);
        // A negation goes on until the next space; a phrase begins behind its quotation mark.
        let (mut negated, mut phrase, mut after_space) = (false, None::<usize>, true);
        while let Some(byte) = bytes.get(at) {
            let start = at;
            match kind(*byte) {
                Kind::Space => {
                    after_space = true;
                    at += 1;
                    continue;
                }
                Kind::Text => {
                    let rest = bytes.get(at..).unwrap_or_default();
                    at += rest.iter().take_while(|byte| kind(**byte) == Kind::Text).count();
                    if !(phrase.is_some() && negated) {
                        negated &= !after_space;
                        let sentence = if negated { &mut parts.unwanted } else { &mut parts.wanted };
                        sentence.push_str(search.get(start..at).unwrap_or_default());
                        sentence.push(' ');
                    }
                }
                Kind::Sign(b'-') => {
                    at += 1;
                    negated |= phrase.is_none() && after_space;
                }
                Kind::Sign(_) => {
                    at += 1;
                    match phrase.take() {
                        Some(begin) => {
                            let text = search.get(begin..start).unwrap_or_default().to_owned();
                            if negated { &mut parts.negated_phrases } else { &mut parts.phrases }.push(text);
                        }
                        None => {
                            negated &= !after_space;
                            phrase = Some(at);
                        }
                    }
                }
            }
            after_space = false;
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_is_taken_apart() {
        for (search, wanted, unwanted, phrases, negated) in [
            ("coffee shop", "coffee shop ", "", vec![], vec![]),
            ("coffee -shop tea", "coffee tea ", "shop ", vec![], vec![]),
            ("coffee-shop", "coffee shop ", "", vec![], vec![]),
            ("-a-b c", "c ", "a b ", vec![], vec![]),
            ("a - b", "a b ", "", vec![], vec![]),
            ("a --b", "a ", "b ", vec![], vec![]),
            ("\"a b\" c -\"d e\"", "a b c ", "", vec!["a b"], vec!["d e"]),
            ("-\"a\"-\"b\" c", "c ", "", vec![], vec!["a", "b"]),
            ("-\"a\"b", "", "b ", vec![], vec!["a"]),
            ("\"a b", "a b ", "", vec![], vec![]),
            ("x -\tb", "x ", "\tb ", vec![], vec![]),
            ("\"a -b\"", "a b ", "", vec!["a -b"], vec![]),
            ("", "", "", vec![], vec![]),
        ] {
            let parts = Parts::of(search);
            assert_eq!((&*parts.wanted, &*parts.unwanted), (wanted, unwanted), "{search}");
            assert_eq!((parts.phrases, parts.negated_phrases), (strings(&phrases), strings(&negated)), "{search}");
        }
    }

    fn strings(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }
}
