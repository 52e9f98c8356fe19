//! `pleach uninstall`: takes Pleach out of databases; the data stays.

use super::drop::{given_back, made_again, same_ids};
use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, list, text};
use crate::options::{OutputFormat, TargetOptions};
use crate::report::{self, Failure, Verdict};
use crate::target::{Purpose, Target};
use clap::{CommandFactory, Parser};
use document::Value;
use std::io::{BufRead, IsTerminal};

pub(super) const VERB: Verb =
    Verb { name: "uninstall", command: Uninstall::command, run: |arguments| run(&parsed(arguments)?) };

/// Take Pleach out of databases: the rules go, the data stays
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Uninstall {
    /// A database to take Pleach out of; may be repeated. Without it: all that have something of Pleach's
    #[arg(long, value_name = "NAME")]
    db: Vec<String>,

    /// Do not ask
    #[arg(long)]
    yes: bool,

    /// Also remove the values that are kept because rules have replaced them
    #[arg(long)]
    forget: bool,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
Fields stay as ordinary ones, readings become plain documents again. It can be stopped at any moment: the next run goes on.
Exit code: 0 if nothing of Pleach is left, 1 if something stays, 2 if it failed.

Examples:
  pleach uninstall --upstream mongodb://db.example.com/ --db shop     asks first
  pleach uninstall --server mongodb://127.0.0.1:27017 --yes           all databases of a running Pleach";

fn run(uninstall: &Uninstall) -> Result<Verdict, Failure> {
    ask::run(&uninstall.target, Purpose::Change, async |target| {
        if !uninstall.yes {
            let preview = asked(target, uninstall, true).await?;
            if list(&preview, "databases").is_empty() {
                return Ok(tell(uninstall, preview));
            }
            confirm(&preview)?;
        }
        let answer = asked(target, uninstall, false).await?;
        Ok(tell(uninstall, answer))
    })
}

async fn asked(target: &mut Target, uninstall: &Uninstall, preview: bool) -> Result<bson::Document, Failure> {
    let mut question = Question::new("uninstall").flag("forget", uninstall.forget).flag("preview", preview);
    if !uninstall.db.is_empty() {
        let names = uninstall.db.iter().map(|name| Value::from(&**name)).collect::<document::Array<'static>>();
        question = question.with("databases", names);
    }
    let (db, question) = question.finish();
    target.ask(&db, question).await
}

/// Asks on the terminal; without one `--yes` must say it.
fn confirm(preview: &bson::Document) -> Result<(), Failure> {
    let unsure = |message: &str| Err(Failure::new(message).hint("say it with --yes; nothing has changed"));
    report::note(&render(preview, "would be removed"));
    if !std::io::stdin().is_terminal() {
        return unsure("uninstall removes all rules, and nobody is there to ask");
    }
    report::note("Remove all this, and keep the data? [y/N]");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes") {
        true => Ok(()),
        false => unsure("not confirmed"),
    }
}

fn tell(uninstall: &Uninstall, answer: bson::Document) -> Verdict {
    let some_left = list(&answer, "databases").iter().any(|database| !list(database, "left").is_empty());
    match uninstall.output.json {
        true => report::json(&extended_json(answer)),
        false => report::text(&render(&answer, "removed")),
    }
    if some_left { Verdict::Findings } else { Verdict::Fine }
}

/// What came of a collection that was bucketed, a line each.
fn came_back(back: &bson::Document) -> String {
    let (collection, mut out) = (text(back, "collection"), String::new());
    if let Some(duplicates) = same_ids(back) {
        out.push_str(&format!("{collection}: {duplicates}\n"));
    }
    for again in [made_again(back), given_back(back)].into_iter().flatten() {
        out.push_str(&format!("{collection}: {again}\n"));
    }
    out
}

fn render(answer: &bson::Document, done: &str) -> String {
    let databases = list(answer, "databases");
    if databases.is_empty() {
        return "nothing of Pleach is here\n".to_owned();
    }
    let mut out = String::new();
    for database in databases {
        out.push_str(&format!("{}\n", text(database, "database")));
        for (name, what) in [
            ("rules", format!("rules {done}, their fields and readings stay as plain data")),
            ("indexes", format!("indexes {done}")),
            ("expiries", "indexes by which MongoDB expires documents again".to_owned()),
            ("collections", format!("collections {done}")),
        ] {
            let names: Vec<&str> = database
                .get_array(name)
                .map_or_else(|_| Vec::new(), |list| list.iter().filter_map(|item| item.as_str()).collect());
            if !names.is_empty() {
                out.push_str(&format!("  {what}: {}\n", names.join(", ")));
            }
        }
        for back in list(database, "back") {
            out.push_str(&came_back(back).lines().map(|line| format!("  {line}\n")).collect::<String>());
        }
        for left in list(database, "left") {
            out.push_str(&format!("  stays: {} ({})\n", text(left, "what"), text(left, "why")));
        }
    }
    out
}
