//! Text from clients, files and servers as a terminal may show it: characters that end a line, move the cursor, change
//! colours or turn the direction of writing are shown by their numbers.

use bson::{Bson, Document};
use std::borrow::Cow;

/// As part of one line.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_unsafe, |c, out| match c {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
    })
}

/// As lines that were put together from parts which are safe: only their ends stay.
pub(crate) fn lines(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| c != '\n' && is_unsafe(c),
        |c, out| match c {
            '\t' => out.push('\t'),
            '\r' => out.push_str("\\r"),
            c => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        },
    )
}

/// As JSON: the characters stand in strings only, where their numbers mean the same.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| c != '\n' && is_unsafe(c),
        |c, out| {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        },
    )
}

/// The source of a snippet: every character keeps its length in bytes, since places are counted in bytes.
pub(crate) fn source(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| !matches!(c, '\n' | '\r' | '\t') && is_unsafe(c),
        |c, out| match c.len_utf8() {
            1 => out.push('?'),
            2 => out.push('·'),
            3 => out.push(char::REPLACEMENT_CHARACTER),
            _ => out.push_str("????"),
        },
    )
}

/// The names and messages of an answer; documents of clients and commands are shown as JSON, which has its own way.
pub(crate) fn answer(doc: Document) -> Document {
    // A proposed declaration has lines, and is made safe as lines.
    const AS_IT_IS: &[&str] = &["_id", "command", "declaration", "expected", "stored"];
    let plain = |(name, value): (String, Bson)| match AS_IT_IS.contains(&name.as_str()) {
        true => (name, value),
        false => (line(&name).into_owned(), self::value(value)),
    };
    doc.into_iter().map(plain).collect()
}

fn value(value: Bson) -> Bson {
    match value {
        Bson::String(text) => Bson::String(line(&text).into_owned()),
        Bson::Array(items) => Bson::Array(items.into_iter().map(self::value).collect()),
        Bson::Document(doc) => Bson::Document(answer(doc)),
        other => other,
    }
}

/// Without what connection strings in it hold: where one stands in the wrong place, nothing is known of its parts.
pub(crate) fn without_connection_strings(text: &str) -> Cow<'_, str> {
    if !text.contains("mongodb://") && !text.contains("mongodb+srv://") {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = ["mongodb://", "mongodb+srv://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
        let begins = rest.get(at..).and_then(|uri| uri.find("://")).map_or(at, |scheme| at + scheme + 3);
        let (before, uri) = rest.split_at(begins);
        out.push_str(before);
        out.push_str("***");
        // An argument is quoted where it is repeated, and may have spaces in it.
        let ends = uri.find(['\'', '\n']).unwrap_or(uri.len());
        rest = uri.get(ends..).unwrap_or_default();
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Controls of both sets, line ends of Unicode, and what turns the direction of writing.
fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn escaped(text: &str, is_unsafe: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    if !text.contains(&is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "a\nERROR forged\r\u{1b}[2J\u{9b}31m\u{7f}\u{202e}x\u{2028}é\t";

    #[test]
    fn nothing_that_drives_a_terminal_is_left() {
        for out in [line(NASTY), lines(NASTY), json(NASTY), source(NASTY)] {
            assert!(!out.contains(['\u{1b}', '\u{9b}', '\u{7f}', '\u{202e}', '\u{2028}']), "{out:?}");
            assert!(out.contains('é'), "{out:?}");
        }
        assert_eq!(line(NASTY), "a\\nERROR forged\\r\\u{1b}[2J\\u{9b}31m\\u{7f}\\u{202e}x\\u{2028}é\\t");
        assert_eq!(lines("a\n\u{1b}b"), "a\n\\u{1b}b");
        assert_eq!(source(NASTY).len(), NASTY.len());
        assert!(matches!(line("plain"), Cow::Borrowed("plain")));
    }

    #[test]
    fn a_connection_string_is_not_repeated() {
        let text = "unexpected argument 'mongodb://u:p w@h/' found\n\n  tip: 'mongodb+srv://u:p@h' is one";
        let shown = "unexpected argument 'mongodb://***' found\n\n  tip: 'mongodb+srv://***' is one";
        assert_eq!(without_connection_strings(text), shown);
        assert_eq!(without_connection_strings("mongodb://"), "mongodb://***");
        assert_eq!(without_connection_strings("none"), "none");
    }

    #[test]
    fn json_says_the_same_as_before() {
        let value = serde_json::json!({ "name": NASTY });
        let text = format!("{value:#}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json(&text)).unwrap(), value);
    }

    #[test]
    fn an_answers_names_are_plain_and_its_documents_as_they_are() {
        let doc = bson::doc! { "rules": [{ "rule": "a\nb", "stored": "a\nb" }] };
        assert_eq!(answer(doc), bson::doc! { "rules": [{ "rule": "a\\nb", "stored": "a\nb" }] });
    }
}
