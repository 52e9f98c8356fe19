//! `pleach apply`: makes the rules what the declaration says, and shows how far it is.

use crate::args::verbs::Apply;
use crate::ask::{self, Question, extended_json, list, number, text};
use crate::declaration::File;
use crate::progress::Progress;
use crate::report::{self, Failure, Verdict};
use crate::target::{Purpose, Target};
use std::time::{Duration, Instant};

/// How often the target is asked how far it is.
const LOOK: Duration = Duration::from_millis(100);

pub(crate) fn run(apply: &Apply) -> Result<Verdict, Failure> {
    let file = File::read(&apply.declare)?;
    ask::run(&apply.target, Purpose::Change, apply.json, async |target| {
        let question = Question::new("apply").declared(Some(&file)).flag("remove", apply.remove);
        let (db, question) = question.flag("with_data", apply.with_data).with("wait", false).finish();
        let mut answer = target.ask(&db, question).await?;
        let (began, status) = (Instant::now(), watch(target, &db).await?);
        let steps = list(&answer, "steps").len();
        for (name, value) in status {
            answer.insert(name, value);
        }
        match apply.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&told(&answer, steps, began.elapsed())),
        }
        Ok(Verdict::Fine)
    })
}

/// Waits until every rule is on or gone; gives the last status.
async fn watch(target: &mut Target, db: &str) -> Result<bson::Document, Failure> {
    let mut progress = Progress::new();
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
        if under_way.is_empty() {
            progress.end();
            return Ok(status);
        }
        progress.show(u64::try_from(done).unwrap_or(0), u64::try_from(total).unwrap_or(0), &under_way);
        tokio::time::sleep(LOOK).await;
    }
}

fn told(answer: &bson::Document, steps: usize, time: Duration) -> String {
    let mut out = match steps {
        0 => "nothing to do: the rules are what the declaration says\n\n".to_owned(),
        1 => format!("applied in {:.1} s (1 step)\n\n", time.as_secs_f64()),
        steps => format!("applied in {:.1} s ({steps} steps)\n\n", time.as_secs_f64()),
    };
    out.push_str(&super::status::told(answer));
    out
}
