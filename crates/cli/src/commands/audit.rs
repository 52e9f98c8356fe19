//! `pleach audit`: is every derived value what it should be? Changes nothing.

use crate::args::verbs::Audit;
use crate::ask::{self, Question, extended_json, grouped, list, number, shown, text};
use crate::declaration::File;
use crate::report::{self, Failure, Verdict};
use crate::table::table;
use crate::target::Purpose;

pub(crate) fn run(audit: &Audit) -> Result<Verdict, Failure> {
    let (target, answer_as) = (&audit.target, audit.json);
    let file = audit.declare.as_deref().map(File::read).transpose()?;
    ask::run(target, Purpose::Look, answer_as, async |target| {
        let answer = ask("audit", audit, file.as_ref(), target).await?;
        let drifted = number(&answer, "drifted");
        match audit.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&told(&answer)),
        }
        Ok(if drifted == 0 { Verdict::Fine } else { Verdict::Findings })
    })
}

/// Audit and repair ask alike.
pub(crate) async fn ask(
    verb: &str,
    audit: &Audit,
    file: Option<&File>,
    target: &mut crate::target::Target,
) -> Result<bson::Document, Failure> {
    let mut question = Question::new(verb).declared(file).with("examples", i64::from(audit.examples));
    if let Some(rule) = &audit.rule {
        question = question.with("rule", &**rule);
    }
    let (db, question) = question.finish();
    target.ask(&db, question).await
}

fn told(answer: &bson::Document) -> String {
    if list(answer, "rules").is_empty() {
        return "no rules are kept here; name a declaration with --declare FILE\n".to_owned();
    }
    let mut out = figures(answer);
    let drift = list(answer, "drift");
    if drift.is_empty() {
        out.push_str("\nevery derived value is what it should be\n");
        return out;
    }
    out.push('\n');
    out.push_str(&documents(answer));
    let more = number(answer, "drifted") - i64::try_from(drift.len()).unwrap_or(0);
    if more > 0 {
        out.push_str(&format!("… and {} more (--examples N)\n", grouped(more)));
    }
    out.push_str("\n`pleach repair` makes them right\n");
    out
}

/// The counts per rule.
pub(crate) fn figures(answer: &bson::Document) -> String {
    let row = |rule: &&bson::Document| {
        let (checked, drifted) = (number(rule, "checked"), number(rule, "drifted"));
        #[expect(clippy::cast_precision_loss, reason = "a share for people")]
        let share = if checked == 0 { 0.0 } else { drifted as f64 * 100.0 / checked as f64 };
        vec![
            text(rule, "rule").to_owned(),
            grouped(checked),
            grouped(drifted),
            format!("{share:.1} %"),
            format!("{:.2}", rule.get_f64("seconds").unwrap_or_default()),
        ]
    };
    let headings = ["rule", ">checked", ">drifted", ">share", ">seconds"];
    table(&headings, list(answer, "rules").iter().map(row).collect())
}

/// The documents that are named. A bucket has a row for each of its flaws.
pub(crate) fn documents(answer: &bson::Document) -> String {
    let row = |drift: &bson::Document, of: &bson::Document, field: &str| {
        vec![
            text(drift, "rule").to_owned(),
            shown(drift.get("_id")),
            field.to_owned(),
            shown(of.get("stored")),
            shown(of.get("expected")),
        ]
    };
    let drift = list(answer, "drift");
    let has_flaws = drift.iter().any(|drift| !list(drift, "flaws").is_empty());
    let mut rows = Vec::new();
    for drift in &drift {
        let flaws = list(drift, "flaws");
        match flaws.is_empty() {
            true => rows.push(row(drift, drift, text(drift, "field"))),
            false => rows.extend(flaws.iter().map(|flaw| row(drift, flaw, text(flaw, "field")))),
        }
    }
    match has_flaws {
        true => table(&["rule", "_id", "field", "stored", "expected"], rows),
        // The rule's name is that of the field.
        false => {
            rows.iter_mut().for_each(|row| drop(row.remove(2)));
            table(&["rule", "_id", "stored", "expected"], rows)
        }
    }
}
