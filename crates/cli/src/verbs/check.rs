//! `pleach check`: whether a declaration is valid. Needs the file only. With `--infer`: a declaration of the kinds of documents that a
//! collection has, which needs a target.

use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, text};
use crate::declaration::Texts;
use crate::options::{DeclarationFiles, OutputFormat, TargetOptions};
use crate::plain;
use crate::report::{self, Failure, Verdict};
use crate::snippet;
use crate::table::folded;
use crate::target::Purpose;
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

    /// Propose a declaration for the kinds of documents that a collection has
    #[arg(long, requires_all = ["db", "collection"])]
    infer: bool,

    /// The database of that collection
    #[arg(long, value_name = "NAME", requires = "infer")]
    db: Option<String>,

    /// The collection to look at
    #[arg(long, value_name = "NAME", requires = "infer")]
    collection: Option<String>,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
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
      for a program: { \"findings\": [ … ] }
  pleach check --infer --db shop --collection products --upstream mongodb://… > pleach.yaml
      a polymorphic declaration from the documents that are there; 1 if nothing tells kinds apart";

const FILES_HELP: &str = "The declaration to check; several files of one database are checked together";

/// Names that are longer have what they are on a line of its own.
const NAME: usize = 40;

fn run(check: &Check) -> Result<Verdict, Failure> {
    if let (true, Some(db), Some(collection)) = (check.infer, &check.db, &check.collection) {
        return infer(check, db, collection);
    }
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

/// Prints the declaration, with what is odd about it as comments: it can be kept as it is.
fn infer(check: &Check, db: &str, collection: &str) -> Result<Verdict, Failure> {
    ask::run(&check.target, Purpose::Look, async |target| {
        let (db, question) = Question::new("check").on(Some(db)).with("infer", collection).finish();
        let answer = target.ask(&db, question).await?;
        let declaration = text(&answer, "declaration").to_owned();
        let notes = answer.get_array("notes").into_iter().flatten().filter_map(bson::Bson::as_str);
        let notes: String = notes.map(|note| folded("# ", note)).collect();
        match check.output.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&format!("{}{declaration}", commented(&notes))),
        }
        Ok(if declaration.is_empty() { Verdict::Findings } else { Verdict::Fine })
    })
}

/// Every line is a comment: folded ones too.
fn commented(notes: &str) -> String {
    notes.lines().map(|line| format!("# {}\n", line.trim_start_matches(['#', ' ']))).collect()
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
