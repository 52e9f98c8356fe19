//! `pleach adopt`: from a finding to a rule in force, in one guided step. Any answer but yes changes nothing.

mod diff;
mod figures;
mod file_change;
mod finding;
mod reads;

use super::{Verb, advise, apply, compared, parsed, plan};
use crate::ask::{self, Question, extended_json, list, text};
use crate::options::{DeclarationFiles, OutputFormat, TargetOptions};
use crate::report::{self, Code, Failure, Verdict};
use crate::table::folded;
use crate::target::{Purpose, Target};
use crate::{input, preview};
use clap::{CommandFactory, Parser};
use figures::Measures;
use file_change::FileChange;
use finding::Finding;
use patterns::rule::Rule;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Instant;

pub(super) const VERB: Verb =
    Verb { name: "adopt", command: Adopt::command, run: |arguments| run(&parsed(arguments)?) };

/// Turn a finding of `advise` into a rule in force: shows what will change, asks, does it
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
#[command(mut_arg("declare", |files| files.help(FILES_HELP)))]
struct Adopt {
    /// What `pleach advise --json` has printed. Without it the data is looked at now, as `advise` does
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,

    /// A database to look at; without it all that may be read. May be repeated
    #[arg(long = "db", value_name = "NAME", conflicts_with = "from")]
    databases: Vec<String>,

    /// The finding: its number, its symptom, or collection.field
    #[arg(long, value_name = "WHICH")]
    finding: Option<String>,

    /// Do it without asking
    #[arg(long)]
    yes: bool,

    /// Where the rule is declared already: change it to what the finding proposes
    #[arg(long)]
    change: bool,

    /// Go on where existing values would be removed, or more than half of them changed
    #[arg(long)]
    overwrite: bool,

    /// Go on where a collection or a field does not exist and one with a near name does
    #[arg(long)]
    create_missing: bool,

    #[command(flatten)]
    declared: DeclarationFiles,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const FILES_HELP: &str =
    "The declaration that gets the rule, and keeps its comments; it is made if it is not there. May be repeated";

const EXAMPLES: &str = "\
It shows the change of the file and what `apply` would do, and asks. Any answer
but yes changes nothing. After yes: the file is written, the rule applied,
audited, and measured before and after. It can be stopped at any moment:
`pleach apply` goes on where it was.
Exit code: 0 adopted, or nothing to adopt; 1 the answer was not yes, or values
are wrong; 2 it could not be done, or nobody could be asked.

Examples:
  pleach adopt --data ~/shop
      looks at the data, lists what it found, and asks which
  pleach advise --data ~/shop --json > advise.json
  pleach adopt --from advise.json --finding orders.customerId --data ~/shop
      that one
  pleach adopt --from advise.json --finding 1 --yes --json --data ~/shop
      for a program";

/// A report is not larger.
const LONGEST_REPORT: usize = 64 << 20;

fn run(adopt: &Adopt) -> Result<Verdict, Failure> {
    let findings = findings(adopt)?;
    let Some(finding) = chosen(adopt, &findings)? else {
        say(adopt, "nothing to adopt: no finding asks for a rule\n");
        if adopt.output.json {
            report::json(&json!({ "adopted": false, "findings": 0 }));
        }
        return Ok(Verdict::Fine);
    };
    if finding.declaration.is_empty() {
        return Err(Failure::new(format!("{} in {} has nothing to declare", finding.symptom, finding.place()))
            .hint(finding.verdict.clone()));
    }
    say(adopt, &finding.shown());
    let change = FileChange::plan(&adopt.declared.files, finding, adopt.change)?;
    if change.changes_nothing() {
        say(adopt, &format!("\n{} says so already\n", change.path.display()));
    } else {
        say(adopt, &format!("\n{}", change.diff()));
    }
    let (db, question) = Question::new("plan").declared(Some(&change.declared)).finish();
    let planned = ask::run(&adopt.target, Purpose::Look, async |target| target.ask(&db, question).await)?;
    say(adopt, &format!("\n{}", plan::render(&planned, false)));
    refused(adopt, &planned)?;
    let about = json!({
        "finding": finding.whole, "file": change.path.display().to_string(), "rules": change.rules,
        "diff": change.diff(), "plan": extended_json(planned),
    });
    if !adopt.yes && (adopt.output.json || !report::can_ask()) {
        let failure = Failure::of(Code::Word("consent"), "nobody could be asked: nothing was changed")
            .hint("--yes does it without asking");
        return Ok(not_adopted(adopt, about, &failure, Verdict::Failed));
    }
    if !adopt.yes && !is_yes(&report::ask(&question_of(&change, &db))) {
        return Ok(not_adopted(adopt, about, &stopped(), Verdict::Findings));
    }
    ask::run(&adopt.target, Purpose::Change, async |target| adopted(adopt, target, finding, &change, about).await)
}

/// Text for people. A program gets one document at the end.
fn say(adopt: &Adopt, text: &str) {
    if !adopt.output.json {
        report::text(text);
    }
}

/// Those of the report, or of the data as it is now.
fn findings(adopt: &Adopt) -> Result<Vec<Finding>, Failure> {
    let Some(from) = &adopt.from else {
        let report = advise::findings(&adopt.target, &adopt.databases)?;
        return finding::of_report("the report of advise", &report);
    };
    let text = input::read(from, LONGEST_REPORT)?;
    let name = from.display().to_string();
    let report = serde_json::from_str(&text)
        .map_err(|error| Failure::of(Code::Word("file"), format!("{name} is not JSON: {error}")))?;
    finding::of_report(&name, &report)
}

/// The finding that is meant: named, the only one that asks for a rule, or the one that a person says.
fn chosen<'f>(adopt: &Adopt, findings: &'f [Finding]) -> Result<Option<&'f Finding>, Failure> {
    if let Some(which) = &adopt.finding {
        return finding::named(findings, which).map(Some);
    }
    let asking: Vec<&Finding> = findings.iter().filter(|finding| finding.asks()).collect();
    match asking.as_slice() {
        [] => return Ok(None),
        [only] => return Ok(Some(only)),
        several => {
            say(adopt, &finding::listed(findings));
            if adopt.output.json || adopt.yes || !report::can_ask() {
                return Err(Failure::of(Code::Word("consent"), format!("{} findings ask for a rule", several.len()))
                    .hint("name one with --finding: its number, its symptom, or collection.field"));
            }
        }
    }
    match &*report::ask("Which one? Its number, or nothing to stop:") {
        "" => Err(stopped()),
        which => finding::named(findings, which).map(Some),
    }
}

