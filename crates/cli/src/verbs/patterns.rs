//! `pleach patterns`: the catalogue. What each pattern is for, how it works, how to recognise the need, and when not to use it.

use super::{Verb, parsed};
use crate::options::OutputFormat;
use crate::report::{self, Code, Failure, Verdict};
use crate::table::folded;
use clap::{CommandFactory, Parser};
use patterns::kinds::{PATTERNS, Pattern, Status};
use serde_json::{Value, json};

pub(super) const VERB: Verb =
    Verb { name: "patterns", command: Patterns::command, run: |arguments| run(&parsed(arguments)?) };

/// Show the catalogue of patterns: problem, mechanism, symptom
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Patterns {
    /// The pattern to show in full
    name: Option<String>,

    #[command(flatten)]
    output: OutputFormat,
}

const EXAMPLES: &str = "\
Examples:
  pleach patterns             all of them, a line each
  pleach patterns computed    one of them, with its keys and an example";

fn run(patterns: &Patterns) -> Result<Verdict, Failure> {
    let chosen: Vec<&Pattern> = match &patterns.name {
        None => PATTERNS.to_vec(),
        Some(name) => vec![Pattern::named(&name.replace(['-', ' '], "_")).ok_or_else(|| unknown(name))?],
    };
    match (&patterns.name, patterns.output.json) {
        (_, true) => report::json(&json!({ "patterns": chosen.iter().map(|it| to_json(it)).collect::<Vec<_>>() })),
        (None, false) => report::text(&list(&chosen)),
        (Some(_), false) => report::text(&chosen.iter().map(|it| page(it)).collect::<String>()),
    }
    Ok(Verdict::Fine)
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = PATTERNS.iter().map(|pattern| pattern.name).collect();
    Failure::of(Code::Word("usage"), format!("there is no pattern `{name}`"))
        .hint(format!("the patterns are {}", names.join(", ")))
}

fn status(pattern: &Pattern) -> &'static str {
    if pattern.is_there() { "there" } else { "not yet" }
}

fn list(patterns: &[&Pattern]) -> String {
    let width = patterns.iter().map(|pattern| pattern.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for pattern in patterns {
        let later = if pattern.is_there() { "" } else { " (not there yet)" };
        out.push_str(&folded(&format!("{:width$}  ", pattern.name), &format!("{}{later}", pattern.help)));
        out.push_str(&folded(&format!("{:width$}  ", ""), &format!("Symptom: {}", pattern.symptom)));
    }
    out.push_str("\nMore about one: pleach patterns NAME\n");
    out
}

fn page(pattern: &Pattern) -> String {
    let mut out = format!("{} ({})\n\n{}\n", pattern.title, status(pattern), folded("", pattern.help));
    for (title, text) in [
        ("Problem", pattern.problem),
        ("Mechanism", pattern.mechanism),
        ("Symptom", pattern.symptom),
        ("When not", pattern.when_not),
    ] {
        out.push_str(&folded(&format!("{title:9}  "), text));
    }
    out.push_str("\nIn pleach.yaml, under `collections`:\n\n");
    for line in pattern.example.lines() {
        out.push_str(&format!("  {line}\n"));
    }
    if let Status::Within { pattern: other, .. } = &pattern.status {
        out.push_str(&format!("\nIts keys are those of the other pattern: pleach patterns {other}\n"));
    }
    if let Status::There(definition) = &pattern.status {
        let keys: Vec<_> = definition.keys_there().collect();
        let width = keys.iter().map(|key| key.name.len()).max().unwrap_or(0);
        out.push_str("\nKeys of a rule:\n\n");
        for key in keys {
            let required = if definition.requires(key.name) { " Required." } else { "" };
            out.push_str(&folded(&format!("    {:width$}  ", key.name), &format!("{}{required}", key.help)));
        }
    }
    out
}

fn to_json(pattern: &Pattern) -> Value {
    let keys = match &pattern.status {
        Status::There(definition) => definition
            .keys_there()
            .map(|key| json!({ "name": key.name, "help": key.help, "required": definition.requires(key.name) }))
            .collect(),
        Status::Within { .. } | Status::NotYet => Vec::new(),
    };
    json!({
        "name": pattern.name,
        "title": pattern.title,
        "help": pattern.help,
        "problem": pattern.problem,
        "mechanism": pattern.mechanism,
        "symptom": pattern.symptom,
        "when_not": pattern.when_not,
        "example": pattern.example,
        "status": status(pattern),
        "keys": keys,
    })
}
