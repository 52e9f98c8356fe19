//! `pleach audit`: is every derived value what it should be? Changes nothing, and says no more than it saw.

use super::compared::{self, Comparison, command, documents, figures, labelled, more, notes, undeclared, wrapped};
use super::{Verb, parsed};
use crate::ask::{self, Question, extended_json, list, number, text};
use crate::declaration::{self, File};
use crate::outcome::{Outcome, Output};
use crate::report::{Failure, Verdict};
use crate::target::Purpose;
use clap::{CommandFactory, Parser};

pub(super) const VERB: Verb =
    Verb { name: "audit", command: Audit::command, run: |arguments| run(&parsed(arguments)?) };

/// Compare every derived value with what it should be; changes nothing
#[derive(Debug, Parser)]
#[command(after_help = EXAMPLES)]
struct Audit {
    #[command(flatten)]
    comparison: Comparison,
}

const EXAMPLES: &str = "\
Nothing is written; the right to read is enough. Exit code:
  0  everything was checked and is right, or there are no documents
  1  something drifted, or not all could be checked yet (seeding, outbox)
  2  it could not be checked: a database or collection that does not exist,
     no rules, no answer

Examples:
  pleach audit --data ~/shop
      the rules that are applied there
  pleach audit --declare pleach.yaml --upstream-file mongodb.uri
      a MongoDB as it is: needs only the right to read";

fn run(audit: &Audit) -> Result<Verdict, Failure> {
    let comparison = &audit.comparison;
    declaration::each(&comparison.declared.files, |file| of(comparison, file))
}

fn of(comparison: &Comparison, file: Option<&File>) -> Result<Outcome, Failure> {
    ask::run(&comparison.target, Purpose::Look, async |target| {
        let answer = compared::ask(Question::new("audit"), comparison, file, target).await?;
        let (verdict, all_clear) = (compared::verdict(&answer), all_clear(&answer));
        let shown = match comparison.output.json {
            true => Output::Json(extended_json(answer)),
            false => Output::Text(render(&answer, comparison, file)),
        };
        Ok(Outcome { all_clear, ..Outcome::new(verdict, shown) })
    })
}

fn render(answer: &bson::Document, comparison: &Comparison, file: Option<&File>) -> String {
    if list(answer, "rules").is_empty() {
        return compared::without_rules(answer, file);
    }
    let mut out = figures(answer);
    out.push_str(&notes(answer));
    out.push_str(&undeclared(answer));
    if !list(answer, "drift").is_empty() {
        out.push('\n');
        out.push_str(&documents(answer));
    }
    out.push_str(&more(answer));
    if all_clear(answer).is_none() {
        out.push('\n');
        out.push_str(&summary(answer));
    }
    out.push_str(&advice(answer, comparison));
    out
}

/// The sentence that everything is right. `None` if it is not, or if nothing was compared.
fn all_clear(answer: &bson::Document) -> Option<&'static str> {
    if text(answer, "outcome") != "right" || number(answer, "checked") == 0 {
        return None;
    }
    Some(if has_note(answer, "no_field") || has_note(answer, "dangling") {
        "every derived value is what its rule says; see the notes about references"
    } else if answer.contains_key("undeclared") {
        "every derived value of the declared rules is what it should be"
    } else {
        "every derived value is what it should be"
    })
}

/// One sentence about what is not all right.
fn summary(answer: &bson::Document) -> String {
    let (checked, drifted) = (number(answer, "checked"), number(answer, "drifted"));
    let unchecked = compared::values_of(number(answer, "unchecked"));
    let said = match (text(answer, "outcome"), drifted, checked) {
        ("right", ..) => "there was nothing to check".to_owned(),
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
fn advice(answer: &bson::Document, comparison: &Comparison) -> String {
    let mut out = String::new();
    for (action, rules) in by_action(answer) {
        let it = if number(answer, "drifted") == 1 { "it" } else { "them" };
        let (said, commands) = match action {
            "apply" => (
                format!(
                    "Not applied as declared: {rules}. To see what `apply` would change, then to make the values right and keep them so:"
                ),
                vec![command("plan", comparison, true), command("apply", comparison, true)],
            ),
            "repair" => (format!("To make {it} right:"), vec![command("repair", comparison, true)]),
            "restart" => (
                "The rules are switched off. Start the server without --raw, then make the values right:".to_owned(),
                vec![command("repair", comparison, true)],
            ),
            "by_hand" if list(answer, "drift").iter().any(|drift| !list(drift, "violations").is_empty()) => (
                format!(
                    "`pleach repair` leaves documents that break {rules}: correct or delete them by hand. An update that makes one valid passes."
                ),
                Vec::new(),
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
            "resume" => {
                let mut commands = vec![command("serve", comparison, false)];
                let said = match comparison.declared.files.is_empty() {
                    true => "Nobody works on it now. A server does:",
                    false => {
                        commands.push(command("apply", comparison, true));
                        "Nobody works on it now. A server does, and `apply` does what is left of seeding:"
                    }
                };
                (said.to_owned(), commands)
            }
            "wait" => {
                ("To see how far it is, and audit again then:".to_owned(), vec![command("status", comparison, true)])
            }
            _ => continue,
        };
        out.push('\n');
        out.push_str(&wrapped(&said, 0));
        out.extend(commands);
    }
    out
}

/// What helps, each with the rules that it helps.
fn by_action(answer: &bson::Document) -> Vec<(&str, String)> {
    let mut all: Vec<(&str, Vec<String>)> = Vec::new();
    for next in list(answer, "next") {
        let names = next.get_array("rules").into_iter().flatten().filter_map(|rule| rule.as_str());
        let names = names.map(|name| labelled(answer, text(next, "database"), name));
        match all.iter_mut().find(|(action, _)| *action == text(next, "action")) {
            Some((_, rules)) => rules.extend(names),
            None => all.push((text(next, "action"), names.collect())),
        }
    }
    all.into_iter().map(|(action, rules)| (action, rules.join(", "))).collect()
}
