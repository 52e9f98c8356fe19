//! Findings as a person reads them: the message, the line of the file with a caret under the place, the way out.

use crate::declaration::Texts;
use crate::plain;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use patterns::declare::{Finding, Severity, Spot};
use serde_json::{Value, json};
use std::ops::Range;

/// All findings, a blank line after each, and how many there are.
pub(crate) fn findings(findings: &[Finding], texts: &Texts, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for finding in findings {
        let text = finding.file.as_deref().and_then(|file| texts.named(file));
        out.push_str(&one(finding, text, &renderer));
        out.push_str("\n\n");
    }
    if let Some(total) = total(findings) {
        out.push_str(&total);
        out.push('\n');
    }
    out
}

fn one(finding: &Finding, text: Option<&str>, renderer: &Renderer) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let file = plain::line(finding.file.as_deref().unwrap_or("the declaration"));
    let (message, field) = (plain::line(&finding.message), plain::line(&finding.field));
    let hint = finding.hint.as_deref().map(plain::line);
    let mut group = level.primary_title(&*message).elements(Vec::<Origin<'_>>::new());
    match (finding.spot, text) {
        (Some(spot), Some(text)) => {
            let Excerpt { line, is_cut, span } = Excerpt::of(text, spot);
            let snippet = Snippet::source(plain::source(line)).line_start(spot.line.max(1));
            let snippet = snippet.annotation(AnnotationKind::Primary.span(span));
            group = match is_cut {
                false => group.element(snippet.path(&*file)),
                // The renderer would count the column from where the line was cut.
                true => {
                    let origin = Origin::path(&*file).line(spot.line.max(1)).char_column(spot.column);
                    group.element(origin).element(snippet)
                }
            };
        }
        _ => group = group.element(Origin::path(&*file)),
    }
    if !finding.field.is_empty() {
        group = group.element(Level::NOTE.with_name("at").message(&*field));
    }
    if let Some(hint) = &hint {
        group = group.element(Level::HELP.with_name("hint").message(&**hint));
    }
    renderer.render(&[group])
}

/// How many bytes of a line are shown before a place, and from there on. A line of a file may be as long as the file, and each of its
/// findings shows it.
const SHOWN: usize = 200;

/// The part of a file that is shown for a finding: the line where its place begins, or as much of it as is near.
#[derive(Debug, PartialEq)]
struct Excerpt<'a> {
    line: &'a str,
    /// The line begins earlier.
    is_cut: bool,
    /// The place in it. The first line of the place: a whole block under carets would say less.
    span: Range<usize>,
}

impl Excerpt<'_> {
    /// Looks at no more of the text than it shows.
    fn of(text: &str, spot: Spot) -> Excerpt<'_> {
        let place = boundary(text, spot.start);
        let earliest = boundary(text, place.saturating_sub(SHOWN));
        let latest = boundary(text, place.saturating_add(SHOWN));
        let before = text.get(earliest..place).unwrap_or_default().rfind('\n').map(|end| earliest + end + 1);
        let begins = before.unwrap_or(earliest);
        let line = text.get(begins..latest).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let start = (place - begins).min(line.len());
        let end = spot.end.saturating_sub(begins).clamp(start, start.max(line.trim_end().len()));
        Excerpt { line, is_cut: before.is_none() && earliest > 0, span: start..end }
    }
}

/// The last place at or before this one where a character begins.
fn boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (at.saturating_sub(3)..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

fn total(findings: &[Finding]) -> Option<String> {
    let count = |severity: Severity| {
        let number = findings.iter().filter(|finding| finding.severity == severity).count();
        let plural = if number == 1 { "" } else { "s" };
        (number > 0).then(|| format!("{number} {}{plural}", severity.name()))
    };
    let told: Vec<String> =
        [Severity::Error, Severity::Warning, Severity::Note].into_iter().filter_map(count).collect();
    (!told.is_empty()).then(|| told.join(", "))
}

/// As `check --json` prints it.
pub(crate) fn json(finding: &Finding) -> Value {
    json!({
        "severity": finding.severity.name(),
        "rule": finding.rule.as_deref(),
        "file": finding.file.as_deref(),
        "line": finding.spot.map(|spot| spot.line),
        "column": finding.spot.map(|spot| spot.column),
        "field": finding.field,
        "message": finding.message,
        "hint": finding.hint,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spot(start: usize, end: usize) -> Spot {
        Spot { start, end, line: 1, column: 1 }
    }

    #[test]
    fn the_line_of_a_place_is_shown() {
        for (text, place, line, span) in [
            ("a: 1\nb: 2\nc: 3\n", spot(5, 6), "b: 2", 0..1),
            ("a: 1\nb: 2", spot(8, 9), "b: 2", 3..4),
            ("a:\n  b: 2\n  c: 3\n", spot(5, 17), "  b: 2", 2..6),
            ("a: 1\n", spot(99, 100), "", 0..0),
            ("", spot(0, 0), "", 0..0),
        ] {
            assert_eq!(Excerpt::of(text, place), Excerpt { line, is_cut: false, span }, "{text:?}");
        }
    }

    #[test]
    fn of_a_long_line_only_what_is_near_is_looked_at() {
        let text = "é".repeat(500_000);
        for place in [0, 1, 300, 500_000, 999_999, 2_000_000] {
            let Excerpt { line, is_cut, span } = Excerpt::of(&text, spot(place, place + 100_000));
            assert!(line.len() <= 2 * SHOWN + 8 && span.end <= line.len(), "{place}: {}", line.len());
            assert_eq!(is_cut, place > SHOWN + 1, "{place}");
        }
    }
}
