//! `pleach check`: whether a declaration is valid. Needs the file only.

use crate::args::Check;
use crate::report::{self, Failure, Verdict};
use crate::snippet;
use patterns::declare::{self, Checked, Severity};

pub(crate) fn run(check: &Check) -> Result<Verdict, Failure> {
    let file = check.declare.display().to_string();
    let text = match std::fs::read_to_string(&check.declare) {
        Ok(text) => text,
        Err(error) => {
            let message = format!("cannot read {file}: {error}");
            if check.json {
                let finding = serde_json::json!({
                    "severity": "error", "rule": null, "file": file, "line": null, "column": null, "field": "",
                    "message": message, "hint": "name the declaration with --declare FILE",
                });
                report::json(&serde_json::json!({ "findings": [finding] }));
                return Ok(Verdict::Failed);
            }
            return Err(Failure::new(message).hint("name the declaration with --declare FILE"));
        }
    };
    let checked = declare::from_yaml(&file, &text);
    if check.json {
        let findings: Vec<_> = checked.findings.iter().map(snippet::json).collect();
        report::json(&serde_json::json!({ "findings": findings }));
    } else {
        report::text(&told(&checked, &file, &text));
    }
    Ok(match checked.severity() {
        None | Some(Severity::Note) => Verdict::Fine,
        Some(Severity::Warning) => Verdict::Findings,
        Some(Severity::Error) => Verdict::Failed,
    })
}

fn told(checked: &Checked, file: &str, text: &str) -> String {
    let mut out = snippet::findings(&checked.findings, Some(text), report::colour());
    let Some(declaration) = &checked.declaration else { return out };
    let count = declaration.rules.len();
    let rules = if count == 1 { "1 rule" } else { &format!("{count} rules") };
    let width = declaration.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    out.push_str(&format!("{file} is valid: {rules} for the database `{}`\n", declaration.database));
    if count > 0 {
        out.push('\n');
    }
    for rule in &declaration.rules {
        out.push_str(&format!("  {:width$}  {}\n", rule.name, rule.described()));
    }
    out
}
