//! `pleach status`: where each rule is, and what waits.

use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, grouped, list, number, text};
use crate::declaration;
use crate::options::{DeclaredDatabase, OutputFormat, TargetOptions};
use crate::preview::by_version;
use crate::report::{self, Failure, Verdict};
use crate::table::{folded, switched_off, table};
use crate::target::Purpose;
use clap::{CommandFactory, Parser};

pub(super) const VERB: Verb =
    Verb { name: "status", command: Status::command, run: |arguments| run(&parsed(arguments)?) };

/// Show where each rule is and what waits
#[derive(Debug, Parser)]
#[command(mut_arg("declare", |file| file.help("The declaration: only the rules of its database")))]
struct Status {
    #[command(flatten)]
    declared: DeclaredDatabase,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

fn run(status: &Status) -> Result<Verdict, Failure> {
    let of = declaration::database(None, status.declared.file.as_deref())?;
    ask::run(&status.target, Purpose::Look, async |target| {
        let (db, question) = Question::new("status").on(of.as_deref()).finish();
        let answer = target.ask(&db, question).await?;
        match status.output.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&render(&answer)),
        }
        Ok(Verdict::Fine)
    })
}

pub(crate) fn render(answer: &bson::Document) -> String {
    let rules = list(answer, "rules");
    let off = switched_off(answer, "nothing keeps values right until it is started without --raw");
    if rules.is_empty() {
        let none =
            "no rules are kept in the databases that you may read;\n`pleach apply` makes them from a declaration\n";
        return format!("{off}{none}{}{}", kept(answer, &rules), pending(answer));
    }
    let row = |rule: &&bson::Document| {
        let state = text(rule, "state");
        let progress = match state {
            "on" | "off" => String::new(),
            _ => format!("{:.0} %", rule.get_f64("progress").unwrap_or_default() * 100.0),
        };
        vec![
            text(rule, "database").to_owned(),
            text(rule, "rule").to_owned(),
            state.to_owned(),
            progress,
            grouped(number(rule, "pending")),
            grouped(number(rule, "lag_ms")),
            grouped(number(rule, "overridden")),
        ]
    };
    let headings = ["database", "rule", "state", ">progress", ">pending", ">lag ms", ">overridden"];
    let mut out = off + &table(&headings, rules.iter().map(row).collect());
    out.push_str(&health(&rules));
    out.push_str(&versions(&rules));
    out.push_str(&kept(answer, &rules));
    out.push_str(&unkeyed(&rules));
    for rule in &rules {
        if let Ok(problem) = rule.get_str("problem") {
            out.push_str(&format!("\n{} does not get on: {problem}\n", text(rule, "rule")));
        }
    }
    out.push_str(&pending(answer));
    out.push_str(&ignored(answer));
    out
}

/// The rules of which some source documents have no key.
fn unkeyed(rules: &[&bson::Document]) -> String {
    let line = |rule: &&bson::Document| match number(rule, "unkeyed") {
        0 => None,
        1 => Some(format!("\n{}: 1 source document has no key and counts nowhere\n", text(rule, "rule"))),
        more => Some(format!(
            "\n{}: {} source documents have no key and count nowhere\n",
            text(rule, "rule"),
            grouped(more)
        )),
    };
    rules.iter().filter_map(line).collect()
}

/// The declared rules that wait for a flag of `apply`.
fn pending(answer: &bson::Document) -> String {
    let line = |rule: &&bson::Document| {
        format!("\n{}", folded(&format!("{} is pending: ", text(rule, "rule")), text(rule, "reason")))
    };
    list(answer, "pending").iter().map(line).collect()
}

/// Rows of the catalog that are no rules of their database.
fn ignored(answer: &bson::Document) -> String {
    let line = |row: &&bson::Document| {
        let name = format!("{}.pleach.catalog has {:?}, which is ignored: ", text(row, "database"), text(row, "rule"));
        format!("\n{}", folded(&name, text(row, "reason")))
    };
    list(answer, "ignored").iter().map(line).collect()
}

