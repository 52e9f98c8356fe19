//! `pleach repair`: makes every derived value right that is not, while clients write.

use super::audit::{ask, documents, figures};
use crate::args::verbs::Audit;
use crate::ask::{extended_json, grouped, list, number, shown, text};
use crate::declaration::File;
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;

pub(crate) fn run(repair: &Audit) -> Result<Verdict, Failure> {
    let file = repair.declare.as_deref().map(File::read).transpose()?;
    crate::ask::run(&repair.target, Purpose::Change, repair.json, async |target| {
        let answer = ask("repair", repair, file.as_ref(), target).await?;
        let failed = list(&answer, "failed").len();
        match repair.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&told(&answer)),
        }
        Ok(if failed == 0 { Verdict::Fine } else { Verdict::Findings })
    })
}

fn told(answer: &bson::Document) -> String {
    let mut out = figures(answer);
    let repaired = number(answer, "drifted");
    match repaired {
        0 => out.push_str("\nevery derived value was what it should be\n"),
        _ => {
            out.push_str(&format!("\n{} repaired:\n\n{}", grouped(repaired), documents(answer)));
        }
    }
    for failed in list(answer, "failed") {
        let (rule, id, problem) = (text(failed, "rule"), shown(failed.get("_id")), text(failed, "problem"));
        out.push_str(&format!("not repaired: {rule} of {id}: {problem}\n"));
    }
    out
}
