//! `pleach check`: whether a declaration is valid. Needs the file only.

use super::{Verb, parsed};
use crate::declaration::Texts;
use crate::options::{DeclarationFiles, OutputFormat};
use crate::plain;
use crate::report::{self, Failure, Verdict};
use crate::snippet;
use crate::table::folded;
use clap::{CommandFactory, Parser};
use patterns::declare::{Checked, Severity};

pub(super) const VERB: Verb =
    Verb { name: "check", command: Check::command, run: |arguments| run(&parsed(arguments)?) };

/// Check a declaration: is it valid, and what will it keep?
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("declare", |files| files.help(FILES_HELP)))]
struct Check {
    #[command(flatten)]
    declared: DeclarationFiles,

    #[command(flatten)]
    output: OutputFormat,
}

const EXAMPLES: &str = "\
A declaration says, in one file, which fields Pleach keeps true:

  database: shop
  collections:
    orders:
      extended_reference:
        customer: { from: customers, by: customerId, fields: [name, email] }
    products:
      computed:
        reviewCount: { count: reviews, by: productId }

Every finding names its line and column and the way out.
Exit code: 0 fine, 1 warnings only, 2 errors.

Examples:
  pleach check
      pleach.yaml in this folder
  pleach check --declare shop.yaml --json
      for a program: { \"findings\": [ … ] }";

const FILES_HELP: &str = "The declaration to check; several files of one database are checked together";

/// Names that are longer have what they are on a line of its own.
const NAME: usize = 40;

fn run(check: &Check) -> Result<Verdict, Failure> {
    let texts = match Texts::read(&check.declared.files) {
        Ok(texts) => texts,
        Err(failure) if check.output.json => {
            // The same as a finding, for callers that read only these.
            let mut answer = failure.to_json();
            let file = check.declared.files.iter().find(|path| !path.is_file()).map(|path| path.display().to_string());
            let finding = serde_json::json!({
                "severity": "error", "rule": null, "file": file, "line": null, "column": null, "field": "",
                "message": failure.message, "hint": failure.hint,
            });
            if let Some(answer) = answer.as_object_mut() {
                answer.insert("findings".to_owned(), vec![finding].into());
            }
            report::json(&answer);
            return Ok(Verdict::Failed);
        }
        Err(failure) => return Err(failure),
    };
    let checked = texts.checked();
    if check.output.json {
        let all = checked.iter().flat_map(|(_, checked)| &checked.findings);
        let findings: Vec<_> = all.map(snippet::json).collect();
        report::json(&serde_json::json!({ "findings": findings }));
    } else {
        let rendered: Vec<String> = checked.iter().map(|(files, checked)| render(checked, files, &texts)).collect();
        report::styled(&rendered.join("\n"));
    }
    Ok(match checked.iter().filter_map(|(_, checked)| checked.severity()).max() {
        None | Some(Severity::Note) => Verdict::Fine,
        Some(Severity::Warning) => Verdict::Findings,
        Some(Severity::Error) => Verdict::Failed,
    })
}

fn render(checked: &Checked, files: &[(&str, &str)], texts: &Texts) -> String {
    let mut out = snippet::findings(&checked.findings, texts, report::colour());
    let Some(sound) = &checked.declaration else { return out };
    let count = sound.rules.len();
    let rules = if count == 1 { "1 rule" } else { &format!("{count} rules") };
    let width = sound.rules.iter().map(|rule| rule.name.len()).max().unwrap_or(0);
    let names: Vec<String> = files.iter().map(|(file, _)| plain::line(file).into_owned()).collect();
    let (names, are) = (names.join(", "), if names.len() == 1 { "is" } else { "are" });
    out.push_str(&format!("{names} {are} valid: {rules} for the database `{}`\n", plain::line(&sound.database)));
    if count > 0 {
        out.push('\n');
    }
    for rule in &sound.rules {
        let (name, described) = (plain::line(&rule.name), plain::line(&rule.described()).into_owned());
        out.push_str(&match width > NAME {
            true => format!("  {name}\n{}", folded("      ", &described)),
            false => folded(&format!("  {name:width$}  "), &described),
        });
    }
    out
}
