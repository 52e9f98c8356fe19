//! `pleach apply`: makes the rules what the declaration says, and shows how far it is.

use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, list, number, text};
use crate::declaration::{self, File};
use crate::options::{DeclarationFiles, OutputFormat, TargetOptions};
use crate::outcome::{Outcome, Output};
use crate::preview;
use crate::progress::Progress;
use crate::report::{Failure, Verdict};
use crate::target::{Purpose, Target};
use clap::{CommandFactory, Parser};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

pub(super) const VERB: Verb =
    Verb { name: "apply", command: Apply::command, run: |arguments| run(&parsed(arguments)?) };

/// Make the rules what a declaration says: indexes, seeding, removal
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Apply {
    #[command(flatten)]
    declared: DeclarationFiles,

    /// Go on where existing values would be removed, or more than half of them changed
    #[arg(long)]
    overwrite: bool,

    /// Go on where a collection or a field does not exist and one with a near name does
    #[arg(long)]
    create_missing: bool,

    /// Remove the rules that the declaration no longer has; their fields stay as ordinary ones
    #[arg(long)]
    remove: bool,

    /// With --remove: take their fields away too
    #[arg(long, requires = "remove")]
    with_data: bool,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
It can be stopped at any moment: the next run goes on where it was. What would
remove existing values, change more than half of them, or looks like a misspelt
name is refused, with the flag that goes on: look at `pleach plan` first.

Examples:
  pleach apply --data ~/shop
      make the rules there what pleach.yaml says
  pleach apply --data ~/shop --remove
      also remove those that it no longer has";

/// How often the target is asked how far it is.
const LOOK: Duration = Duration::from_millis(100);

fn run(apply: &Apply) -> Result<Verdict, Failure> {
    declaration::each(&apply.declared.files, |file| of(apply, file))
}

fn of(apply: &Apply, file: Option<&File>) -> Result<Outcome, Failure> {
    ask::run(&apply.target, Purpose::Change, async |target| {
        let question = Question::new("apply").declared(file).flag("remove", apply.remove);
        let question = question.flag("with_data", apply.with_data).flag("overwrite", apply.overwrite);
        let question = question.flag("create_missing", apply.create_missing).flag("verbose", apply.output.json);
        let (db, question) = question.with("wait", false).finish();
        let began = Instant::now();
        let mut answer = target.ask(&db, question).await?;
        let status = watch(target, &db).await?;
        let shown = match apply.output.json {
            true => {
                answer.extend(status);
                Output::Json(extended_json(answer))
            }
            false => Output::Text(render(&answer, &status, began.elapsed())),
        };
        Ok(Outcome::new(Verdict::Fine, shown))
    })
}

/// Waits until every rule is on, or gone with the indexes that were made for it, and no document is being migrated; gives the last
/// status.
pub(super) async fn watch(target: &mut Target, db: &str) -> Result<bson::Document, Failure> {
    let (mut progress, mut migrated) = (Progress::new(), BTreeMap::<String, i64>::new());
    loop {
        let (_, question) = Question::new("status").finish();
        let status = target.ask(db, question).await?;
        let rules = list(&status, "rules");
        let (mut done, mut total, mut under_way) = (0, 0, Vec::new());
        for rule in rules.iter().filter(|rule| text(rule, "state") != "on") {
            if let Ok(problem) = rule.get_str("problem") {
                progress.end();
                return Err(Failure::new(format!("{} does not get on: {problem}", text(rule, "rule")))
                    .hint("mend what it says; `pleach apply` goes on from there"));
            }
            done += number(rule, "done");
            total += number(rule, "total");
            under_way.push(text(rule, "rule").to_owned());
        }
        for rule in &rules {
            // Documents come to the newest version while the rule is on.
            let Some(health) = rule.get_document("health").ok().filter(|health| health.contains_key("migrating"))
            else {
                continue;
            };
            let left = number(health, "left");
            let name = text(rule, "rule").to_owned();
            let most = *migrated.entry(name.clone()).and_modify(|most| *most = left.max(*most)).or_insert(left);
            done += most - left;
            total += most;
            under_way.push(name);
        }
        if under_way.is_empty() && !status.get_bool("tidying").unwrap_or_default() {
            progress.end();
            return Ok(status);
        }
        progress.show(u64::try_from(done).unwrap_or(0), u64::try_from(total).unwrap_or(0), &under_way);
        tokio::time::sleep(LOOK).await;
    }
}

fn render(answer: &bson::Document, status: &bson::Document, time: Duration) -> String {
    let mut out = match number(answer, "changed") {
        0 => "nothing to do: the rules are what the declaration says\n\n".to_owned(),
        1 => format!("applied in {:.1} s (1 rule)\n\n", time.as_secs_f64()),
        rules => format!("applied in {:.1} s ({rules} rules)\n\n", time.as_secs_f64()),
    };
    out.push_str(&preview::done(&list(answer, "rules"), &list(status, "rules")));
    out.push_str(&super::status::render(status));
    out
}
