//! `pleach forget`: frees what is kept of the values and documents that a rule replaced.

use crate::args::verbs::Forget;
use crate::ask::{self, Question, amount, extended_json, text};
use crate::declaration;
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;

pub(crate) fn run(forget: &Forget) -> Result<Verdict, Failure> {
    let db = declaration::database(forget.db.as_deref(), forget.declare.as_deref())?;
    ask::run(&forget.target, Purpose::Change, async |target| {
        let (db, question) = Question::new("forget").on(db.as_deref()).with("rule", &*forget.rule).finish();
        let answer = target.ask(&db, question).await?;
        match forget.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&told(&answer)),
        }
        Ok(Verdict::Fine)
    })
}

fn told(answer: &bson::Document) -> String {
    let rule = text(answer, "rule");
    match answer.get_document("freed").ok().and_then(amount) {
        Some(freed) => {
            format!("freed {freed} that rule {rule} had replaced; `drop {rule} --restore` is no longer possible\n")
        }
        None => format!("nothing was kept of what rule {rule} replaced\n"),
    }
}
