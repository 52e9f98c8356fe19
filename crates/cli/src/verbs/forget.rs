//! `pleach forget`: frees what is kept of the values and documents that a rule replaced.

use super::{Verb, parsed};
use crate::ask::{self, Question, amount, extended_json, text};
use crate::options::{OutputFormat, RuleDatabase, TargetOptions};
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;
use clap::{CommandFactory, Parser};

pub(super) const VERB: Verb =
    Verb { name: "forget", command: Forget::command, run: |arguments| run(&parsed(arguments)?) };

/// Free what is kept of the values that a rule replaced
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Forget {
    /// The rule, such as products.avgRating; it may be gone already
    rule: String,

    #[command(flatten)]
    database: RuleDatabase,

    #[command(flatten)]
    output: OutputFormat,

    #[command(flatten)]
    target: TargetOptions,
}

const EXAMPLES: &str = "\
`apply` keeps the values that it changes; `pleach status` shows how much.
After this they cannot be restored.

Examples:
  pleach forget products.avgRating --data ~/shop";

fn run(forget: &Forget) -> Result<Verdict, Failure> {
    let db = forget.database.name()?;
    ask::run(&forget.target, Purpose::Change, async |target| {
        let (db, question) = Question::new("forget").on(db.as_deref()).with("rule", &*forget.rule).finish();
        let answer = target.ask(&db, question).await?;
        match forget.output.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&render(&answer)),
        }
        Ok(Verdict::Fine)
    })
}

fn render(answer: &bson::Document) -> String {
    let rule = text(answer, "rule");
    match answer.get_document("freed").ok().and_then(amount) {
        Some(freed) => {
            format!("freed {freed} that rule {rule} had replaced; `drop {rule} --restore` is no longer possible\n")
        }
        None => format!("nothing was kept of what rule {rule} replaced\n"),
    }
}
