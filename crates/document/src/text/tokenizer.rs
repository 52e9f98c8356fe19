//! A text as terms: cut at delimiters, without stop words, in lower case, stemmed, without diacritics.

use super::delimiters::is_delimiter;
use super::{Language, fold, stop_words};
use rust_stemmers::Stemmer;

/// What is left of words in the terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) skips_stop_words: bool,
    pub(super) keeps_case: bool,
    pub(super) keeps_diacritics: bool,
}

impl Manner {
    /// That of an index.
    pub(super) const INDEX: Manner = Manner { skips_stop_words: true, keeps_case: false, keeps_diacritics: false };
}

/// Makes terms of the texts of one language; keeps its buffers from one text to the next.
pub(super) struct Tokenizer {
    language: Language,
    manner: Manner,
    stemmer: Option<Stemmer>,
    small: String,
    plain: String,
}

impl Tokenizer {
    pub(super) fn new(language: Language, manner: Manner) -> Tokenizer {
        Tokenizer { language, manner, stemmer: language.stemmer(), small: String::new(), plain: String::new() }
    }

    pub(super) fn language(&self) -> Language {
        self.language
    }

    /// Calls `each` with the terms of `text`, in their order; it says whether to go on. As in MongoDB a text ends at its first NUL.
    pub(super) fn each_term(&mut self, text: &str, mut each: impl FnMut(&str) -> bool) {
        let text = before_nul(text);
        let language = self.language;
        for word in text.split(|letter| is_delimiter(letter, language)).filter(|word| !word.is_empty()) {
            if let Some(term) = self.term(word)
                && !each(term)
            {
                return;
            }
        }
    }

    /// The term of a word; `None` for a stop word.
    fn term(&mut self, word: &str) -> Option<&str> {
        let turkish = self.language == Language::Turkish;
        self.small.clear();
        fold::lower_into(word, turkish, &mut self.small);
        if self.manner.skips_stop_words && stop_words::of(self.language).is_some_and(|list| list.contains(&*self.small))
        {
            return None;
        }
        let word = if self.manner.keeps_case { word } else { &*self.small };
        // Stemmers know diacritics, so these go last.
        let stem = match &self.stemmer {
            Some(stemmer) if self.language == Language::Hungarian && word.contains(SWAPPED) => {
                swapped(&stemmer.stem(&swapped(word))).into()
            }
            Some(stemmer) => stemmer.stem(word),
            None => word.into(),
        };
        self.plain.clear();
        if self.manner.keeps_diacritics || stem.is_ascii() {
            self.plain.push_str(&stem);
        } else {
            fold::strip_into(&stem, &mut self.plain);
        }
        Some(&self.plain)
    }
}

/// Letters that MongoDB's Hungarian stemmer takes for each other: it was written for another encoding.
const SWAPPED: [char; 4] = ['\u{151}', '\u{f5}', '\u{171}', '\u{fb}'];

fn swapped(word: &str) -> String {
    let swap = |letter| match letter {
        '\u{151}' => '\u{f5}',
        '\u{f5}' => '\u{151}',
        '\u{171}' => '\u{fb}',
        '\u{fb}' => '\u{171}',
        other => other,
    };
    word.chars().map(swap).collect()
}

/// The text up to its first NUL.
pub(super) fn before_nul(text: &str) -> &str {
    text.split_once('\0').map_or(text, |(before, _)| before)
}
