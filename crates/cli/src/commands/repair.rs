//! `pleach repair`: makes every derived value right that is not, while clients write.

use super::compared::{self, command, documents, figures, more, notes, undeclared, values_of, wrapped};
use crate::args::verbs::Repair;
use crate::ask::{self, Question, extended_json, list, number, shown, text};
use crate::declaration::{self, File};
use crate::outcome::{Outcome, Shown};
use crate::report::{Failure, Verdict};
use crate::target::Purpose;

pub(crate) fn run(repair: &Repair) -> Result<Verdict, Failure> {
    declaration::each(&repair.audit.declare, |file| of(repair, file))
}

fn of(repair: &Repair, file: Option<&File>) -> Result<Outcome, Failure> {
    let audit = &repair.audit;
    ask::run(&audit.target, Purpose::Change, async |target| {
        let question = Question::new("repair").flag("once", repair.once).flag("overwrite", repair.overwrite);
        let question = question.flag("create_missing", repair.create_missing);
        let answer = compared::ask(question, audit, file, target).await?;
        let (verdict, all_clear) = (compared::verdict(&answer), all_clear(&answer));
        let shown = match audit.json {
            true => Shown::Json(extended_json(answer)),
            false => Shown::Text(told(&answer, repair, file)),
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

fn told(answer: &bson::Document, repair: &Repair, file: Option<&File>) -> String {
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
        out.push_str(&command("apply", &repair.audit, true));
    }
    out
}
