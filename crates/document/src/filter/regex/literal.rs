//! What of a pattern is plain text: all of it (no engine needed), or its beginning (bounds for an index).

use memchr::memmem::Finder;

/// A pattern that is plain text, perhaps after `^`.
#[derive(Debug)]
pub(super) enum Literal {
    Anywhere(Box<Finder<'static>>),
    AtStart(Vec<u8>),
}

impl Literal {
    /// Returns `None` if the pattern needs an engine.
    pub(super) fn of(pattern: &str, options: &str) -> Option<Literal> {
        if options.contains(['i', 'x']) {
            return None;
        }
        let (anchored, rest) = match pattern.strip_prefix('^') {
            Some(rest) if !options.contains('m') => (true, rest),
            Some(_) => return None,
            None => (false, pattern),
        };
        let text = plain(rest)?;
        Some(match anchored {
            true => Literal::AtStart(text.into_bytes()),
            false => Literal::Anywhere(Box::new(Finder::new(text.as_bytes()).into_owned())),
        })
    }

    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        match self {
            Literal::Anywhere(finder) => finder.find(text).is_some(),
            Literal::AtStart(start) => text.starts_with(start),
        }
    }
}

/// The text that a pattern without any operator stands for.
fn plain(pattern: &str) -> Option<String> {
    let (text, end) = plain_start(pattern);
    (end == pattern.len()).then_some(text)
}

/// The plain text that the pattern begins with, and where in the pattern it ends.
fn plain_start(pattern: &str) -> (String, usize) {
    let mut text = String::with_capacity(pattern.len());
    let mut characters = pattern.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '\\' => match characters.next() {
                // A backslash makes punctuation plain, but gives letters and digits a meaning.
                Some((_, escaped)) if escaped.is_ascii_punctuation() => text.push(escaped),
                _ => return (text, at),
            },
            '^' | '$' | '.' | '[' | ']' | '(' | ')' | '|' | '?' | '*' | '+' | '{' | '}' => return (text, at),
            plain => text.push(plain),
        }
    }
    (text, pattern.len())
}

/// The text every matching string begins with, and whether beginning with it is all that is asked.
pub(super) fn prefix(pattern: &str, options: &str) -> Option<(String, bool)> {
    if options.contains(['i', 'm', 'x']) || pattern.contains('|') {
        return None;
    }
    let rest = pattern.strip_prefix('^').or_else(|| pattern.strip_prefix("\\A"))?;
    let (mut text, end) = plain_start(rest);
    let tail = rest.get(end..).unwrap_or_default();
    // A quantifier belongs to the last character, which may then be absent.
    if tail.starts_with(['*', '?', '{']) {
        text.pop();
    }
    (!text.is_empty()).then_some((text, tail.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_what_every_match_begins_with() {
        for (pattern, options, expected) in [
            ("^abc", "", Some(("abc", true))),
            ("^abc", "s", Some(("abc", true))),
            ("\\Aabc", "", Some(("abc", true))),
            ("^abc.*", "", Some(("abc", false))),
            ("^abc*", "", Some(("ab", false))),
            ("^ab+", "", Some(("ab", false))),
            ("^abé?", "", Some(("ab", false))),
            ("^a\\.b", "", Some(("a.b", true))),
            ("^a\\d", "", Some(("a", false))),
            ("^abc$", "", Some(("abc", false))),
            ("^a{0}", "", None),
            ("^(a)", "", None),
            ("^ab|c", "", None),
            ("^abc", "i", None),
            ("^abc", "m", None),
            ("abc", "", None),
        ] {
            let found = prefix(pattern, options);
            assert_eq!(found.as_ref().map(|(text, whole)| (text.as_str(), *whole)), expected, "{pattern} {options}");
        }
    }

    #[test]
    fn plain_patterns_need_no_engine() {
        for (pattern, options, text, expected) in [
            ("b.c", "", "", None),
            ("bc", "", "abcd", Some(true)),
            ("^bc", "", "abcd", Some(false)),
            ("^ab", "", "abcd", Some(true)),
            ("^ab", "m", "", None),
            ("a\\.b", "", "xa.b", Some(true)),
            ("a\\n", "", "", None),
            ("", "", "", Some(true)),
            ("ab", "i", "", None),
        ] {
            let found = Literal::of(pattern, options).map(|literal| literal.is_in(text.as_bytes()));
            assert_eq!(found, expected, "{pattern} {options} {text}");
        }
    }
}
