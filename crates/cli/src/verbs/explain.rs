//! `pleach explain`: what a command would do, rules included. Runs nothing.

use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, grouped, list, number, shown, shown_whole, text};
use crate::declaration;
use crate::options::{DeclaredDatabase, OutputFormat, TargetOptions};
use crate::report::{self, Code, Failure, Verdict};
use crate::table::{WIDTH, cut, folded, switched_off};
use crate::target::Purpose;
use clap::{CommandFactory, Parser};
use document::{Doc, Value};

pub(super) const VERB: Verb =
    Verb { name: "explain", command: Explain::command, run: |arguments| run(&parsed(arguments)?) };

/// Show what a command would do, rules included; runs nothing
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Explain {
    /// The database that the command is for, if no declaration says it
    #[arg(long, value_name = "NAME", required_unless_present = "declare")]
    db: Option<String>,

    #[command(flatten)]
    declared: DeclaredDatabase,

    /// The command as Extended JSON, such as '{ "insert": "reviews", "documents": [{ "productId": 1 }] }'
    command: String,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
Nothing is run. Example:
  pleach explain --data ~/shop --db shop \\
      '{ \"insert\": \"reviews\", \"documents\": [{ \"productId\": 1, \"rating\": 5 }] }'";

fn run(explain: &Explain) -> Result<Verdict, Failure> {
    let command = parse(&explain.command)?;
    let db = declaration::database(explain.db.as_deref(), explain.declared.file.as_deref())?;
    ask::run(&explain.target, Purpose::Look, async |target| {
        let question = Question::new("explain").on(db.as_deref()).with("command", Value::Document(command.borrow()));
        let (db, question) = question.finish();
        let answer = target.ask(&db, question).await?;
        match explain.output.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&render(&answer)),
        }
        Ok(Verdict::Fine)
    })
}

/// The steps in their order, then what is locked, what is left for later, and what all of it costs.
fn render(answer: &bson::Document) -> String {
    let mut out = switched_off(answer, "none of them takes part");
    for (number, step) in list(answer, "steps").into_iter().enumerate() {
        out.push_str(&of_step(number + 1, step));
    }
    if let Some(stages) = answer.get("here") {
        out.push_str(&format!("   Pleach runs the rest itself:\n   {}\n", cut(&shown_whole(stages), WIDTH - 3)));
    }
    if let Ok(figures) = answer.get_str("figures") {
        out.push_str(&format!("   answered from the figures of the {figures}, no reading is looked at\n"));
    }
    let fences = list(answer, "fences");
    if !fences.is_empty() {
        out.push_str("\nfences, so that writers of the same key take turns:\n");
    }
    for fence in fences {
        let line = format!("   {}, {}, key {}", text(fence, "rule"), text(fence, "mode"), shown(fence.get("key")));
        out.push_str(&format!("{}\n", cut(&line, WIDTH)));
    }
    let jobs = list(answer, "deferred");
    if !jobs.is_empty() {
        out.push_str("\nleft for later:\n");
    }
    for job in jobs {
        let line = format!("   {}, key {}, {}", text(job, "rule"), shown(job.get("key")), documents(job));
        out.push_str(&format!("{}\n", cut(&line, WIDTH)));
    }
    let errors = list(answer, "errors");
    if !errors.is_empty() {
        out.push_str("\nstatements that would fail:\n");
    }
    for error in errors {
        let place = format!("   {}. ", number(error, "index") + 1);
        out.push_str(&folded(&place, &format!("{} (code {})", text(error, "errmsg"), number(error, "code"))));
    }
    for note in answer.get_array("notes").into_iter().flatten().filter_map(bson::Bson::as_str) {
        out.push_str(&format!("\n{}", folded("note: ", note)));
    }
    out.push_str(&cost(answer));
    out
}

fn of_step(number: usize, step: &bson::Document) -> String {
    let what = match text(step, "kind") {
        "write" => "writes",
        "derived" => "writes as well",
        "read" => "reads",
        _ => "runs",
    };
    let counted = if step.contains_key("documents") { format!(", {}", documents(step)) } else { String::new() };
    let rule = match step.get_str("rule") {
        Ok(rule) => format!(", for rule {rule}"),
        Err(_) => String::new(),
    };
    let mut out = folded(&format!("{number}. "), &format!("{what} {}{counted}{rule}", text(step, "namespace")));
    if let Ok(command) = step.get_document("command") {
        let command = bson::Bson::Document(command.clone());
        out.push_str(&format!("   {}\n", cut(&shown_whole(&command), WIDTH - 3)));
    }
    out
}

fn documents(step: &bson::Document) -> String {
    counted(number(step, "documents"))
}

fn counted(documents: i64) -> String {
    if documents == 1 { "1 document".to_owned() } else { format!("{} documents", grouped(documents)) }
}

fn cost(answer: &bson::Document) -> String {
    let Ok(cost) = answer.get_document("cost") else { return String::new() };
    let later = match number(cost, "deferred") {
        0 => String::new(),
        deferred => format!(" ({} of them later)", grouped(deferred)),
    };
    let reads = match number(cost, "read") {
        1 => "1 read".to_owned(),
        reads => format!("{} reads", grouped(reads)),
    };
    let bytes = grouped(number(cost, "bytes"));
    let written = counted(number(cost, "written"));
    let line = format!("{written} written{later}, {reads}, {bytes} bytes of commands (whole with --json)");
    format!("\n{}", folded("cost: ", &line))
}

fn parse(text: &str) -> Result<Doc<'static>, Failure> {
    let wrong = |error: String| {
        Failure::of(Code::Word("usage"), format!("the command is no Extended JSON document: {error}"))
            .hint("such as '{ \"insert\": \"reviews\", \"documents\": [{ \"productId\": 1 }] }'")
    };
    let value: serde_json::Value = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    match bson::Bson::try_from(value) {
        Ok(bson::Bson::Document(command)) => Ok(Doc::from(command)),
        Ok(_) => Err(wrong("it is not a document".to_owned())),
        Err(error) => Err(wrong(error.to_string())),
    }
}