fn stopped() -> Failure {
    Failure::of(Code::Word("consent"), "stopped: nothing was changed")
}

/// Writes, applies, audits, and measures before and after.
async fn adopted(
    adopt: &Adopt,
    target: &mut Target,
    finding: &Finding,
    change: &FileChange,
    about: Value,
) -> Result<Verdict, Failure> {
    let declared = &change.declared.declaration;
    let is_meant = |rule: &&Rule| change.rules.iter().any(|name| **name == *rule.name);
    let rules: Vec<&Rule> = declared.rules.iter().filter(is_meant).collect();
    let measures = Measures::choose(target, &rules, &finding.examples).await;
    let before = measures.before(target).await;
    let began = Instant::now();
    change.write()?;
    let (applied, status) = match in_force(adopt, target, change).await {
        Ok(done) => done,
        Err(failure) => return Err(where_it_stands(target, change, failure).await),
    };
    let seconds = began.elapsed().as_secs_f64();
    let question = Question::new("audit").declared(Some(&change.declared)).with("examples", 10_i64);
    let (db, question) = question.finish();
    let audit = target.ask(&db, question).await.map_err(|failure| {
        let hint = format!("the rules are in force, and {} has them; `pleach audit` compares", change.path.display());
        Failure { hint: Some(hint), ..failure }
    })?;
    let after = measures.after(target).await;
    let verdict = compared::verdict(&audit);
    if adopt.output.json {
        let mut all = about;
        if let Value::Object(all) = &mut all {
            all.insert("adopted".to_owned(), true.into());
            all.insert("seconds".to_owned(), seconds.into());
            all.insert("before".to_owned(), before.to_json());
            all.insert("after".to_owned(), after.to_json());
            all.insert("status".to_owned(), extended_json(status));
            all.insert("audit".to_owned(), extended_json(audit));
        }
        report::json(&all);
        return Ok(verdict);
    }
    let mut out = format!("\nadopted in {seconds:.1} s: {}\n\n", change.rules.join(", "));
    out.push_str(&preview::done(&list(&applied, "rules"), &list(&status, "rules")));
    out.push_str(&compared::figures(&audit));
    out.push_str(&format!("\n{}\n", figures::compared(&before, &after)));
    out.push_str(&match verdict {
        Verdict::Fine => {
            folded("", "every derived value is what it should be; from now on writes go through Pleach: `pleach serve`")
        }
        _ => folded("", "not every value could be found right: `pleach audit` names them, `pleach repair` mends them"),
    });
    report::text(&out);
    Ok(verdict)
}