/// What is kept of values and documents that rules have replaced; of rules that are gone too.
fn kept(answer: &bson::Document, rules: &[&bson::Document]) -> String {
    let row = |rule: &bson::Document, kept: &bson::Document, state: &str| {
        let figure = |name: &str| grouped(number(kept, name));
        let names = [text(rule, "database"), text(rule, "rule"), state].map(str::to_owned);
        [names.to_vec(), vec![figure("documents"), figure("bytes")]].concat()
    };
    let of_rule = |rule: &&bson::Document| Some(row(rule, rule.get_document("kept").ok()?, text(rule, "state")));
    let mut rows: Vec<Vec<String>> = rules.iter().filter_map(of_rule).collect();
    rows.extend(list(answer, "kept").iter().map(|gone| row(gone, gone, "gone")));
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["database", "rule", "state", ">kept documents", ">bytes"];
    let meaning = "`drop RULE --restore` gives it back, `forget RULE` frees it";
    format!("\nKept from before the rules;\n{meaning}:\n{}", table(&headings, rows))
}

/// How many documents are stored in each version, and how the migration goes.
fn versions(rules: &[&bson::Document]) -> String {
    let lines = |rule: &&bson::Document| {
        let health = rule.get_document("health").ok()?;
        let stored = by_version(health.get_document("versions").ok()?);
        let stored = if stored.is_empty() { "no documents yet".to_owned() } else { stored };
        let mut line = format!("{}: {stored}{}", text(rule, "rule"), progress(health));
        match number(health, "unconverted") {
            0 => {}
            some => line.push_str(&format!("; values that did not convert and stay as they are: {}", grouped(some))),
        }
        let mut out = format!("\n{}", folded("", &line));
        for stuck in list(health, "stuck_documents") {
            let id = stuck.get("_id").map_or_else(String::new, |id| id.clone().into_relaxed_extjson().to_string());
            out.push_str(&folded("  ", &format!("_id {id} cannot be migrated: {}", text(stuck, "reason"))));
        }
        match number(health, "stuck") {
            more if more > 5 => out.push_str(&format!("  and {} more\n", grouped(more - 5))),
            _ => {}
        }
        Some(out)
    };
    rules.iter().filter_map(lines).collect()
}

/// `; 1,200 left, 500/s, about 3 s left`
fn progress(health: &bson::Document) -> String {
    let left = number(health, "left");
    if left == 0 {
        return String::new();
    }
    let mut out = format!("; {} to be migrated", grouped(left));
    if let (Ok(rate), Ok(seconds)) = (health.get_f64("per_second"), health.get_f64("seconds_left")) {
        out.push_str(&format!(", {rate:.0}/s, about {seconds:.0} s left"));
    }
    if health.get_bool("waits").unwrap_or(false) {
        out.push_str(&format!(", waits for {} UTC", text(health, "hours_utc").replace('-', " to ")));
    }
    out
}

/// How the buckets of shaped collections are filled.
fn health(rules: &[&bson::Document]) -> String {
    let row = |rule: &&bson::Document| {
        let health = rule.get_document("health").ok().filter(|health| health.contains_key("buckets"))?;
        let figure = |name: &str| grouped(number(health, name));
        let fill = format!("{:.0} %", health.get_f64("fill").unwrap_or_default() * 100.0);
        let (db, name) = (text(rule, "database").to_owned(), text(rule, "rule").to_owned());
        Some(vec![db, name, figure("buckets"), figure("readings"), fill, figure("splits"), figure("sparse")])
    };
    let rows: Vec<Vec<String>> = rules.iter().filter_map(row).collect();
    if rows.is_empty() {
        return String::new();
    }
    let headings = ["database", "rule", ">buckets", ">readings", ">full to", ">splits", ">sparse"];
    format!("\n{}", table(&headings, rows))
}
