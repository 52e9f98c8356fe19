//! `pleach drop`: removes a rule and, if asked, the field it kept.

use crate::args::verbs::Drop;
use crate::ask::{self, Question, extended_json, text};
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;

pub(crate) fn run(drop: &Drop) -> Result<Verdict, Failure> {
    ask::run(&drop.target, Purpose::Change, drop.json, async |target| {
        let question = Question::new("drop").on(drop.db.as_deref()).with("rule", &*drop.rule);
        let (db, question) = question.flag("with_data", drop.with_data).finish();
        let answer = target.ask(&db, question).await?;
        let rule = text(&answer, "rule").to_owned();
        match drop.json {
            true => report::json(&extended_json(answer)),
            false => {
                let field = if drop.with_data { "its field is gone" } else { "its field stays, as an ordinary one" };
                report::text(&format!("{rule} is no longer kept; {field}\n"));
            }
        }
        report::note(
            "A declaration that still has the rule brings it back with the next `serve --declare` or `apply`.",
        );
        Ok(Verdict::Fine)
    })
}
