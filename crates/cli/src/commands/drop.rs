//! `pleach drop`: removes a rule and, if asked, the field it kept.

use crate::args::verbs::Drop;
use crate::ask::{self, Question, extended_json, text};
use crate::declaration;
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;

pub(crate) fn run(drop: &Drop) -> Result<Verdict, Failure> {
    let db = declaration::database(drop.db.as_deref(), drop.declare.as_deref())?;
    ask::run(&drop.target, Purpose::Change, drop.json, async |target| {
        let question = Question::new("drop").on(db.as_deref()).with("rule", &*drop.rule);
        let question = question.flag("with_data", drop.with_data).flag("keep_buckets", drop.keep_buckets);
        let (db, question) = question.finish();
        let answer = target.ask(&db, question).await?;
        let rule = text(&answer, "rule").to_owned();
        match drop.json {
            true => report::json(&extended_json(answer)),
            false => {
                report::text(&format!("{rule} is no longer kept; {}\n", left(drop, &rule)));
            }
        }
        report::note(
            "A declaration that still has the rule brings it back with the next `serve --declare` or `apply`.",
        );
        Ok(Verdict::Fine)
    })
}

/// What is left of it.
fn left(drop: &Drop, rule: &str) -> &'static str {
    let is_shape = rule.ends_with(".bucket");
    match (is_shape, drop.with_data, drop.keep_buckets) {
        (true, true, _) => "its collection is gone",
        (true, false, true) => "its buckets stay, and a view over them that nobody can write to",
        (true, false, false) => "its readings are plain documents again",
        (false, true, _) => "its field is gone",
        (false, false, _) => "its field stays, as an ordinary one",
    }
}
