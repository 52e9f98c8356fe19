//! Findings as a person reads them: the message, the line of the file with a caret under the place, the way out.

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};
use patterns::declare::{Finding, Severity};
use serde_json::{Value, json};

/// All findings, a blank line after each, and how many there are. `text` is the file's.
pub(crate) fn findings(findings: &[Finding], text: Option<&str>, colour: bool) -> String {
    let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
    let mut out = String::new();
    for finding in findings {
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
    let file = finding.file.as_deref().unwrap_or("the declaration");
    let mut group = level.primary_title(&*finding.message).elements(Vec::<Origin<'_>>::new());
    match (finding.spot, text) {
        (Some(spot), Some(text)) => {
            let start = spot.start.min(text.len());
            // The first line of the place: a whole block under carets would say less.
            let line = text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
            let end = spot.end.clamp(start, start + line.trim_end().len());
            let annotation = AnnotationKind::Primary.span(start..end);
            group = group.element(Snippet::source(text).path(file).annotation(annotation));
        }
        _ => group = group.element(Origin::path(file)),
    }
    if !finding.field.is_empty() {
        group = group.element(Level::NOTE.with_name("at").message(&*finding.field));
    }
    if let Some(hint) = &finding.hint {
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