fn question_of(change: &FileChange, db: &str) -> String {
    let writes = if change.is_new() { "make" } else { "change" };
    format!("\nTo {writes} {} and do this to the database {db}? [y/N]", change.path.display())
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.to_ascii_lowercase().as_str())
}

/// Tells why nothing was done.
fn not_adopted(adopt: &Adopt, about: Value, failure: &Failure, verdict: Verdict) -> Verdict {
    if let (true, Value::Object(mut all), Value::Object(error)) = (adopt.output.json, about, failure.to_json()) {
        all.insert("adopted".to_owned(), false.into());
        all.extend(error);
        report::json(&Value::Object(all));
    }
    report::failure(failure);
    verdict
}

/// What `apply` would refuse is said before anybody is asked.
fn refused(adopt: &Adopt, planned: &bson::Document) -> Result<(), Failure> {
    for rule in list(planned, "rules") {
        for refused in list(rule, "refused") {
            let flag = text(refused, "flag");
            let is_given =
                (flag == "overwrite" && adopt.overwrite) || (flag == "create_missing" && adopt.create_missing);
            if is_given {
                continue;
            }
            let failure = Failure::new(format!("{}: {}", text(rule, "rule"), text(refused, "reason")));
            return Err(match (flag, refused.contains_key("command")) {
                ("overwrite" | "create_missing", _) => {
                    failure.hint(format!("nothing was changed; --{} goes on", flag.replace('_', "-")))
                }
                ("", true) => failure.hint("nothing was changed; run the command that the plan shows first"),
                ("", false) => failure.hint("nothing was changed"),
                (flag, _) => failure.hint(format!(
                    "nothing was changed; `pleach apply --{}` goes on, or put the rule into the declaration first",
                    flag.replace('_', "-")
                )),
            });
        }
    }
    Ok(())
}

/// Applies the declaration and waits; gives what that answered, and the last status.
async fn in_force(
    adopt: &Adopt,
    target: &mut Target,
    change: &FileChange,
) -> Result<(bson::Document, bson::Document), Failure> {
    let question = Question::new("apply").declared(Some(&change.declared)).flag("overwrite", adopt.overwrite);
    let (db, question) = question.flag("create_missing", adopt.create_missing).with("wait", false).finish();
    let answer = target.ask(&db, question).await?;
    Ok((answer, apply::watch(target, &db).await?))
}

/// After a failure: what began stays and is said; if nothing did, the file becomes what it was.
async fn where_it_stands(target: &mut Target, change: &FileChange, failure: Failure) -> Failure {
    let (_, question) = Question::new("status").on(Some(&change.declared.declaration.database)).finish();
    let file = change.path.display();
    let rules = change.rules.join(", ");
    let hint = |words: String| Failure { hint: Some(words), ..failure };
    match target.ask(&change.declared.declaration.database, question).await {
        Ok(status) => {
            let begun = |rule: &&bson::Document| change.rules.iter().any(|name| *name == text(rule, "rule"));
            match list(&status, "rules").iter().find(|rule| begun(rule)) {
                Some(rule) => {
                    let state = text(rule, "state").to_owned();
                    hint(format!(
                        "{file} has {rules}, and the rule is {state}: `pleach apply` goes on from there, `pleach drop` takes it off"
                    ))
                }
                None => match change.take_back() {
                    Ok(()) => hint(format!("nothing was changed: {file} is as it was")),
                    Err(other) => hint(format!("no rule is in force, but {file} has {rules}: {}", other.message)),
                },
            }
        }
        Err(_) => hint(format!(
            "{file} has {rules}, and it is not known whether they are in force: `pleach status` says it, `pleach apply` goes on"
        )),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn only_yes_is_yes() {
        for yes in ["y", "Y", "yes", "YES"] {
            assert!(super::is_yes(yes));
        }
        for no in ["", "n", "no", "ye", "yes please", "1", "true", "j"] {
            assert!(!super::is_yes(no), "{no}");
        }
    }
}
