//! From the dialect of PCRE 8, which MongoDB 6.0 speaks, to that of PCRE2: what means plain text there must not become an
//! operator or an error here.

use std::borrow::Cow;

/// Letters whose escape means nothing: PCRE 8 takes the letter, PCRE2 refuses the pattern.
const MEANINGLESS: &[u8] = b"FIJMOTYijmqy";

/// The pattern with the same meaning in PCRE2.
pub(super) fn translate(pattern: &str) -> Cow<'_, str> {
    if !pattern.contains(['\\', '{']) {
        return Cow::Borrowed(pattern);
    }
    let mut output = String::with_capacity(pattern.len() + 8);
    let mut rest = pattern;
    let mut quoted = false;
    while let Some(at) = rest.find(['\\', '{']) {
        let (before, found) = rest.split_at(at);
        output.push_str(before);
        let mut characters = found.chars();
        let first = characters.next();
        let second = characters.next();
        let taken = match (first, second) {
            (Some('\\'), Some('E')) if quoted => {
                quoted = false;
                2
            }
            (Some('\\'), Some('Q')) if !quoted => {
                quoted = true;
                2
            }
            (Some('\\'), Some(letter)) if !quoted => {
                if u8::try_from(letter).is_ok_and(|letter| MEANINGLESS.contains(&letter)) {
                    output.push(letter);
                    rest = found.get(2..).unwrap_or_default();
                    continue;
                }
                1 + letter.len_utf8()
            }
            (Some('{'), _) if !quoted && is_plain_brace(found) => {
                output.push('\\');
                1
            }
            _ => 1,
        };
        let (copied, remaining) = found.split_at(taken);
        output.push_str(copied);
        rest = remaining;
    }
    output.push_str(rest);
    Cow::Owned(output)
}

/// Whether what begins with `{` looks like a quantifier to PCRE2 only: `{,3}`, or with spaces.
fn is_plain_brace(text: &str) -> bool {
    let Some(inside) = text.get(1..).and_then(|rest| rest.split_once('}')).map(|(inside, _)| inside) else {
        return false;
    };
    let (low, high) = inside.split_once(',').unwrap_or((inside, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let quantifier = !low.is_empty() && digits(low) && digits(high);
    let similar = inside.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b',' | b' ' | b'\t'));
    similar && !quantifier
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_changed() {
        for (pattern, expected) in [
            ("abc", "abc"),
            ("\\y\\d\\\\y", "y\\d\\\\y"),
            ("\\Q\\y{,2}\\E{,2}", "\\Q\\y{,2}\\E\\{,2}"),
            ("a{,2}b{1, 2}", "a\\{,2}b\\{1, 2}"),
            ("a{2}b{2,}c{2,3}d{x}{", "a{2}b{2,}c{2,3}d{x}{"),
            ("é\\é\\", "é\\é\\"),
        ] {
            assert_eq!(translate(pattern), expected, "{pattern}");
        }
    }
}
