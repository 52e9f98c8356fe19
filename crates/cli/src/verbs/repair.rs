//! `pleach repair`: makes every derived value right that is not, while clients write.

use super::compared::{self, Comparison, command, documents, figures, more, notes, undeclared, values_of, wrapped};
use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, list, number, shown, text};
use crate::declaration::{self, File};
use crate::outcome::{Outcome, Output};
use crate::report::{Failure, Verdict};
use crate::target::Purpose;
use clap::{CommandFactory, Parser};

pub(super) const VERB: Verb =
    Verb { name: "repair", command: Repair::command, run: |arguments| run(&parsed(arguments)?) };

/// Make every derived value right that is not, while clients write
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Repair {
    #[command(flatten)]
    comparison: Comparison,

    /// Of rules that are declared and not applied: make their values right now; nothing keeps them so afterwards
    #[arg(long, requires = "declare")]
    once: bool,

    /// With --once: go on where existing values would be removed, or more than half of them changed; no copy is kept
    #[arg(long, requires = "once")]
    overwrite: bool,

    /// With --once: go on where a collection does not exist, or a field and one with a near name does
    #[arg(long, requires = "once")]
    create_missing: bool,
}

const EXAMPLES: &str = "\
Exit code: as of `pleach audit`, after the repair. With --once it keeps no copy
of what it overwrites, so it refuses what `pleach apply` refuses: values that
would go, more than half of them changed, names that do not exist.

Examples:
  pleach repair --data ~/shop
      the rules that are applied there
  pleach repair --once --declare pleach.yaml \\
      --upstream mongodb://db.example.com/
      a MongoDB whose rules are not applied: right now, not kept so";

fn run(repair: &Repair) -> Result<Verdict, Failure> {
    declaration::each(&repair.comparison.declared.files, |file| of(repair, file))
}

fn of(repair: &Repair, file: Option<&File>) -> Result<Outcome, Failure> {
    let comparison = &repair.comparison;
    ask::run(&comparison.target, Purpose::Change, async |target| {
        let question = Question::new("repair").flag("once", repair.once).flag("overwrite", repair.overwrite);
        let question = question.flag("create_missing", repair.create_missing);
        let answer = compared::ask(question, comparison, file, target).await?;
        let (verdict, all_clear) = (compared::verdict(&answer), all_clear(&answer));
        let shown = match comparison.output.json {
            true => Output::Json(extended_json(answer)),
            false => Output::Text(render(&answer, repair, file)),
        };
        Ok(Outcome { all_clear, ..Outcome::new(verdict, shown) })
    })
}

/// The sentence that there was nothing to repair. `None` if there was, or if not everything was compared.
fn all_clear(answer: &bson::Document) -> Option<&'static str> {
    let is_right =
        text(answer, "outcome") == "right" && number(answer, "checked") > 0 && number(answer, "drifted") == 0;
    is_right.then_some("every derived value was what it should be")
}

fn render(answer: &bson::Document, repair: &Repair, file: Option<&File>) -> String {
    if list(answer, "rules").is_empty() {
        return compared::without_rules(answer, file);
    }
    let mut out = figures(answer);
    out.push_str(&notes(answer));
    out.push_str(&undeclared(answer));
    let (repaired, failed) = (number(answer, "drifted"), list(answer, "failed"));
    if repaired > 0 {
        out.push_str(&format!("\n{} repaired:\n\n", values_of(repaired)));
        if !list(answer, "drift").is_empty() {
            out.push_str(&documents(answer));
        }
        out.push_str(&more(answer));
    }
    for failed in &failed {
        let (rule, id, db) = (text(failed, "rule"), shown(failed.get("_id")), text(failed, "database"));
        out.push('\n');
        out.push_str(&wrapped(&format!("not repaired: {rule} of {id} in {db}"), 0));
        out.push_str(&wrapped(text(failed, "problem"), 2));
    }
    let checked = number(answer, "checked");
    match (text(answer, "outcome"), repaired) {
        ("right", 0) if checked > 0 => {}
        ("right", 0) => out.push_str("\nthere was nothing to check\n"),
        ("right", _) | ("drift", _) => {}
        ("impossible", _) => out.push_str("\nnot every rule could be checked\n"),
        _ => {
            let unchecked = values_of(number(answer, "unchecked"));
            out.push_str(&format!("\n{unchecked} not checked yet\n"));
        }
    }
    if repair.once && checked > 0 {
        out.push('\n');
        out.push_str(&wrapped("Nothing keeps the values right from now on. To keep them so:", 0));
        out.push_str(&command("apply", &repair.comparison, true));
    }
    out
}
