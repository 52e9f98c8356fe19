//! The languages of text indexes: their names, and the stemmer of each.

use rust_stemmers::{Algorithm, Stemmer};

/// A language that MongoDB's text indexes know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    Danish,
    Dutch,
    English,
    Finnish,
    French,
    German,
    Hungarian,
    Italian,
    /// Words as they are: no stems, no stop words.
    None,
    Norwegian,
    Portuguese,
    Romanian,
    Russian,
    Spanish,
    Swedish,
    Turkish,
}

/// Each language with its name and its code.
const NAMES: &[(Language, &str, &str)] = &[
    (Language::Danish, "danish", "da"),
    (Language::Dutch, "dutch", "nl"),
    (Language::English, "english", "en"),
    (Language::Finnish, "finnish", "fi"),
    (Language::French, "french", "fr"),
    (Language::German, "german", "de"),
    (Language::Hungarian, "hungarian", "hu"),
    (Language::Italian, "italian", "it"),
    (Language::None, "none", "none"),
    (Language::Norwegian, "norwegian", "nb"),
    (Language::Portuguese, "portuguese", "pt"),
    (Language::Romanian, "romanian", "ro"),
    (Language::Russian, "russian", "ru"),
    (Language::Spanish, "spanish", "es"),
    (Language::Swedish, "swedish", "sv"),
    (Language::Turkish, "turkish", "tr"),
];

impl Language {
    /// The language of that name or code, in whatever case; `None` if there is none.
    pub fn find(name: &str) -> Option<Language> {
        let is = |other: &str| other.eq_ignore_ascii_case(name);
        NAMES.iter().find(|(_, long, short)| is(long) || is(short)).map(|(language, ..)| *language)
    }

    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(language, ..)| *language == self).map_or("none", |(_, name, _)| name)
    }

    /// All of them, `none` included.
    pub fn all() -> impl Iterator<Item = Language> {
        NAMES.iter().map(|(language, ..)| *language)
    }

    /// Its stemmer; `None` if words are left as they are.
    pub(super) fn stemmer(self) -> Option<Stemmer> {
        Some(Stemmer::create(match self {
            Language::None => return None,
            Language::Danish => Algorithm::Danish,
            Language::Dutch => Algorithm::Dutch,
            Language::English => Algorithm::English,
            Language::Finnish => Algorithm::Finnish,
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Hungarian => Algorithm::Hungarian,
            Language::Italian => Algorithm::Italian,
            Language::Norwegian => Algorithm::Norwegian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Romanian => Algorithm::Romanian,
            Language::Russian => Algorithm::Russian,
            Language::Spanish => Algorithm::Spanish,
            Language::Swedish => Algorithm::Swedish,
            Language::Turkish => Algorithm::Turkish,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names_and_codes() {
        assert_eq!(Language::find("FRENCH"), Some(Language::French));
        assert_eq!(Language::find("nb"), Some(Language::Norwegian));
        assert_eq!((Language::find("xx"), Language::find("")), (None, None));
        assert!(Language::all().all(|language| Language::find(language.name()) == Some(language)));
        assert_eq!(Language::all().filter(|language| language.stemmer().is_none()).count(), 1);
    }
}
