//! What a verb found, before it is printed: of one database as it is, of several together as one document or as one text.

use crate::report::{self, Failure, Verdict};
use serde_json::{Map, Value, json};

pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) shown: Output,
    /// The sentence that all is well. It ends the text, and of several databases it must hold for all.
    pub(crate) all_clear: Option<&'static str>,
}

/// What goes to stdout.
pub(crate) enum Output {
    Json(Value),
    Text(String),
}

impl Outcome {
    pub(crate) fn new(verdict: Verdict, shown: Output) -> Outcome {
        Outcome { verdict, shown, all_clear: None }
    }

    pub(crate) fn print(self) -> Verdict {
        match self.shown {
            Output::Json(value) => report::json(&value),
            Output::Text(text) => report::text(&format!("{text}{}", closing(self.all_clear))),
        }
        self.verdict
    }
}

/// Prints what was found in several databases: `{ databases: [ { database, … | error } ] }`, or each text under its database. The
/// worst verdict counts.
pub(crate) fn print_all<'d>(outcomes: impl Iterator<Item = (&'d str, Result<Outcome, Failure>)>) -> Verdict {
    let (mut worst, mut all_clear, mut list) = (Verdict::Fine, None, Vec::new());
    for (at, (database, outcome)) in outcomes.enumerate() {
        match outcome {
            Ok(outcome) => {
                worst = worst.max(outcome.verdict);
                all_clear = all_clear.or(outcome.all_clear);
                match outcome.shown {
                    Output::Json(value) => list.push(of_database(database, value)),
                    Output::Text(text) => {
                        let gap = if at == 0 { "" } else { "\n" };
                        report::text(&format!("{gap}database {database}:\n\n{text}"));
                    }
                }
            }
            Err(failure) => {
                worst = Verdict::Failed;
                list.push(of_database(database, failure.to_json()));
                report::note(&format!("database {database}:"));
                report::failure(&failure);
            }
        }
    }
    match report::wants_json() {
        true => report::json(&json!({ "databases": list })),
        false if worst == Verdict::Fine => report::text(&closing(all_clear)),
        false => {}
    }
    worst
}

fn closing(all_clear: Option<&str>) -> String {
    all_clear.map_or_else(String::new, |sentence| format!("\n{sentence}\n"))
}

fn of_database(database: &str, answer: Value) -> Value {
    let mut all = Map::new();
    all.insert("database".to_owned(), database.into());
    if let Value::Object(answer) = answer {
        all.extend(answer);
    }
    Value::Object(all)
}
