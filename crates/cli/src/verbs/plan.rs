//! `pleach plan`: what `apply` would do to the data, a line per rule; as plain MongoDB commands if asked for.

use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, grouped, list, number, text};
use crate::declaration::{self, File};
use crate::options::{DeclarationFiles, OutputFormat, TargetOptions};
use crate::outcome::{Outcome, Output};
use crate::preview;
use crate::report::{Failure, Verdict};
use crate::table::{folded, switched_off};
use crate::target::Purpose;
use clap::{CommandFactory, Parser, ValueEnum};
use patterns::print;
use patterns::rule::Rule;
use std::sync::Arc;

pub(super) const VERB: Verb = Verb { name: "plan", command: Plan::command, run: |arguments| run(&parsed(arguments)?) };

/// Show what `apply` would do to the data, a line per rule; --full: as plain MongoDB commands
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Plan {
    #[command(flatten)]
    declared: DeclarationFiles,

    /// Show every step as a plain MongoDB command
    #[arg(long)]
    full: bool,

    /// Show what `apply --remove` would do
    #[arg(long)]
    remove: bool,

    /// With --remove: as if their fields were to go too
    #[arg(long, requires = "remove")]
    with_data: bool,

    /// Print the code that a team would write by hand instead: it needs the file only
    #[arg(long = "as", value_name = "LANGUAGE", value_enum)]
    language: Option<Language>,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Language {
    Mongosh,
    Node,
    Python,
}

const EXAMPLES: &str = "\
Nothing is changed. Exit code: 1 if there is something to do, 0 if not.

Examples:
  pleach plan --data ~/shop
      what `apply` would do there, a line per rule
  pleach plan --data ~/shop --full
      every step as a MongoDB command
  pleach plan --server mongodb://127.0.0.1:27017
      the same, of a running Pleach
  pleach plan --as node
      the code you would write by hand";

fn run(plan: &Plan) -> Result<Verdict, Failure> {
    declaration::each(&plan.declared.files, |file| of(plan, file))
}

fn of(plan: &Plan, file: Option<&File>) -> Result<Outcome, Failure> {
    if let (Some(language), Some(file)) = (plan.language, file) {
        return by_hand(file, language, plan.output.json);
    }
    ask::run(&plan.target, Purpose::Look, async |target| {
        let question = Question::new("plan").declared(file).flag("remove", plan.remove);
        let (db, question) = question.flag("with_data", plan.with_data).finish();
        let answer = target.ask(&db, question).await?;
        let steps = list(&answer, "steps").len();
        let shown = match plan.output.json {
            true => Output::Json(extended_json(answer)),
            false => Output::Text(render(&answer, plan.full)),
        };
        Ok(Outcome::new(if steps == 0 { Verdict::Fine } else { Verdict::Findings }, shown))
    })
}

fn by_hand(file: &File, language: Language, json: bool) -> Result<Outcome, Failure> {
    let language = match language {
        Language::Mongosh => print::Language::Mongosh,
        Language::Node => print::Language::Node,
        Language::Python => print::Language::Python,
    };
    let rules: Vec<Arc<Rule>> = file.declaration.rules.iter().cloned().map(Arc::new).collect();
    let code = print::code(&rules, language).map_err(|error| Failure::new(error.message()))?;
    let shown = match json {
        true => Output::Json(serde_json::json!({ "code": code })),
        false => Output::Text(code),
    };
    Ok(Outcome::new(Verdict::Fine, shown))
}

/// What a change of form moves.
fn moved(step: &bson::Document) -> String {
    match step.contains_key("readings") {
        false => String::new(),
        true => format!(": {}", preview::moved(step)),
    }
}

pub(super) fn render(answer: &bson::Document, full: bool) -> String {
    let steps = list(answer, "steps");
    let off = switched_off(answer, "`apply` is refused until it is started without --raw");
    if steps.is_empty() {
        return format!("{off}nothing to do: the rules are what the declaration says\n");
    }
    let mut out = off + &preview::lines(&list(answer, "rules"), &steps);
    if full {
        out.push('\n');
        steps.iter().for_each(|step| out.push_str(&command(step)));
    }
    if let Ok(cost) = answer.get_document("cost") {
        let (read, written) = (grouped(number(cost, "read")), grouped(number(cost, "written")));
        out.push_str(&format!("\nabout {read} documents are read, at most {written} written"));
        out.push_str(if full { "\n" } else { "; --full shows the commands\n" });
    }
    out
}

/// One step, as a person could run it.
fn command(step: &bson::Document) -> String {
    let what = match text(step, "kind") {
        "index" => "create an index that it needs",
        "lift" => "items become documents, and the array goes",
        "seed" => "new: make the field right in every document",
        "rebuild" => "changed: make the field anew in every document",
        "upkeep" => "changed: only how it is kept",
        "rename" => "make room for the view: rename the collection",
        "create" => "create the stored collection",
        "view" => "show the stored documents under the collection's own name",
        "move" => "bring every document into its new form, while clients go on",
        "convert" => "bring documents that are there into the declared form, while clients go on",
        "drop" => "drop what is empty then",
        "remove" => "gone from the declaration: needs --remove",
        other => other,
    };
    let mut out = folded(&format!("{}  ", text(step, "rule")), &format!("{what}{}", moved(step)));
    let command = step.get("command").cloned().unwrap_or(bson::Bson::Null);
    if command.as_document().is_some_and(|command| !command.is_empty()) {
        let shown = format!("{:#}", command.into_relaxed_extjson());
        out.push_str(&format!("  on {}:\n", text(step, "namespace")));
        shown.lines().for_each(|line| out.push_str(&format!("    {line}\n")));
    }
    out.push('\n');
    out
}
