//! Findings as a person reads them: the message, the line of the file with a caret under the place, the way out.

use crate::declaration::Texts;
use crate::plain;
use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use patterns::declare::{Finding, Severity};
use serde_json::{Value, json};

/// All findings, a blank line after each, and how many there are.
pub(crate) fn findings(findings: &[Finding], texts: &Texts, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for finding in findings {
        let text = finding.file.as_deref().and_then(|file| texts.of(file)).map(plain::source);
        out.push_str(&one(finding, text.as_deref(), &renderer));
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
            // Only its line: the renderer looks at all that it is given, for each finding.
            let place = spot.start.min(text.len());
            let begins = text.get(..place).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
            let line = text.get(begins..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let start = (place - begins).min(line.len());
            // The first line of the place: a whole block under carets would say less.
            let end = spot.end.saturating_sub(begins).clamp(start, start.max(line.trim_end().len()));
            let annotation = AnnotationKind::Primary.span(start..end);
            let number = spot.line.max(1);
            group = group.element(Snippet::source(line).line_start(number).path(&*file).annotation(annotation));
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
