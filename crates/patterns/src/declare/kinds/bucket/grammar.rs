//! The grammar of a slot's names: a regular expression that MongoDB understands and that always ends soon.

use crate::declare::block::BlockItem;
use crate::declare::finding::Findings;
use crate::shapes::bucket::Grammar;
use document::filter::Regex;

const LONGEST: usize = 500;
const EXAMPLE: &str = "write it as in `keys: \"^[A-Z]{2}$\"`";

pub(super) fn read(item: &BlockItem<'_>, findings: &mut Findings) -> Option<Grammar> {
    let text = item.text("a regular expression", "\"^[A-Z]{2}$\"", findings)?;
    if text.len() > LONGEST {
        findings.error(
            &item.at,
            format!("`keys` is longer than {LONGEST} bytes"),
            "use a grammar that covers the names instead of listing them",
        );
        return None;
    }
    let grammar = match Grammar::new(text) {
        Ok(grammar) => grammar,
        Err(error) => {
            findings.error(&item.at, format!("`keys` is no regular expression: {}", reason(error.message())), EXAMPLE);
            return None;
        }
    };
    if runs_away(text) {
        findings.error(
            &item.at,
            "`keys` is a regular expression that can take for ever on a name it does not match",
            "make its repetitions less ambiguous: `^[a-z]+$` instead of `^([a-z]+)+$`",
        );
        return None;
    }
    if !(text.starts_with('^') && text.ends_with('$')) {
        findings.warning(
            &item.at,
            "`keys` is not anchored: any value that merely contains a match would be a slot",
            format!("put it between `^` and `$`: `keys: \"^{}$\"`", text.trim_start_matches('^').trim_end_matches('$')),
        );
    }
    Some(grammar)
}

fn reason(message: &str) -> &str {
    message.strip_prefix("Regular expression is invalid: ").unwrap_or(message)
}

/// Whether some text makes the matcher try more ways than it may. Tried, not proved: the pattern and each of its groups by
/// itself on long repetitions of its own letters, which is what ambiguous repetitions stumble over.
fn runs_away(pattern: &str) -> bool {
    const LETTERS: usize = 6;
    const TIMES: usize = 20;
    let mut letters: Vec<char> = Vec::new();
    for letter in pattern.chars().filter(|letter| letter.is_alphanumeric()).chain(['0', 'a', ' ', '-']) {
        if !letters.contains(&letter) && letters.len() < LETTERS + 4 {
            letters.push(letter);
        }
    }
    let pairs = letters.iter().flat_map(|first| letters.iter().map(move |second| (*first, *second)));
    let texts: Vec<String> = pairs.map(|(first, second)| format!("{first}{second}").repeat(TIMES) + "\u{1}").collect();
    parts(pattern).iter().filter_map(|part| Regex::compile(part, "").ok()).any(|part| {
        // An error is a match that went on too long.
        texts.iter().any(|text| part.is_match(text.as_bytes()).is_err())
    })
}

/// The pattern, and each group with what repeats it.
fn parts(pattern: &str) -> Vec<String> {
    const MOST: usize = 20;
    let mut parts = vec![pattern.to_owned()];
    let mut open = Vec::new();
    let (mut escaped, mut class) = (false, false);
    for (at, letter) in pattern.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ']' => class = false,
            _ if class => {}
            '[' => class = true,
            '(' => open.push(at),
            ')' => {
                let Some(start) = open.pop() else { continue };
                let after = pattern.get(at + 1..).unwrap_or_default();
                let repeated = match after.chars().next() {
                    Some('*' | '+' | '?') => at + 2,
                    Some('{') => at + 1 + after.find('}').map_or(0, |end| end + 1),
                    _ => at + 1,
                };
                let group = pattern.get(start..repeated).unwrap_or_default();
                if parts.len() < MOST {
                    parts.push(format!("^{group}$"));
                }
            }
            _ => {}
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grammars_that_end_and_those_that_do_not() {
        for pattern in
            ["^[A-Z]{2}$", "^[a-z]+$", "^([a-z]+_)*[a-z]+$", "^(DE|FR|IT)$", "^[0-9a-f]{8}(-[0-9a-f]{4}){3}$", "^.*$"]
        {
            assert!(!runs_away(pattern), "{pattern}");
        }
        for pattern in
            ["^([a-z]+)+$", "^(a|aa)+$", "^DE-(x*)*$", r"^(\d+)+$", "^(?:[ab]|ab)*$", "^([a-z]+)*-x$", r"^(\w+\s?)*$"]
        {
            assert!(runs_away(pattern), "{pattern}");
        }
    }
}
