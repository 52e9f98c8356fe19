//! `pleach audit`: is every derived value what it should be? Changes nothing, and says no more than it saw.

use super::compared::{self, command, documents, figures, more, notes, wrapped};
use crate::args::verbs::Audit;
use crate::ask::{self, Question, extended_json, list, number, text};
use crate::declaration::{self, File};
use crate::report::{self, Failure, Verdict};
use crate::target::Purpose;

pub(crate) fn run(audit: &Audit) -> Result<Verdict, Failure> {
    declaration::each(&audit.declare, |file| of(audit, file))
}

fn of(audit: &Audit, file: Option<&File>) -> Result<Verdict, Failure> {
    ask::run(&audit.target, Purpose::Look, async |target| {
        let answer = compared::ask(Question::new("audit"), audit, file, target).await?;
        let verdict = compared::verdict(&answer);
        match audit.json {
            true => report::json(&extended_json(answer)),
            false => report::text(&told(&answer, audit, file)),
        }
        Ok(verdict)
    })
}

fn told(answer: &bson::Document, audit: &Audit, file: Option<&File>) -> String {
    if list(answer, "rules").is_empty() {
        return compared::without_rules(file);
    }
    let mut out = figures(answer);
    out.push_str(&notes(answer));
    if !list(answer, "drift").is_empty() {
        out.push('\n');
        out.push_str(&documents(answer));
    }
    out.push_str(&more(answer));
    out.push('\n');
    out.push_str(&summary(answer));
    out.push_str(&advice(answer, audit));
    out
}

/// One sentence about all of it.
fn summary(answer: &bson::Document) -> String {
    let (checked, drifted) = (number(answer, "checked"), number(answer, "drifted"));
    let unchecked = compared::values_of(number(answer, "unchecked"));
    let said = match (text(answer, "outcome"), drifted, checked) {
        ("right", _, 0) => "there was nothing to check".to_owned(),
        ("right", ..) if has_note(answer, "no_field") || has_note(answer, "dangling") => {
            "every derived value is what its rule says; see the notes about references".to_owned()
        }
        ("right", ..) => "every derived value is what it should be".to_owned(),
        (_, 1.., _) => format!("{} drifted", compared::values_of(drifted)),
        ("impossible", 0, 0) => "nothing could be checked".to_owned(),
        ("impossible", ..) => "not every rule could be checked; what was checked is right".to_owned(),
        (_, _, 0) => format!("nothing was checked yet: {unchecked} to go"),
        _ => format!("what was checked is right; {unchecked} not checked yet"),
    };
    wrapped(&said, 0)
}

fn has_note(answer: &bson::Document, about: &str) -> bool {
    list(answer, "rules").iter().any(|rule| list(rule, "notes").iter().any(|note| text(note, "about") == about))
}

/// What helps next.
fn advice(answer: &bson::Document, audit: &Audit) -> String {
    let mut out = String::new();
    for next in list(answer, "next") {
        let rules: Vec<&str> = next
            .get_array("rules")
            .map_or_else(|_| Vec::new(), |rules| rules.iter().filter_map(|rule| rule.as_str()).collect());
        let rules = rules.join(", ");
        let (said, commands) = match text(next, "action") {
            "apply" => (
                format!(
                    "Not applied as declared: {rules}. To see what `apply` would change, then to make the values right and keep them so:"
                ),
                vec![command("plan", audit, true), command("apply", audit, true)],
            ),
            "repair" => ("To make them right:".to_owned(), vec![command("repair", audit, true)]),
            "restart" => (
                "The rules are switched off. Start the server without --raw, then make the values right:".to_owned(),
                vec![command("repair", audit, true)],
            ),
            "by_hand" => (
                format!(
                    "`pleach repair` cannot mend all of {rules}: some buckets do not tell what they should be. Correct or delete these by hand (`pleach serve --raw`)."
                ),
                Vec::new(),
            ),
            "correct_names" => {
                let said = format!("Correct the names in the declaration first, or make what is missing: {rules}.");
                (said, Vec::new())
            }
            "wait" => ("To see how far it is, and audit again then:".to_owned(), vec![command("status", audit, true)]),
            _ => continue,
        };
        out.push('\n');
        out.push_str(&wrapped(&said, 0));
        out.extend(commands);
    }
    out
}
