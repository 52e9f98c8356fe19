//! One step of a script: the command that is expected, and what the server does with it.
//!
//! ```text
//! expect("insert").on("shop").with(doc! { "insert": "orders" }).answer(doc! { "n": 1 })
//! expect("commitTransaction").cut()
//! ```

use bson::{Bson, Document, doc};
use std::sync::Arc;
use tokio::sync::Notify;

pub(crate) struct Step {
    name: &'static str,
    db: Option<&'static str>,
    fields: Document,
    absent: &'static [&'static str],
    /// The answer waits for this.
    pub(crate) awaits: Option<Arc<Notify>>,
    pub(crate) reaction: Reaction,
}

pub(crate) enum Reaction {
    Answer(Document),
    /// The answer is sent together with the next one: a client that waits for it before its next command waits for ever.
    AnswerWithNext(Document),
    AnswerAndCut(Document),
    /// The connection ends without an answer.
    Cut,
    /// No answer, and the connection stays.
    Hang,
}

/// A command of that name, answered with success unless the step goes on to say otherwise.
pub(crate) fn expect(name: &'static str) -> Step {
    let reaction = Reaction::Answer(doc! { "ok": 1 });
    Step { name, db: None, fields: doc! {}, absent: &[], awaits: None, reaction }
}

/// These commands are all sent before the first of them is answered.
pub(crate) fn bundle<const N: usize>(mut steps: [Step; N]) -> [Step; N] {
    let last = N - 1;
    for step in &mut steps[..last] {
        if let Reaction::Answer(reply) = &step.reaction {
            step.reaction = Reaction::AnswerWithNext(reply.clone());
        }
    }
    steps
}

impl Step {
    pub(crate) fn on(self, db: &'static str) -> Step {
        Step { db: Some(db), ..self }
    }

    /// The command holds these fields, and may hold more. Documents inside are compared in the same way, arrays have the same
    /// length, numbers are equal whatever their types are.
    pub(crate) fn with(mut self, fields: Document) -> Step {
        self.fields.extend(fields);
        self
    }

    pub(crate) fn without(self, absent: &'static [&'static str]) -> Step {
        Step { absent, ..self }
    }

    /// Success, with these fields.
    pub(crate) fn answer(self, fields: Document) -> Step {
        let mut reply = doc! { "ok": 1 };
        reply.extend(fields);
        Step { reaction: Reaction::Answer(reply), ..self }
    }

    /// An error of the whole command.
    pub(crate) fn fail(self, code: i32, labels: &[&str]) -> Step {
        let mut reply = doc! { "ok": 0, "code": code, "errmsg": format!("scripted failure {code}") };
        if !labels.is_empty() {
            reply.insert("errorLabels", labels.to_vec());
        }
        Step { reaction: Reaction::Answer(reply), ..self }
    }

    /// Success of the command, an error of its statement `index`.
    pub(crate) fn fail_statement(self, index: i32, code: i32) -> Step {
        let error = doc! { "index": index, "code": code, "errmsg": format!("scripted failure {code}") };
        self.answer(doc! { "n": index, "writeErrors": [error] })
    }

    /// The answer comes, and is the last of the connection.
    pub(crate) fn and_cut(self) -> Step {
        let reaction = match self.reaction {
            Reaction::Answer(reply) => Reaction::AnswerAndCut(reply),
            other => other,
        };
        Step { reaction, ..self }
    }

    pub(crate) fn cut(self) -> Step {
        Step { reaction: Reaction::Cut, ..self }
    }

    pub(crate) fn hang(self) -> Step {
        Step { reaction: Reaction::Hang, ..self }
    }

    pub(crate) fn after(self, awaited: &Arc<Notify>) -> Step {
        Step { awaits: Some(awaited.clone()), ..self }
    }

    pub(crate) fn name(&self) -> &'static str {
        self.name
    }

    /// What is wrong with the command, `None` if it is the expected one.
    pub(crate) fn difference(&self, command: &Document) -> Option<String> {
        let name = command.keys().next().map(String::as_str).unwrap_or_default();
        if name != self.name {
            return Some(format!("the script expects {}", self.name));
        }
        if let Some(db) = self.db
            && command.get_str("$db").ok() != Some(db)
        {
            return Some(format!("the script expects it on {db}"));
        }
        if let Some(absent) = self.absent.iter().find(|absent| command.contains_key(**absent)) {
            return Some(format!("the script expects no {absent}"));
        }
        differing_field(&self.fields, command, "")
    }
}

fn differing_field(expected: &Document, actual: &Document, path: &str) -> Option<String> {
    expected.iter().find_map(|(name, value)| difference(value, actual.get(name), &format!("{path}{name}")))
}

fn difference(expected: &Bson, actual: Option<&Bson>, path: &str) -> Option<String> {
    let Some(actual) = actual else { return Some(format!("{path} is missing")) };
    match (expected, actual) {
        (Bson::Document(expected), Bson::Document(actual)) => differing_field(expected, actual, &format!("{path}.")),
        (Bson::Array(expected), Bson::Array(actual)) if expected.len() == actual.len() => {
            let mut pairs = expected.iter().zip(actual).enumerate();
            pairs.find_map(|(at, (expected, actual))| difference(expected, Some(actual), &format!("{path}.{at}")))
        }
        _ if expected == actual || number(expected).is_some_and(|wanted| number(actual) == Some(wanted)) => None,
        _ => Some(format!("{path} is {actual}, the script expects {expected}")),
    }
}

/// A number's value, whatever its type; exact for the small ones that scripts use.
fn number(value: &Bson) -> Option<f64> {
    match value {
        Bson::Int32(number) => Some(f64::from(*number)),
        Bson::Int64(number) => Some(*number as f64),
        Bson::Double(number) => Some(*number),
        _ => None,
    }
}

#[test]
fn a_step_names_the_first_difference() {
    let command = doc! { "find": "orders", "filter": { "a": 1_i64, "b": [1, { "c": 2, "d": 3 }] }, "$db": "shop" };
    let step = || expect("find").on("shop");
    for (step, difference) in [
        (step().with(doc! { "find": "orders", "filter": { "a": 1, "b": [1.0, { "c": 2 }] } }), None),
        (step().with(doc! { "filter": { "a": 2 } }), Some("filter.a is 1, the script expects 2")),
        (step().with(doc! { "filter": { "b": [1, { "e": 2 }] } }), Some("filter.b.1.e is missing")),
        (step().with(doc! { "limit": 1 }), Some("limit is missing")),
        (step().without(&["filter"]), Some("the script expects no filter")),
        (expect("find").on("other"), Some("the script expects it on other")),
        (expect("insert"), Some("the script expects insert")),
    ] {
        assert_eq!(step.difference(&command).as_deref(), difference);
    }
}
